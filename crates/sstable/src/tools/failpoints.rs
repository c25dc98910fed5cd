//! Failpoints: planted bugs that the proofs must find. Compiled in only with the feature `planted`.

use std::sync::atomic::{AtomicU8, Ordering};

/// Declares the bugs, once for the type and for the list of all.
macro_rules! bugs {
    ($($(#[$about:meta])* $name:ident,)*) => {
        /// A bug.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[repr(u8)]
        pub enum Bug {
            $($(#[$about])* $name,)*
        }

        impl Bug {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$name),*];
        }
    };
}

bugs! {
    /// Checksums of SSTs are not compared.
    IgnoreChecksum,
    /// A lookup of the last key of a stripe starts at the next stripe.
    SeparatorOffByOne,
    /// A file lacks its last stripe.
    LoseLastStripe,
    /// A filter lacks some keys.
    FilterForgetsKey,
    /// Files are not synced.
    SkipFsync,
    /// Directories are not synced.
    SkipDirectoryFsync,
    /// A file is linked before it is synced.
    NameBeforeFsync,
    /// An existing directory is assumed to be durable.
    TrustDirectory,
    /// An error at the end of writing a file is ignored.
    IgnoreWriteError,
    /// The rest of a short write is not written.
    IgnoreShortWrite,
    /// A file under the name of an SST is accepted without checking its uid.
    AcceptAnyFile,
    /// A manifest overwrites another with its number.
    CommitWithoutCompare,
    /// A retry does not recognise that its commit has succeeded.
    ForgetPriorCommit,
    /// Drops are not applied to inputs that are reloaded.
    ForgetDropsInLoads,
    /// Vacuum removes files that only older, retained versions reference.
    VacuumRetained,
    /// Vacuum removes recent files of a commit in progress.
    VacuumUnderWay,
    /// Vacuum does not publish its watermark, so that a paused writer commits removed files.
    VacuumSaysNothing,
    /// Vacuum removes manifest deltas without a checkpoint of the oldest version.
    VacuumWithoutCheckpoint,
    /// Verify only opens files.
    VerifyOpensOnly,
    /// Names of inputs without rows are not recorded.
    ForgetCopies,
    /// A drop without effect is not recorded.
    ForgetIdleDrops,
    /// Removing an input removes its rows only from its first window.
    TakeOutOfOneWindow,
    /// A rebuild of a window restores rows that are deleted concurrently.
    ForgetDropsMeanwhile,
    /// What a grown input adds is put behind inputs that come later, whatever they hold.
    AppendWhateverComesLater,
}

/// Whether the bug of this name is planted.
#[macro_export]
macro_rules! failpoint {
    ($bug:ident) => {
        $crate::tools::failpoints::is($crate::tools::failpoints::Bug::$bug)
    };
}

/// No bug.
const NONE: u8 = u8::MAX;

static PLANTED: AtomicU8 = AtomicU8::new(NONE);

/// Whether this build has failpoints.
pub const POSSIBLE: bool = cfg!(feature = "planted");

/// Plants a bug in place of any before, or none.
pub fn plant(bug: Option<Bug>) {
    PLANTED.store(bug.map_or(NONE, |bug| bug as u8), Ordering::SeqCst);
}

/// Whether this bug is enabled.
#[inline]
pub fn is(bug: Bug) -> bool {
    POSSIBLE && PLANTED.load(Ordering::Relaxed) == bug as u8
}
