//! Bytes of a file: where they come from, their checksums, and counts of what was read.

pub(crate) mod checksum;
mod counts;
mod source;

pub use counts::ReadCounts;
pub use source::{FileSource, ReadAt};
