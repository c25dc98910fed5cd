//! A text that has grown since it was loaded.

use crate::content_hash::ContentHash;
use crate::reader_version::ReaderVersion;
use crate::text_shape::TextShape;

/// A content that a table holds. Ordered by size.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HeldContent {
    /// The size of the content in bytes, as stored.
    pub size: u64,
    /// The hash of the content, as stored.
    pub hash: ContentHash,
    /// The rules by which it was read.
    pub reader: ReaderVersion,
    /// Where records end whatever follows, see [`crate::InputFile::breaks`].
    pub breaks: Vec<u64>,
    /// What the beginning of the content decided, see [`crate::InputFile::shape`].
    pub shape: TextShape,
}

impl HeldContent {
    /// Whether both were read in the same way.
    pub(crate) fn has_rules_of(&self, other: &Self) -> bool {
        (self.reader, &self.breaks, self.shape) == (other.reader, &other.breaks, other.shape)
    }
}

/// How much of a file was there before, and what it is now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Growth {
    /// Where the first new record begins, in bytes: all records before it are those that were there. `None` if the last record
    /// that was there goes on, so that the file must be read again.
    pub from: Option<u64>,
    /// A new break, see [`crate::InputFile::breaks`]: without it, a quoted field that is closed in the new text would take
    /// away records that were there.
    pub new_break: Option<u64>,
    /// The hash of the content that was there before.
    pub before: ContentHash,
    /// Bytes of the file as it is now.
    pub bytes: u64,
    /// The hash of the file as it is now.
    pub hash: ContentHash,
}
