//! Units of scanning.

use std::ops::Range;

use tidetable_layout::KeyRange;

/// A unit of scanning for one task: a key range and the SSTs that may hold rows of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScanRange {
    /// Range of the row keys to read.
    pub keys: KeyRange,
    /// Ids of the SSTs to merge.
    pub ssts: Vec<String>,
    /// Event time, microseconds: of multi-window files only windows that overlap it are read.
    pub time: Range<i64>,
    /// Estimated bytes of the range in those SSTs.
    pub bytes: u64,
}
