//! LSM storage of tables: versions, manifests, commits and snapshots.
//!
//! A [`Store`] holds [`Table`]s. A table is a sequence of [`Version`]s: immutable lists of inputs and, for each
//! window of event time, of SSTs. The one with the greatest number is current. [`Table::commit`] applies a [`VersionEdit`] and
//! publishes the next version. A [`Snapshot`] reads one version, merging its SSTs row by row.
//!
//! Two crates write SSTs and make edits: `tidetable-ingest` from inputs, and `tidetable-upkeep` from other SSTs. They build on
//! [`merge`], [`read`], [`mod@write`] and [`limits`].

mod commit;
mod delete;
mod error;
mod gc;
mod ids;
mod left_out;
pub mod limits;
mod log;
pub mod manifest;
pub mod merge;
pub mod published;
pub mod read;
mod reserve;
pub mod row_size;
mod sst_store;
mod store;
mod table;
pub mod tombstone;
pub mod version;
pub mod write;

pub use delete::DeletePlan;
pub use error::{Result, StoreError};
pub use gc::{GcError, GcFilter, GcRule, RemovedCells};
pub use ids::{Ids, TABLES, ulid_text};
pub use left_out::{leave_out, stated_format, unreadable};
pub use log::window_names;
pub use read::{ScanRange, Snapshot};
pub use row_size::LargestRow;
pub use sst_store::SstStore;
pub use store::Store;
pub use table::Table;
pub use version::{Input, Sst, Version, VersionEdit};

#[doc(hidden)]
pub mod fuzzing {
    //! Encoding and decoding of manifests, for a fuzz target and for tests of old formats.
    use crate::manifest;
    use crate::manifest::Manifest;
    use crate::manifest::ManifestDelta;
    pub use crate::manifest::{decode, encode};
    use crate::version::{Version, invariants};

    /// The sequence number of the next SST of a version.
    pub fn next_seqno(version: &Version) -> u64 {
        version.next_seqno()
    }

    /// Decodes manifest delta `number` and applies it to `before`.
    ///
    /// # Errors
    /// The reason why the bytes are invalid.
    pub fn decode_delta(bytes: &[u8], number: u64, before: &Version) -> Result<Version, String> {
        match manifest::read(bytes, number)?.0 {
            Manifest::Full(_) => Err("it holds a version".to_owned()),
            Manifest::Delta(delta) => {
                let next = delta.apply(before.clone())?;
                invariants::check(&next).map(|()| next)
            }
        }
    }

    /// Decodes a checkpoint.
    ///
    /// # Errors
    /// The reason why the bytes are invalid.
    pub fn decode_checkpoint(bytes: &[u8], number: u64) -> Result<Version, String> {
        let (version, _) = manifest::decode_checkpoint(bytes, number)?;
        invariants::check(&version).map(|()| version)
    }

    /// Encodes the manifest delta from `before` to `next`.
    ///
    /// # Errors
    /// If JSON cannot represent it.
    pub fn encode_delta(before: &Version, next: &Version) -> Result<Vec<u8>, String> {
        manifest::encode_delta(&ManifestDelta::between(before, "", next)).map(|(bytes, _)| bytes)
    }

    /// Encodes a checkpoint.
    ///
    /// # Errors
    /// If JSON cannot represent it.
    pub fn encode_checkpoint(version: &Version) -> Result<Vec<u8>, String> {
        manifest::encode_checkpoint(version, "")
    }
}
