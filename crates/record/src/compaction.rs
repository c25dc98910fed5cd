//! Record of a compaction.

use serde::{Deserialize, Serialize};

/// A compaction of a table by a run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CompactionRecord {
    /// Name of the table that was compacted.
    pub table: String,
    /// The version before the first round.
    pub before: u64,
    /// The version after; equal to `before` if there was nothing to do.
    pub version: u64,
    /// Number of windows rewritten, wholly or in part.
    pub windows: usize,
    /// Number of SSTs removed.
    pub ssts_before: usize,
    /// Number of SSTs written.
    pub ssts_after: usize,
    /// Bytes of the removed SSTs.
    pub bytes_before: u64,
    /// Bytes of the written SSTs.
    pub bytes_after: u64,
    /// Cells removed: deleted, expired, or overwritten.
    pub cells_removed: u64,
}
