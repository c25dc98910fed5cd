//! Files of a store, on a disk or in a bucket.
//!
//! [`Blobs`] is what a store needs of either: whole files that are written once and read in ranges, conditional writes, listings,
//! and directories that are replaced at once. [`LocalBlobs`] keeps them in a directory and syncs what a commit names;
//! [`BucketBlobs`] keeps them as objects, with a [`DiskCache`] of the ranges that were read.

mod at_once;
mod blobs;
mod bucket;
mod disk;
mod durability;
mod error;
mod file;
mod local;
mod place;
mod staging;
mod writer;

pub use at_once::each;
pub use blobs::{Blobs, OpenMode};
pub use bucket::{BucketBlobs, CacheUsage, DiskCache};
pub use disk::{Disk, DiskFile, OsDisk, free_bytes};
pub use durability::TEMPORARY;
pub use error::{BlobError, Result};
pub use file::{ETag, Listed, Listing, ReadBytes, Stamp, Stat, Tag};
pub use local::LocalBlobs;
pub use place::{Bucket, Capabilities, Place};
pub use staging::PART;
pub use tidetable_sstable::ReadAt;
pub use writer::{BlobWriter, StagingDirectory, WriteMode};
