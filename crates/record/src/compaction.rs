//! What a run did to the files of a table.

use serde::{Deserialize, Serialize};

/// What a compaction did.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CompactionRecord {
    /// The table.
    pub table: String,
    /// The version it found.
    pub before: u64,
    /// The version after it; equal to `before` if there was nothing to do.
    pub version: u64,
    /// Windows it rewrote, or SSTs of them.
    pub windows: usize,
    /// SSTs that went.
    pub ssts_before: usize,
    /// SSTs that took their place.
    pub ssts_after: usize,
    /// Bytes of those that went.
    pub bytes_before: u64,
    /// Bytes of those that took their place.
    pub bytes_after: u64,
    /// Cells that were taken out: deleted, expired, or written over.
    pub cells_removed: u64,
}
