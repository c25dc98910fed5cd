//! Quotas and limits.

use serde::Deserialize;

/// What Bigtable's page "Quotas and limits" advises, and what the service refuses.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// The day on which the page said so, as `YYYY-MM-DD`.
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
    /// Numbers above this work, and are advised against.
    pub advised: u64,
    /// Numbers above this are refused.
    pub limit: u64,
}

impl Bound {
    /// The one of both that `number` passes, the greater first.
    pub fn passed_by(&self, number: u64) -> Option<u64> {
        [self.limit, self.advised].into_iter().find(|bound| number > *bound)
    }
}
