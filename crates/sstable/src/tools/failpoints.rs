//! Failpoints: planted bugs that the proofs must find. Compiled in only with the feature `planted`; see "Add a proof" in
//! `CONTRIBUTING.md`.

use std::sync::atomic::{AtomicU8, Ordering};

/// Declares the bugs, once for the type and for the list of all.
macro_rules! bugs {
    ($($(#[$about:meta])* $name:ident,)*) => {
        /// A bug that can be planted. Each breaks one promise of the store.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[repr(u8)]
        pub enum Bug {
            $($(#[$about])* $name,)*
        }

        impl Bug {
            /// All bugs, in the order in which `just prove-planted` runs them.
            pub const ALL: &[Self] = &[$(Self::$name),*];
        }
    };
}

bugs! {
    /// Readers do not compare the checksums of SSTs.
    IgnoreChecksum,
    /// A lookup of the last key of a stripe starts at the next stripe.
    SeparatorOffByOne,
    /// The writer leaves the last stripe of a file out of its stripe table.
    LoseLastStripe,
    /// A key filter lacks a quarter of the keys.
    FilterForgetsKey,
    /// New files are not synced before they are linked.
    SkipFsync,
    /// A directory is not synced after a file is linked in it.
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
    /// Verification opens files but does not read them.
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

/// Whether the named [`Bug`](crate::tools::failpoints::Bug) is planted now; always false without the feature `planted`.
#[macro_export]
macro_rules! failpoint {
    ($bug:ident) => {
        $crate::tools::failpoints::is($crate::tools::failpoints::Bug::$bug)
    };
}

/// The value of [`PLANTED`] without a bug.
const NONE: u8 = u8::MAX;

static PLANTED: AtomicU8 = AtomicU8::new(NONE);

/// Whether this build has failpoints, so that bugs can be planted.
pub const POSSIBLE: bool = cfg!(feature = "planted");

/// Plants a bug in place of the one before; `None` plants none. Affects the whole process.
pub fn plant(bug: Option<Bug>) {
    PLANTED.store(bug.map_or(NONE, |bug| bug as u8), Ordering::SeqCst);
}

/// Whether this bug is planted. Costs nothing in builds without failpoints.
#[inline]
pub fn is(bug: Bug) -> bool {
    POSSIBLE && PLANTED.load(Ordering::Relaxed) == bug as u8
}
