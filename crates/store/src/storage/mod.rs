//! Storage of bytes: a local disk or a bucket, and what "durable" means there.

pub(crate) mod blobs;
pub(crate) mod bucket;
pub(crate) mod disk;
pub(crate) mod durability;
pub(crate) mod local;
pub(crate) mod reserve;
pub(crate) mod staging;
