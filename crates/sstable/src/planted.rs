//! Bugs that are planted to see that a proof finds them. In a build without the feature `planted` there are none.

use std::sync::atomic::{AtomicU8, Ordering};

/// A bug.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Bug {
    /// Every checksum of an SST is taken to be right.
    IgnoreChecksum = 1,
    /// A row with the last key of a stripe is looked for behind it.
    SeparatorOffByOne,
    /// A file ends before its last stripe.
    LoseLastStripe,
    /// A filter forgets one of its keys.
    FilterForgetsKey,
    /// Files are not synced.
    SkipFsync,
    /// Folders are not synced.
    SkipFolderFsync,
    /// A file gets its name before it is synced.
    NameBeforeFsync,
    /// A folder that is there is taken to be durable.
    TrustFolder,
    /// An error at the end of writing a file is passed over.
    IgnoreWriteError,
    /// What a write did not take is not written again.
    IgnoreShortWrite,
    /// Whatever file lies under the name of an SST is read.
    AcceptAnyFile,
    /// A manifest is put over another of its number.
    CommitWithoutCompare,
    /// A commit that landed and is tried again is taken for a failed one.
    ForgetLanded,
    /// Drops do not hold for inputs that are read again.
    ForgetDropsInLoads,
    /// Vacuum removes files that the newest version does not name, whatever older versions name.
    VacuumRetained,
    /// Vacuum removes files that were written a moment ago, for a commit that is under way.
    VacuumUnderWay,
    /// Vacuum does not say in a version which files may be gone, so that a writer that slept commits them.
    VacuumSaysNothing,
    /// Vacuum does not write the oldest version out before it removes the steps that lead to it.
    VacuumWithoutCheckpoint,
    /// Verify asks only whether files can be opened.
    VerifyOpensOnly,
    /// Names of inputs that bring no rows are not kept.
    ForgetCopies,
    /// A drop that hides nothing is not kept.
    ForgetIdleDrops,
    /// An input that is taken out leaves its rows in all its windows but the first.
    TakeOutOfOneWindow,
    /// A window that is built anew while rows are deleted brings them back.
    ForgetDropsMeanwhile,
    /// What a grown input adds is put behind inputs that come later, whatever they hold.
    AppendWhateverComesLater,
}

impl Bug {
    /// All of them.
    pub const ALL: [Self; 24] = [
        Self::IgnoreChecksum,
        Self::SeparatorOffByOne,
        Self::LoseLastStripe,
        Self::FilterForgetsKey,
        Self::SkipFsync,
        Self::SkipFolderFsync,
        Self::NameBeforeFsync,
        Self::TrustFolder,
        Self::IgnoreWriteError,
        Self::IgnoreShortWrite,
        Self::AcceptAnyFile,
        Self::CommitWithoutCompare,
        Self::ForgetLanded,
        Self::ForgetDropsInLoads,
        Self::VacuumRetained,
        Self::VacuumUnderWay,
        Self::VacuumSaysNothing,
        Self::VacuumWithoutCheckpoint,
        Self::VerifyOpensOnly,
        Self::ForgetCopies,
        Self::ForgetIdleDrops,
        Self::TakeOutOfOneWindow,
        Self::ForgetDropsMeanwhile,
        Self::AppendWhateverComesLater,
    ];
}

static PLANTED: AtomicU8 = AtomicU8::new(0);

/// Whether this build can have bugs planted.
pub const POSSIBLE: bool = cfg!(feature = "planted");

/// Plants a bug in place of any before, or none.
pub fn plant(bug: Option<Bug>) {
    PLANTED.store(bug.map_or(0, |bug| bug as u8), Ordering::SeqCst);
}

/// Whether this bug is planted.
#[inline]
pub fn is(bug: Bug) -> bool {
    POSSIBLE && PLANTED.load(Ordering::Relaxed) == bug as u8
}
