//! Versions, windows, loads and snapshots of a table.
//!
//! A [`Store`] holds [`Table`]s. A table is a line of [`Version`]s, each an immutable list of inputs
//! and, for each window of time, of SSTs; the newest number wins. A [`Loader`] sorts laid-out cells
//! and writes SSTs; what it returns is an [`Edit`], and [`Table::commit`] makes the next version of
//! it. A [`Snapshot`] reads one version, merging its SSTs row by row.

mod alike;
mod blobs;
mod bucket;
mod compaction;
mod disk;
mod drops;
mod error;
mod fold;
mod gc;
mod hex;
mod ids;
mod invariants;
mod joined;
mod landed;
mod load;
mod local;
mod manifest;
mod merge;
mod output;
mod published;
mod scan;
mod snapshot;
mod table;
mod version;

pub use blobs::{BlobWriter, Blobs};
pub use bucket::BucketBlobs;
pub use compaction::{
    Compacted, Compaction, CompactionExtent, CompactionPlan, CompactionReason, MergePlan, Replacement,
};
pub use disk::{Disk, DiskFile, OsDisk};
pub use drops::{AppliedDrop, DropPlan, DropTarget};
pub use error::{Result, StoreError};
pub use gc::{GcError, GcRule};
pub use ids::{Ids, ulid_text};
pub use joined::Joined;
#[doc(hidden)]
pub use load::order_events;
pub use load::{
    Feed, FeedEnd, FileFeed, InputPlan, LargestRow, LoadStats, Loaded, Loader, Piece, Prepare, Prepared, Progress,
    RejectedRow, Target, UnpreparedRow,
};
pub use local::LocalBlobs;
pub use merge::slice;
pub use published::{Part, Published};
pub use scan::BlockScan;
pub use snapshot::{Slice, Snapshot};
pub use table::{Store, Table};
pub use version::{Edit, Input, Sst, TableIdentity, Version, WindowState};

#[cfg(fuzzing)]
#[doc(hidden)]
pub mod fuzzing {
    //! Manifests as bytes, for a fuzz target.
    pub use crate::manifest::{decode, encode};
}
