//! Storage interface: immutable files with durable, atomic creation.
//!
//! Files of a store are immutable and created once under unique names. So it needs two operations:
//! [`Blobs::create_new`], durable and atomic when it returns, and reading. What several writers change, such as a lease
//! in a bucket, is written by [`Blobs::replace_if`].

use std::fmt::Debug;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use object_store::ObjectStore;
use object_store::path::Path as Key;
use serde::{Deserialize, Serialize};
use tidetable_sstable::ReadAt;

use crate::error::{BlobError, Result};

/// Storage of immutable files, in a directory or a bucket. Paths are relative, with `/`.
pub trait Blobs: Debug + Send + Sync {
    /// Creates `path` with `bytes`, durably, if it does not exist. Returns `false` if it does.
    ///
    /// # Errors
    /// After an error `path` may or may not exist: read it back.
    fn create_new(&self, path: &str, bytes: &[u8]) -> Result<bool>;

    /// Replaces the content of `path` durably and atomically: readers see the old or the new bytes.
    ///
    /// # Errors
    /// After an error `path` holds the old or the new bytes.
    fn replace(&self, path: &str, bytes: &[u8]) -> Result<()>;

    /// Replaces the content of `path` as [`Self::replace`] does, if it is still the one that was read with `tag`. Returns
    /// the tag of the new content; `None` if another writer was first.
    ///
    /// # Errors
    /// If the storage cannot compare, as a directory; after another error `path` holds the old or the new bytes.
    fn replace_if(&self, path: &str, bytes: &[u8], tag: &Tag) -> Result<Option<Tag>> {
        let _ = (bytes, tag);
        let source = std::io::ErrorKind::Unsupported.into();
        Err(BlobError::Io { action: "compare and replace", path: path.to_owned(), source })
    }

    /// Starts a new file, visible as `path` once it is finished.
    ///
    /// # Errors
    /// If the file cannot be created.
    fn writer(&self, path: &str) -> Result<Box<dyn BlobWriter>>;

    /// Starts a file that atomically replaces `path` once it is finished.
    ///
    /// # Errors
    /// If the file cannot be created.
    fn overwrite_writer(&self, path: &str) -> Result<Box<dyn BlobWriter>>;

    /// Starts a staging directory to be swapped with `directory`; `None` where directories cannot be swapped: in a
    /// bucket, across disks, or if there is a directory inside.
    ///
    /// # Errors
    /// If it cannot be created.
    fn staging(&self, directory: &str) -> Result<Option<Box<dyn StagingDirectory>>> {
        let _ = directory;
        Ok(None)
    }

    /// The file that another process [parked](BlobWriter::park) at `path`, to be finished as `target` or another name. It
    /// takes no more bytes. Dropped unfinished, it is removed.
    ///
    /// # Errors
    /// If the storage has no parked files.
    fn parked(&self, path: &str, target: &str) -> Result<Box<dyn BlobWriter>> {
        let _ = target;
        let source = std::io::ErrorKind::Unsupported.into();
        Err(BlobError::Io { action: "take over", path: path.to_owned(), source })
    }

    /// The staging directory that another process [parked](StagingDirectory::park) at `path`, to be swapped with `directory`.
    /// Dropped before, it is removed.
    ///
    /// # Errors
    /// If the storage has no staging directories.
    fn parked_staging(&self, path: &str, directory: &str) -> Result<Box<dyn StagingDirectory>> {
        let _ = directory;
        let source = std::io::ErrorKind::Unsupported.into();
        Err(BlobError::Io { action: "take over", path: path.to_owned(), source })
    }

    /// The whole file; `None` if it does not exist.
    ///
    /// # Errors
    /// If it exists and cannot be read.
    fn read(&self, path: &str) -> Result<Option<Bytes>>;

    /// The whole file with its tag, where the storage has tags; `None` if it does not exist.
    ///
    /// # Errors
    /// If it exists and cannot be read.
    fn read_tagged(&self, path: &str) -> Result<Option<(Bytes, Option<Tag>)>> {
        Ok(self.read(path)?.map(|bytes| (bytes, None)))
    }

    /// As [`Self::read_all`], of files that [`Self::list_both`] told. In a bucket the bytes that a list told by their tag may
    /// come from a cache on the local disk.
    ///
    /// # Errors
    /// As [`Self::read`].
    fn read_listed(&self, files: &[(String, Option<ETag>)]) -> Result<Vec<Option<ReadBytes>>> {
        let paths: Vec<String> = files.iter().map(|(path, _)| path.clone()).collect();
        let read = |bytes| ReadBytes { bytes, is_listed: false };
        Ok(self.read_all(&paths)?.into_iter().map(|bytes| bytes.map(read)).collect())
    }

    /// As [`Self::read`], of many files; in a bucket several at a time.
    ///
    /// # Errors
    /// As [`Self::read`].
    fn read_all(&self, paths: &[String]) -> Result<Vec<Option<Bytes>>> {
        paths.iter().map(|path| self.read(path)).collect()
    }

    /// Opens a file for positioned reads.
    ///
    /// # Errors
    /// If it does not exist or cannot be opened.
    fn open(&self, path: &str) -> Result<Arc<dyn ReadAt>>;

    /// As [`Self::open`], for a file that must have `len` bytes and never changes. In a bucket it takes no request, and what
    /// was read is cached: a missing file, or one of another length, fails when it is read.
    ///
    /// # Errors
    /// As [`Self::open`].
    fn open_sized(&self, path: &str, len: u64) -> Result<Arc<dyn ReadAt>> {
        let _ = len;
        self.open(path)
    }

    /// As [`Self::open_sized`], but what is read comes from the storage itself, for verification.
    ///
    /// # Errors
    /// As [`Self::open`].
    fn open_fresh(&self, path: &str, len: u64) -> Result<Arc<dyn ReadAt>> {
        self.open_sized(path, len)
    }

    /// Names of the files and directories in `directory`, ascending; empty if it does not exist.
    ///
    /// # Errors
    /// If it exists and cannot be listed.
    fn list(&self, directory: &str) -> Result<Vec<String>>;

    /// The names of [`Self::list`] that sort after `after`, in a bucket with their tags.
    ///
    /// # Errors
    /// As [`Self::list`].
    fn list_after(&self, directory: &str, after: &str) -> Result<Vec<Listed>> {
        let names = self.list(directory)?.into_iter().filter(|name| name.as_str() > after);
        Ok(names.map(|name| Listed { name, e_tag: None }).collect())
    }

    /// The names of [`Self::list`] of two directories, ascending; in a bucket at a time and with their tags, and those of
    /// the second only if they are few enough for one reply.
    ///
    /// # Errors
    /// As [`Self::list`].
    fn list_both(&self, first: &str, second: &str) -> Result<(Vec<Listed>, Option<Vec<Listed>>)> {
        let _ = second;
        Ok((self.list(first)?.into_iter().map(|name| Listed { name, e_tag: None }).collect(), None))
    }

    /// The files of [`Self::list`] with their metadata, in a bucket by the same request. Directories may be among them.
    ///
    /// # Errors
    /// As [`Self::list`] and [`Self::stat`].
    fn list_stats(&self, directory: &str) -> Result<Vec<(String, Stat)>> {
        let names = self.list(directory)?;
        let with_stat = |name: String| Ok(self.stat(&format!("{directory}/{name}"))?.map(|stat| (name, stat)));
        // Files that vanished since were removed by another process.
        names.into_iter().map(with_stat).filter_map(Result::transpose).collect()
    }

    /// Metadata of a file; `None` if it does not exist.
    ///
    /// # Errors
    /// If it exists and its metadata cannot be read.
    fn stat(&self, path: &str) -> Result<Option<Stat>> {
        let bytes = self.read(path)?.map(|bytes| bytes.len() as u64);
        Ok(bytes.map(|bytes| Stat { bytes, modified: None, stamp: None }))
    }

    /// As [`Self::stat`], of many files; in a bucket in few round trips.
    ///
    /// # Errors
    /// As [`Self::stat`].
    fn stat_all(&self, paths: &[String]) -> Result<Vec<Option<Stat>>> {
        paths.iter().map(|path| self.stat(path)).collect()
    }

    /// Paths of unfinished files that killed writers left in `directory` and, at the root, of [staging
    /// directories](Self::staging); [`Self::list`] never returns them.
    ///
    /// # Errors
    /// If the directory exists and cannot be listed.
    fn leftovers(&self, directory: &str) -> Result<Vec<String>> {
        let _ = directory;
        Ok(Vec::new())
    }

    /// Removes a file or an empty staging directory; succeeds if it does not exist.
    ///
    /// # Errors
    /// If it exists and cannot be removed.
    fn delete(&self, path: &str) -> Result<()>;

    /// Removes files, in a bucket many in one request; those that do not exist count as removed.
    ///
    /// # Errors
    /// If one exists and cannot be removed; others may be removed then.
    fn delete_all(&self, paths: &[String]) -> Result<()> {
        paths.iter().try_for_each(|path| self.delete(path))
    }

    /// The directory of the local disk that it is; `None` for a bucket.
    fn directory(&self) -> Option<&Path> {
        None
    }

    /// The objects that it is; `None` for a directory.
    fn bucket(&self) -> Option<Bucket> {
        None
    }

    /// Whether it may run out of space, so that a reserve is kept for vacuum.
    fn can_be_full(&self) -> bool {
        false
    }

    /// Path or URL of the storage, for messages.
    fn display(&self) -> String;
}

/// Metadata of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stat {
    /// Its size.
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

/// A file of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// Its name.
    pub name: String,
    /// Its tag, where the storage tells it.
    pub e_tag: Option<ETag>,
}

/// The content of a file that was listed before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadBytes {
    /// All of it.
    pub bytes: Bytes,
    /// Whether it surely is the content that was listed, and not a later one of the same name.
    pub is_listed: bool,
}

/// Tag of the content of an object, for [`Blobs::replace_if`]. Two writes give two tags.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tag {
    /// Its entity tag (`ETag`).
    pub e_tag: Option<String>,
    /// Its version or generation, where the service has them.
    pub version: Option<String>,
}

/// The place of a store in a bucket, for readers that speak its protocol.
#[derive(Debug, Clone)]
pub struct Bucket {
    /// Its client.
    pub client: Arc<dyn ObjectStore>,
    /// The key of the root.
    pub prefix: Key,
}

/// A file being written.
pub trait BlobWriter: Write + Send {
    /// Makes the file durable and visible under its name.
    ///
    /// # Errors
    /// After an error the file is lost: write a new one under a new name.
    fn finish(self: Box<Self>) -> Result<()>;

    /// As [`Self::finish`], under another name: for files of a [staging directory](Blobs::staging).
    ///
    /// # Errors
    /// As [`Self::finish`], or if the storage cannot rename.
    fn finish_as(self: Box<Self>, path: &str) -> Result<()> {
        let source = std::io::ErrorKind::Unsupported.into();
        Err(BlobError::Io { action: "rename", path: path.to_owned(), source })
    }

    /// Makes the file durable under a temporary name, which no list shows, and returns its path:
    /// [`Blobs::parked`] of another process finishes it. In a bucket the name of the file must be temporary itself.
    ///
    /// # Errors
    /// As [`Self::finish`], or if the storage cannot park files.
    fn park(self: Box<Self>) -> Result<String> {
        let source = std::io::ErrorKind::Unsupported.into();
        Err(BlobError::Io { action: "park", path: String::new(), source })
    }
}

/// A staging directory: invisible until it is swapped with another, removed if dropped before.
pub trait StagingDirectory: Debug + Send {
    /// Its path, for the paths of its files.
    fn path(&self) -> &str;

    /// Swaps it with the other directory, durably and atomically: readers list the files of one or the other. Old
    /// files for which `goes` is true are removed, the rest stays.
    ///
    /// # Errors
    /// If the other directory contains a directory, or on an I/O error: then either the old or the new directory is
    /// in place, complete.
    fn swap(self: Box<Self>, goes: &dyn Fn(&str) -> bool) -> Result<()>;

    /// Leaves it as it is, for [`Blobs::parked_staging`] of another process, and returns its path.
    fn park(self: Box<Self>) -> String;
}
