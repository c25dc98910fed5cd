//! Where a storage is, and what follows from it for those who use it.

use std::path::Path;
use std::sync::Arc;

use object_store::ObjectStore;
use object_store::path::Path as Key;

/// Where a storage is.
#[derive(Debug, Clone, Copy)]
pub enum Place<'a> {
    /// A directory of the local disk.
    Directory(&'a Path),
    /// The objects below a prefix of a bucket.
    Bucket {
        /// URL of the prefix, for messages.
        url: &'a str,
        /// Client of the bucket.
        client: &'a Arc<dyn ObjectStore>,
        /// Key of the prefix.
        prefix: &'a Key,
    },
    /// Somewhere else, such as the memory of a test, by name.
    Elsewhere(&'a str),
}

/// What a storage can do, and what it costs to ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capabilities {
    /// Each request waits for a reply over a network. So files are asked for several at a time and ahead of their use, and
    /// what is known is not asked again.
    pub round_trips: bool,
    /// Files and directories can be renamed, so that published files are replaced in one step, under the names that readers
    /// know. Otherwise new files get new names, and the list of an export says which ones count.
    pub renames: bool,
    /// [`Blobs::replace_if`](crate::Blobs::replace_if) compares, so that of two writers one is refused.
    pub compares: bool,
    /// Its space may run out, so that a reserve is kept for vacuum.
    pub fills: bool,
}

impl Place<'_> {
    /// What a storage at this place can do.
    pub(crate) fn capabilities(&self) -> Capabilities {
        let is_bucket = matches!(self, Self::Bucket { .. });
        Capabilities {
            round_trips: is_bucket,
            renames: !is_bucket,
            compares: is_bucket,
            fills: matches!(self, Self::Directory(_)),
        }
    }
}

/// The place of a store in a bucket, for readers that speak its protocol.
#[derive(Debug, Clone)]
pub struct Bucket {
    /// Client of the bucket.
    pub client: Arc<dyn ObjectStore>,
    /// Key of the root.
    pub prefix: Key,
}
