//! How much is compacted, and why.

/// Why SSTs are compacted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CompactionReason {
    /// Several are merged whenever their window is read.
    SeveralSsts,
    /// They are as a load wrote them: less dense than they could be.
    Fresh,
    /// They hold cells that drops or rules hide.
    HiddenCells,
    /// They are of windows to which nothing comes any more, and which are few files together.
    Settled,
}

/// How much of a table is to be compacted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CompactionExtent {
    /// After a load: SSTs of one window that are many and about of one size, so that in the long run every byte is
    /// written few times. Windows in which nothing happens are left alone.
    Due,
    /// What readers gain from: windows of several SSTs, and those that hold hidden cells.
    Needed,
    /// Also windows that only become denser.
    Full,
}
