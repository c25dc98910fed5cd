//! Versions, windows, loads and snapshots of a table.
//!
//! A [`Store`] holds [`Table`]s. A table is a line of [`Version`]s, each an immutable list of inputs
//! and, for each window of time, of SSTs; the newest number wins. A [`Loader`] sorts laid-out cells
//! and writes SSTs; what it returns is an [`Edit`], and [`Table::commit`] makes the next version of
//! it. A [`Snapshot`] reads one version, merging its SSTs row by row.

mod alike;
mod aside;
mod blobs;
mod bucket;
mod commit;
mod compaction;
mod disk;
mod drops;
mod emptied;
mod error;
mod fold;
mod gc;
mod health;
mod hex;
mod history;
mod ids;
mod invariants;
mod joined;
mod landed;
mod left_out;
mod limits;
mod load;
mod local;
mod manifest;
mod merge;
mod names;
mod output;
mod pin;
mod published;
mod rebase;
mod repair;
mod reserve;
mod scan;
mod shared;
mod size;
mod snapshot;
mod table;
mod vacuum;
mod verify;
mod version;

pub use blobs::{Aside, BlobWriter, Blobs, Stamp, Stat};
pub use bucket::BucketBlobs;
pub use compaction::{
    Compacted, Compaction, CompactionExtent, CompactionPlan, CompactionReason, MergePlan, Replacement,
};
pub use disk::{Disk, DiskFile, OsDisk};
pub use drops::{AppliedDrop, DropPlan, DropTarget};
pub use error::{Result, StoreError};
pub use gc::{GcError, GcRule};
pub use health::{DamagedFile, TableHealth};
pub use ids::{Ids, ulid_text};
pub use joined::Joined;
pub use left_out::{leave_out, unreadable};
#[doc(hidden)]
pub use load::order_events;
pub use load::{
    EmptyRow, Feed, FeedEnd, FileFeed, Grown, GrowthOf, InputPlan, LEAST_MEMORY, LargestRow, LoadStats, Loaded, Loader,
    Looking, Piece, Prepare, Prepared, Progress, RejectedRow, Target, UnpreparedRow,
};
pub use local::LocalBlobs;
pub use merge::slice;
pub use names::{Content, Name};
pub use pin::Pins;
pub use published::{FileState, MadeFrom, Part, PartFile, Published, file_checksum};
pub use repair::{RepairDone, RepairPlan};
pub use scan::{BlockScan, KnowStripes, ScanCounts, ScanOptions, SkipStripes};
pub use shared::Shared;
pub use snapshot::{Slice, Snapshot};
pub use table::{Store, Table};
pub use tidetable_sstable::{RecordFilter, Scalar, StripeMeta};
pub use vacuum::{Removal, RemovalKind, VacuumDone, VacuumOptions, VacuumPlan};
pub use verify::{SstReport, TableReport, VerifyOptions};
pub use version::{Edit, Input, Largest, Sst, TableIdentity, Version, WindowState};

#[doc(hidden)]
pub mod fuzzing {
    //! Manifests as bytes, for a fuzz target and for tests of old formats.
    use crate::invariants;
    use crate::manifest::{self, Manifest, Step};
    pub use crate::manifest::{decode, encode};
    use crate::version::Version;

    /// The version that the bytes of manifest `number` make of the version before.
    ///
    /// # Errors
    /// What is wrong with them.
    pub fn decode_step(bytes: &[u8], number: u64, before: &Version) -> Result<Version, String> {
        match manifest::read(bytes, number)?.0 {
            Manifest::Whole(_) => Err("it holds a version".to_owned()),
            Manifest::Step(step) => {
                let next = step.apply(before.clone())?;
                invariants::check(&next).map(|()| next)
            }
        }
    }

    /// The version of a checkpoint.
    ///
    /// # Errors
    /// What is wrong with the bytes.
    pub fn decode_checkpoint(bytes: &[u8], number: u64) -> Result<Version, String> {
        let (version, _) = manifest::decode_checkpoint(bytes, number)?;
        invariants::check(&version).map(|()| version)
    }

    /// A manifest with what `next` changes of `before`.
    ///
    /// # Errors
    /// What cannot be said in JSON.
    pub fn encode_step(before: &Version, next: &Version) -> Result<Vec<u8>, String> {
        manifest::encode_step(&Step::between(before, "", next)).map(|(bytes, _)| bytes)
    }

    /// A checkpoint.
    ///
    /// # Errors
    /// What cannot be said in JSON.
    pub fn encode_checkpoint(version: &Version) -> Result<Vec<u8>, String> {
        manifest::encode_checkpoint(version, "")
    }
}
