//! Hashes of row keys for the key filter, and of schemas.

use std::ops::Range;

use tidetable_layout::{Keys, StoredSchema};
use xxhash_rust::xxh3::xxh3_64;

/// With this many rows per prefix or more, the filter hashes prefixes instead of keys.
const ROWS_A_PREFIX: usize = 4;

/// Hashes of the keys of a stripe, for the key filter of its file. Computed with the stripe, so in parallel.
#[derive(Debug, Clone, Default)]
pub(crate) struct KeyHashes {
    /// Hashes of row keys; `None` if the filter hashes prefixes.
    pub(crate) keys: Option<Vec<u64>>,
    /// Hashes of the distinct prefixes, in key order.
    pub(crate) prefixes: Vec<u64>,
}

impl KeyHashes {
    /// The hashes of the keys of rows `rows`.
    pub(crate) fn of(keys: &Keys, rows: Range<usize>) -> Self {
        let prefix_of = &keys.prefix_of()[rows.clone()];
        let (Some(first), Some(last)) = (prefix_of.first(), prefix_of.last()) else { return Self::default() };
        let prefixes: Vec<u64> = (*first..=*last).map(|prefix| xxh3_64(keys.prefix(prefix as usize))).collect();

        let are_few = !keys.tail_shape().parts.is_empty() && prefixes.len() * ROWS_A_PREFIX <= rows.len();
        let mut scratch = Vec::new();
        let keys = (!are_few).then(|| {
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

/// A hash that identifies a schema, so that a stripe is not placed in a file of another one.
pub(crate) fn schema_hash(schema: &StoredSchema) -> Result<u64, serde_json::Error> {
    Ok(xxh3_64(&serde_json::to_vec(schema)?))
}
