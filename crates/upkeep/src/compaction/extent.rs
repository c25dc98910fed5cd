//! Extent of and reason for a compaction.

/// Reason for a compaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub enum CompactionReason {
    /// Every read of their window must merge them.
    SeveralSsts,
    /// A load wrote them, less densely than a compaction would.
    Fresh,
    /// They hold tombstoned or expired cells.
    HiddenCells,
    /// Their windows are settled and can be joined into few files.
    Settled,
}

/// Extent of a compaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CompactionExtent {
    /// After a load: size-tiered, merges many SSTs of similar size within a window, for low write amplification.
    /// Unchanged windows are left alone.
    Due,
    /// All that speeds up reads: windows of several SSTs, and hidden cells.
    Needed,
    /// Also windows that would only become denser.
    Full,
}
