//! Quotas and limits.

use serde::Deserialize;

/// What Bigtable's pages advise, and what it refuses.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// When they held.
    pub date: String,
    /// Bytes of a row key.
    pub key: Bound,
    /// Bytes of a row.
    pub row: Bound,
    /// Bytes of a cell.
    pub cell: Bound,
    /// Cells of a row.
    pub row_cells: u64,
    /// Families of a table.
    pub families: u64,
    /// Tables of an instance.
    pub tables: Bound,
}

/// A number that is advised at most, and one over which there is an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bound {
    /// Advised at most.
    pub advised: u64,
    /// The limit.
    pub limit: u64,
}

impl Bound {
    /// The one of both that `number` passes, the greater first.
    pub fn passed_by(&self, number: u64) -> Option<u64> {
        [self.limit, self.advised].into_iter().find(|bound| number > *bound)
    }
}
