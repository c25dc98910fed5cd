//! KeyHashes of row keys for the filter, and of schemas.

use std::ops::Range;

use tidetable_layout::{Keys, StoredSchema};
use xxhash_rust::xxh3::xxh3_64;

/// The rows per prefix from which the filter hashes prefixes instead of keys.
const ROWS_A_PREFIX: usize = 4;

/// KeyHashes of the keys of a stripe, for the filter.
#[derive(Debug, Clone, Default)]
pub(crate) struct KeyHashes {
    /// Hashes of row keys; `None` if the filter hashes prefixes.
    pub(crate) keys: Option<Vec<u64>>,
    /// Hashes of distinct prefixes.
    pub(crate) prefixes: Vec<u64>,
}

impl KeyHashes {
    pub(crate) fn of(keys: &Keys, rows: Range<usize>) -> Self {
        let of = &keys.prefix_of()[rows.clone()];
        let (Some(first), Some(last)) = (of.first(), of.last()) else { return Self::default() };
        let prefixes: Vec<u64> = (*first..=*last).map(|prefix| xxh3_64(keys.prefix(prefix as usize))).collect();
        let few = !keys.tail_shape().parts.is_empty() && prefixes.len() * ROWS_A_PREFIX <= rows.len();
        let mut scratch = Vec::new();
        let keys = (!few).then(|| {
            rows.map(|row| {
                scratch.clear();
                keys.write(row, &mut scratch);
                xxh3_64(&scratch)
            })
            .collect()
        });
        Self { keys, prefixes }
    }
}

/// A hash that identifies a schema.
pub(crate) fn schema_hash(schema: &StoredSchema) -> Result<u64, serde_json::Error> {
    Ok(xxh3_64(&serde_json::to_vec(schema)?))
}
