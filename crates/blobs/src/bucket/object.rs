//! Objects: their metadata, and reading them by byte ranges.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use object_store::path::Path as Key;
use object_store::{ObjectMeta, ObjectStoreExt};
use tidetable_sstable::ReadAt;
use xxhash_rust::xxh3::xxh3_64;

use super::blocks::{BlockFile, Blocks};
use super::client::Client;
use crate::file::{Stamp, Stat};

/// An object of known length.
#[derive(Debug)]
pub(super) struct Object {
    pub(super) client: Arc<Client>,
    pub(super) key: Key,
    pub(super) len: u64,
}

impl ReadAt for Object {
    fn len(&self) -> u64 {
        self.len
    }

    fn read_at(&self, offset: u64, len: usize) -> io::Result<Bytes> {
        let range: Range<u64> = offset..offset.saturating_add(len as u64);
        if range.end > self.len {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if range.is_empty() {
            return Ok(Bytes::new());
        }
        let key = self.key.clone();
        self.client.ask(|store| async move { store.get_range(&key, range).await })
    }
}

/// An object that never changes, read through the cache of blocks.
#[derive(Debug)]
pub(super) struct ImmutableObject {
    pub(super) client: Arc<Client>,
    pub(super) blocks: Arc<Blocks>,
    pub(super) file: BlockFile,
}

impl ReadAt for ImmutableObject {
    fn len(&self) -> u64 {
        self.file.len
    }

    fn read_at(&self, offset: u64, len: usize) -> io::Result<Bytes> {
        let range = offset..offset.saturating_add(len as u64);
        if range.end > self.file.len {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if range.is_empty() {
            return Ok(Bytes::new());
        }
        self.blocks.read(&self.client, &self.file, &range)
    }

    fn will_read(&self, range: Range<u64>) {
        self.blocks.announce(&self.client, &self.file, &range);
    }
}

/// The last part of a key, which is the name of its file or directory.
pub(super) fn last_part(key: &Key) -> Option<String> {
    key.parts().next_back().map(|part| part.as_ref().to_owned())
}

/// Metadata of an object. It has no inode: its entity tag and version take that place in the stamp: another content has others.
pub(super) fn stat_of(object: &ObjectMeta) -> Stat {
    let modified = object.last_modified.timestamp_micros();
    let stamp = object.e_tag.as_ref().map(|e_tag| {
        let version = object.version.as_deref().unwrap_or_default();
        let inode = xxh3_64(format!("{e_tag}\0{version}").as_bytes());
        Stamp { inode, modified: modified.saturating_mul(1000), changed: 0 }
    });

    Stat { bytes: object.size, modified: Some(modified), stamp }
}
