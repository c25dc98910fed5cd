//! The summary of a finished file, which a manifest stores.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// What a manifest stores of a file. In JSON the uid and the checksum are hexadecimal, and keys are text with `\xNN` where a byte
/// is not printable ASCII.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileSummary {
    /// The file's unique id, as in its header and footer.
    #[serde(serialize_with = "put_hex", deserialize_with = "read_hex")]
    pub uid: u128,
    /// The size of the file in bytes.
    pub bytes: u64,
    /// The xxh3-128 hash of the whole file, by which copies are compared.
    #[serde(serialize_with = "put_hex", deserialize_with = "read_hex")]
    pub checksum: u128,
    /// The number of rows.
    pub rows: u64,
    /// The number of cells, of all groups.
    pub cells: u64,
    /// The number of records, of all groups.
    pub records: u64,
    /// The number of stripes.
    pub stripes: u64,
    /// Least row key; empty if there is no row.
    #[serde(serialize_with = "put_key", deserialize_with = "read_key")]
    pub first_key: Vec<u8>,
    /// Greatest row key; empty if there is no row.
    #[serde(serialize_with = "put_key", deserialize_with = "read_key")]
    pub last_key: Vec<u8>,
    /// Least stored timestamp, microseconds; `None` if none is stored.
    pub min_timestamp: Option<i64>,
    /// Greatest stored timestamp, microseconds; `None` if none is stored.
    pub max_timestamp: Option<i64>,
    /// Offset of meta, which ends 64 bytes before the end of the file.
    pub meta_offset: u64,
}

fn put_hex<S: Serializer>(value: &u128, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(&format_args!("{value:032x}"))
}

fn read_hex<'de, D: Deserializer<'de>>(from: D) -> Result<u128, D::Error> {
    let text = String::deserialize(from)?;
    u128::from_str_radix(&text, 16).map_err(serde::de::Error::custom)
}

fn put_key<S: Serializer>(key: &[u8], to: S) -> Result<S::Ok, S::Error> {
    let mut text = String::with_capacity(key.len());
    for byte in key {
        match byte {
            b' '..=b'~' if *byte != b'\\' => text.push(char::from(*byte)),
            _ => text.push_str(&format!("\\x{byte:02x}")),
        }
    }
    to.serialize_str(&text)
}

fn read_key<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u8>, D::Error> {
    let text = String::deserialize(from)?;
    let mut parts = text.split("\\x");
    let mut key = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        let (digits, rest) = part.split_at_checked(2).ok_or(serde::de::Error::custom("a key ends inside \\xNN"))?;
        key.push(u8::from_str_radix(digits, 16).map_err(serde::de::Error::custom)?);
        key.extend_from_slice(rest.as_bytes());
    }
    Ok(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_round_trips() {
        let summary = FileSummary {
            uid: u128::MAX,
            bytes: 1,
            checksum: 7,
            rows: 2,
            cells: 3,
            records: 4,
            stripes: 5,
            first_key: b"a\\x41#\0\xff ~".to_vec(),
            last_key: Vec::new(),
            min_timestamp: Some(-1),
            max_timestamp: None,
            meta_offset: 9,
        };
        let json = serde_json::to_string(&summary).unwrap();
        assert!(json.contains(r#""first_key":"a\\x5cx41#\\x00\\xff ~""#), "{json}");
        assert_eq!(serde_json::from_str::<FileSummary>(&json).unwrap(), summary);
    }
}
