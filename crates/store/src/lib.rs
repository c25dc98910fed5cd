//! Versions, windows, loads and snapshots of a table.
//!
//! A [`Store`] holds [`Table`]s. A table is a line of [`Version`]s, each an immutable list of inputs
//! and, for each window of time, of SSTs; the newest number wins. A [`Loader`] sorts laid-out cells
//! and writes SSTs; what it returns is an [`VersionEdit`], and [`Table::commit`] makes the next version of
//! it. A [`Snapshot`] reads one version, merging its SSTs row by row.

mod commit;
mod compaction;
mod error;
mod gc;
mod ids;
mod load;
mod maintenance;
mod manifest;
mod merge;
mod published;
mod read;
mod sst_writer;
mod storage;
mod table;
mod tombstone;
mod version;

pub use compaction::{
    Compacted, Compaction, CompactionExtent, CompactionPlan, CompactionReason, MergePlan, Replacement,
};
pub use error::{Result, StoreError};
pub use gc::{GcError, GcRule};
pub use ids::{Ids, ulid_text};
#[doc(hidden)]
pub use load::order_events;
pub use load::{
    EmptyRow, Feed, FeedEnd, FileFeed, Grown, GrowthOf, InputPlan, LEAST_MEMORY, LargestRow, LoadStats, Loaded, Loader,
    Looking, Piece, Prepare, Prepared, Progress, RejectedRow, Target, UnpreparedRow,
};
pub use maintenance::health::{DamagedFile, TableHealth};
pub use maintenance::left_out::{leave_out, unreadable};
pub use maintenance::pins::Pins;
pub use maintenance::repair::{RepairDone, RepairPlan};
pub use maintenance::vacuum::{Removal, RemovalKind, VacuumDone, VacuumOptions, VacuumPlan};
pub use maintenance::verify::{SstReport, TableReport, VerifyOptions};
pub use merge::slice;
pub use published::{FileState, MadeFrom, Part, PartFile, Published, file_checksum};
pub use read::scan::{BlockScan, ScanCounts, ScanOptions, StripePruner, StripeStats};
pub use read::snapshot::{ScanRange, Snapshot};
pub use storage::blobs::{BlobWriter, Blobs, Staging, Stamp, Stat};
pub use storage::bucket::BucketBlobs;
pub use storage::disk::{Disk, DiskFile, OsDisk};
pub use storage::local::LocalBlobs;
pub use table::{Store, Table};
pub use tidetable_sstable::{RecordFilter, Scalar, StripeMeta};
pub use tombstone::{AppliedDrop, DropPlan, DropTarget};
pub use version::cow_list::CowList;
pub use version::multi_window::MultiWindow;
pub use version::names::{Content, Name};
pub use version::{Input, Largest, Sst, TableIdentity, Version, VersionEdit, WindowState};

#[doc(hidden)]
pub mod fuzzing {
    //! Manifests as bytes, for a fuzz target and for tests of old formats.
    use crate::manifest;
    use crate::manifest::Manifest;
    use crate::manifest::Step;
    pub use crate::manifest::{decode, encode};
    use crate::version::Version;
    use crate::version::invariants;

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
