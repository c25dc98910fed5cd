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

impl CompactionReason {
    /// The reason in words, for the log.
    pub(crate) fn words(self) -> &'static str {
        match self {
            Self::SeveralSsts => "every read merges several SSTs",
            Self::Fresh => "a load wrote it less densely",
            Self::HiddenCells => "it holds deleted or expired cells",
            Self::Settled => "its windows are settled and fit into few files",
        }
    }
}

/// Why a compaction leaves a window as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum LeftReason {
    /// All its rows lie in multi-window files.
    NoSsts,
    /// It has one sorted run, which reads do not merge.
    OneRun,
    /// It has several sorted runs, but too few of similar size to be worth a merge after each load.
    FewRuns,
    /// No tombstone and no garbage-collection rule may hide cells of its one sorted run.
    NothingHidden,
    /// It shares files with other windows, and is compacted with them.
    SharesFiles,
    /// Its cells were counted, and none is hidden.
    NothingRemoved,
    /// Another window needs several rounds; expiry is decided in the last one.
    LaterRound,
}

impl LeftReason {
    /// The reason in words, for the log.
    pub(crate) fn words(self) -> &'static str {
        match self {
            Self::NoSsts => "no SST of its own",
            Self::OneRun => "one sorted run",
            Self::FewRuns => "too few sorted runs of similar size",
            Self::NothingHidden => "one sorted run without hidden cells",
            Self::SharesFiles => "it shares files with other windows",
            Self::NothingRemoved => "no cell would be removed",
            Self::LaterRound => "left to the last round",
        }
    }
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
