//! A text that has grown since it was loaded.

use crate::content_hash::ContentHash;

/// How much of a file was there before, and what it is now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Growth {
    /// Where the first new record begins, in bytes: all records before it are those that were there.
    pub from: u64,
    /// The hash of the old content.
    pub before: ContentHash,
    /// Bytes of the file as it is now.
    pub bytes: u64,
    /// Their hash.
    pub hash: ContentHash,
}
