//! Rows of all parts of a table, by few and small reads.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use tidetable_layout::KeyRange;
use tokio::runtime::Handle;

use crate::client::{Client, ReadQuery, Row, TableName};
use crate::error::{BigtableError, Result};
use crate::push::thinned;

/// Places of a table that are sampled, and rows of each.
const PLACES: usize = 40;
const ROWS_EACH: u64 = 50;
/// The greatest number of reads in gaps between places. Some find no row.
const GAP_READS: usize = 80;

/// Reads a sample of the rows of a table: where the service cuts the table, and in between. A table of less than some
/// gigabytes is not cut at all.
///
/// # Errors
/// Of the requests; [`BigtableError::NothingToSample`] for an empty table.
pub fn sample(client: &Client, table: &TableName, runtime: &Handle) -> Result<Vec<Row>> {
    runtime.block_on(async {
        let mut sample = Sample { client, table, rows: BTreeMap::new() };
        let mut gaps = sample.read_cuts().await?;
        sample.read_gaps(&mut gaps).await?;
        if sample.rows.is_empty() {
            return Err(BigtableError::NothingToSample { source_table: table.to_string() });
        }
        Ok(sample.rows.into_values().collect())
    })
}

/// A sample in the making.
struct Sample<'a> {
    client: &'a Client,
    table: &'a TableName,
    rows: BTreeMap<Bytes, Row>,
}

/// Keys between two places, of which no row has been read.
struct Gap {
    after: Bytes,
    before: Bytes,
}

/// What a read found.
struct Place {
    has_rows: bool,
    /// The last key that was read, if there may be rows behind it.
    end: Option<Bytes>,
}

impl Sample<'_> {
    /// Reads rows at the start of the table, where the service cuts it, and at its end. Returns what lies between.
    async fn read_cuts(&mut self) -> Result<VecDeque<Gap>> {
        let keys = self.client.sample_row_keys(self.table).await?.into_iter().map(|sample| sample.key);
        let mut cuts = vec![Bytes::new()];
        cuts.extend(thinned(keys.filter(|key| !key.is_empty()).collect(), PLACES - 1));

        let mut ends = Vec::new();
        for cut in &cuts {
            ends.push(self.read(KeyRange { start: cut.to_vec(), end: None }).await?.end);
        }
        // Of a server that reads nothing in reverse the cuts are enough.
        let Ok(Some(last)) = self.client.last_row(self.table).await else { return Ok(VecDeque::new()) };
        let befores = cuts.into_iter().skip(1).chain([last.key.clone()]);
        self.rows.insert(last.key.clone(), last);

        let gaps = ends.into_iter().zip(befores).filter_map(|(end, before)| Some(Gap { after: end?, before }));
        Ok(gaps.collect())
    }

    /// Halves gaps, the earlier first, until there are places enough.
    async fn read_gaps(&mut self, gaps: &mut VecDeque<Gap>) -> Result<()> {
        let wanted = PLACES.saturating_sub(gaps.len());
        let mut found = 0;
        for _ in 0..GAP_READS {
            if found == wanted {
                break;
            }
            let Some(Gap { after, before }) = gaps.pop_front() else { break };
            let Some(middle) = key_between(&after, &before) else { continue };

            let range = KeyRange { start: middle.to_vec(), end: Some(before.to_vec()) };
            let place = self.read(range).await?;
            found += usize::from(place.has_rows);
            gaps.push_back(Gap { after, before: middle });
            if let Some(after) = place.end {
                gaps.push_back(Gap { after, before });
            }
        }
        Ok(())
    }

    /// Reads the first rows of a range.
    async fn read(&mut self, range: KeyRange) -> Result<Place> {
        let query = ReadQuery { limit: Some(ROWS_EACH), ..ReadQuery::range(range) };
        let rows = self.client.rows(self.table, query).await?;
        let is_full = rows.len() as u64 == ROWS_EACH;
        let place =
            Place { has_rows: !rows.is_empty(), end: rows.last().filter(|_| is_full).map(|row| row.key.clone()) };
        self.rows.extend(rows.into_iter().map(|row| (row.key.clone(), row)));
        Ok(place)
    }
}

/// A key halfway between two, where keys are fractions in base 256; `None` if nothing lies between the first eight bytes in
/// which they differ.
fn key_between(low: &[u8], high: &[u8]) -> Option<Bytes> {
    let shared = low.iter().zip(high).take_while(|(a, b)| a == b).count();
    let [from, to] = [low, high].map(|key| {
        let mut digits = [0; 8];
        for (digit, byte) in digits.iter_mut().zip(key.iter().skip(shared)) {
            *digit = *byte;
        }
        u64::from_be_bytes(digits)
    });
    let middle = from + to.checked_sub(from)? / 2;
    if middle <= from {
        return None;
    }

    let mut key = low.get(..shared)?.to_vec();
    key.extend(middle.to_be_bytes());
    let length = key.iter().rposition(|byte| *byte != 0).map_or(0, |at| at + 1);
    key.truncate(length.max(shared + 1));
    Some(key.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_between_two_lies_between_them() {
        let between = |low: &str, high: &str| key_between(low.as_bytes(), high.as_bytes());
        for (low, high) in [("0000000042#20180101", "0000019999#20180131"), ("a", "b"), ("", "z"), ("a", "a#1")] {
            let middle = between(low, high).unwrap();
            assert!(low.as_bytes() < middle.as_ref() && middle.as_ref() < high.as_bytes(), "{low} {middle:?} {high}");
        }
        assert_eq!(between("a", "a"), None);
        assert_eq!(between("a", "a\0"), None);
        assert_eq!(between("b", "a"), None);
    }
}
