//! LSM storage of tables: versions, manifests, loads, compactions and snapshots.
//!
//! A [`Store`] holds [`Table`]s. A table is a sequence of [`Version`]s: immutable lists of inputs and, for each
//! window of event time, of SSTs. The one with the greatest number is current. A [`Loader`] sorts encoded cells,
//! writes SSTs and returns a [`VersionEdit`]; [`Table::commit`] publishes the next version. A [`Snapshot`] reads one
//! version, merging its SSTs row by row.

mod commit;
pub mod compaction;
mod error;
mod gc;
mod ids;
pub mod load;
pub mod maintenance;
mod manifest;
mod merge;
pub mod published;
pub mod read;
mod sst_store;
mod sst_writer;
pub mod storage;
mod store;
mod table;
pub mod tombstone;
pub mod version;

pub use error::{Result, StoreError};
pub use gc::{GcError, GcRule};
pub use ids::{Ids, ulid_text};
pub use load::Loader;
pub use manifest::hex::hex_bytes;
pub use read::{ScanRange, Snapshot};
pub use storage::{Blobs, LocalBlobs};
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
    use crate::version::Version;
    use crate::version::invariants;

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
