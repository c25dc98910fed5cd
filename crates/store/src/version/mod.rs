//! A version of a table: its live inputs, and the SSTs of each window.
//!
//! Versions are immutable. A [`VersionEdit`] is the change of a commit; [`Version::apply`] returns the next version
//! or the conflict, and does no I/O.

pub(crate) mod apply;
pub(crate) mod compacted;
pub(crate) mod cow_list;
pub(crate) mod edit;
pub(crate) mod identity_change;
pub(crate) mod inputs;
pub mod invariants;
pub(crate) mod multi_window;
pub(crate) mod rebase;
pub(crate) mod sst;
pub(crate) mod state;
pub(crate) mod tombstone;
pub(crate) mod window;

pub use compacted::{Compacted, Replacement, held_windows};
pub use cow_list::CowList;
pub use edit::VersionEdit;
pub use inputs::{Input, InputContent, InputName, OwedWindow, mark_lost};
pub use multi_window::MultiWindow;
pub use sst::{Sst, SstBounds};
pub(crate) use state::Origin;
pub use state::{TableIdentity, Version};
pub use tombstone::{DeleteTarget, Tombstone, overlaps};
pub use window::{WindowState, days_in};
