//! Storage: local disk and bucket, durability, staging directories.

pub(crate) mod at_once;
pub(crate) mod blobs;
pub(crate) mod bucket;
pub(crate) mod disk;
pub(crate) mod durability;
pub(crate) mod local;
pub(crate) mod reserve;
pub(crate) mod staging;

pub use blobs::{BlobWriter, Blobs, Bucket, ETag, Listed, ReadBytes, StagingDirectory, Stamp, Stat, Tag};
pub use bucket::{BucketBlobs, CacheUsage, DiskCache};
pub use disk::{Disk, DiskFile, OsDisk};
pub use durability::TEMPORARY;
pub use local::LocalBlobs;
pub use tidetable_sstable::ReadAt;
