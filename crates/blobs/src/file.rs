//! What a storage says of its files: sizes, times, and the tags by which contents are told apart.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

/// Metadata of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stat {
    /// Length of the file, bytes.
    pub bytes: u64,
    /// Time of the last write, microseconds since the epoch by the clock of the store; `None` where it is not kept.
    pub modified: Option<i64>,
    /// Stamp, to detect that the file was changed or replaced; `None` where there is none.
    pub stamp: Option<Stamp>,
}

/// File stamp: changes when a file is written or replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Stamp {
    /// Inode number: changes when the file is replaced. In a bucket a hash of the entity tag.
    pub inode: u64,
    /// Time of the last write (mtime), nanoseconds since the epoch.
    pub modified: i64,
    /// Time of the last change of content or metadata (ctime), nanoseconds since the epoch; 0 in a bucket.
    pub changed: i64,
}

/// The entity tag of an object as a list tells it: another content has another tag.
pub type ETag = String;

/// Tag of the content of an object, for [`Blobs::replace_if`](crate::Blobs::replace_if). Two writes give two tags.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tag {
    /// Its entity tag (`ETag`).
    pub e_tag: Option<String>,
    /// Its version or generation, where the service has them.
    pub version: Option<String>,
}

/// What a list of a directory tells of each file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Listing<'a> {
    /// The names of all files and directories.
    Names,
    /// The names that sort after this one; in a bucket with their tags.
    After(&'a str),
    /// The files with their metadata; in a bucket by the same request. Directories may be among them.
    Stats,
}

/// A file of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// Name within the listed directory.
    pub name: String,
    /// Entity tag, where the storage tells it.
    pub e_tag: Option<ETag>,
    /// Metadata, if the list was asked for it.
    pub stat: Option<Stat>,
}

impl Listed {
    /// A file of which only the name is known.
    pub(crate) fn named(name: String) -> Self {
        Self { name, e_tag: None, stat: None }
    }
}

/// The content of a file that was listed before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadBytes {
    /// The whole content of the file.
    pub bytes: Bytes,
    /// Whether it surely is the content that was listed, and not a later one of the same name.
    pub is_listed: bool,
}
