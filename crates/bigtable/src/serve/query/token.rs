//! Tokens that clients hold: prepared queries, and places in results.
//!
//! Nothing of them is kept here, so that they stay valid when the server is started again. Each has a checksum: a token that
//! was not made here is refused.

use bytes::Bytes;
use prost::Message;
use xxhash_rust::xxh3::xxh3_64;

use crate::proto::data::{PrepareQueryRequest, ResultSetMetadata};

/// Bytes of a checksum.
const CHECKSUM: usize = 8;

/// A prepared query: its text, types of parameters, and the columns that it had.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Prepared {
    /// Only text and types.
    pub(super) request: PrepareQueryRequest,
    /// Checksum of the columns.
    pub(super) columns: u64,
}

impl Prepared {
    pub(super) fn new(request: PrepareQueryRequest, metadata: &ResultSetMetadata) -> Self {
        let request = PrepareQueryRequest {
            instance_name: String::new(),
            app_profile_id: String::new(),
            data_format: None,
            ..request
        };
        Self { request, columns: xxh3_64(&metadata.encode_to_vec()) }
    }

    pub(super) fn encode(&self) -> Bytes {
        let mut out = self.columns.to_be_bytes().to_vec();
        // Types of parameters are a map: any order will do.
        out.extend(self.request.encode_to_vec());
        sealed(out)
    }

    pub(super) fn decode(token: &[u8]) -> Option<Self> {
        let (columns, request) = opened(token)?.split_first_chunk::<8>()?;
        let request = PrepareQueryRequest::decode(request).ok()?;
        Some(Self { request, columns: u64::from_be_bytes(*columns) })
    }
}

/// A place in the result of a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    /// Checksum of query, parameters and versions of tables: a token is of this query only.
    pub(super) query: u64,
    /// Rows before it; none if it is the end.
    pub(super) rows: Option<u64>,
}

impl Place {
    pub(super) fn encode(self, versions: &Versions) -> Bytes {
        let mut out = self.query.to_be_bytes().to_vec();
        out.extend(self.rows.unwrap_or(u64::MAX).to_be_bytes());
        for (table, number) in versions {
            out.extend(number.to_be_bytes());
            out.extend(u32::try_from(table.len()).unwrap_or_default().to_be_bytes());
            out.extend(table.as_bytes());
        }
        sealed(out)
    }

    pub(super) fn decode(token: &[u8]) -> Option<(Self, Versions)> {
        let (query, rest) = opened(token)?.split_first_chunk::<8>()?;
        let (rows, mut rest) = rest.split_first_chunk::<8>()?;
        let rows = Some(u64::from_be_bytes(*rows)).filter(|rows| *rows != u64::MAX);
        let mut versions = Versions::new();
        while !rest.is_empty() {
            let (number, after) = rest.split_first_chunk::<8>()?;
            let (len, after) = after.split_first_chunk::<4>()?;
            let (table, after) = after.split_at_checked(u32::from_be_bytes(*len) as usize)?;
            versions.push((String::from_utf8(table.to_vec()).ok()?, u64::from_be_bytes(*number)));
            rest = after;
        }
        Some((Self { query: u64::from_be_bytes(*query), rows }, versions))
    }
}

/// The tables that a query reads, and the number of the version of each.
pub(super) type Versions = Vec<(String, u64)>;

fn sealed(mut bytes: Vec<u8>) -> Bytes {
    let checksum = xxh3_64(&bytes);
    bytes.extend(checksum.to_be_bytes());
    bytes.into()
}

fn opened(token: &[u8]) -> Option<&[u8]> {
    let (bytes, checksum) = token.split_at_checked(token.len().checked_sub(CHECKSUM)?)?;
    (xxh3_64(bytes).to_be_bytes() == checksum).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_come_back_as_they_were() {
        let request = PrepareQueryRequest { query: "SELECT 1".to_owned(), ..PrepareQueryRequest::default() };
        let prepared = Prepared::new(request, &ResultSetMetadata::default());
        assert_eq!(Prepared::decode(&prepared.encode()), Some(prepared));
        let versions = vec![("SENSOR".to_owned(), 7), ("OTHER".to_owned(), 1 << 40)];
        for rows in [Some(0), Some(1 << 33), None] {
            let place = Place { query: 42, rows };
            assert_eq!(Place::decode(&place.encode(&versions)), Some((place, versions.clone())));
        }
    }

    #[test]
    fn damaged_tokens_are_refused() {
        let token = Place { query: 42, rows: Some(1) }.encode(&vec![("T".to_owned(), 7)]);
        for at in 0..token.len() {
            let mut damaged = token.to_vec();
            damaged[at] ^= 1;
            assert_eq!(Place::decode(&damaged), None);
            assert_eq!(Place::decode(&token[..at]), None);
        }
        assert_eq!(Prepared::decode(b""), None);
        assert_eq!(Prepared::decode(&token), None);
    }
}
