//! Storage interface: immutable files with durable, atomic creation.
//!
//! Files of a store are immutable and created once under unique names. So it needs two operations:
//! [`Blobs::create_new`], durable and atomic when it returns, and reading.

use std::fmt::Debug;
use std::io::Write;
use std::sync::Arc;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use tidetable_sstable::ReadAt;

use crate::error::{Result, StoreError};

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

    /// The whole file; `None` if it does not exist.
    ///
    /// # Errors
    /// If it exists and cannot be read.
    fn read(&self, path: &str) -> Result<Option<Bytes>>;

    /// Opens a file for positioned reads.
    ///
    /// # Errors
    /// If it does not exist or cannot be opened.
    fn open(&self, path: &str) -> Result<Arc<dyn ReadAt>>;

    /// Names of the files and directories in `directory`, ascending; empty if it does not exist.
    ///
    /// # Errors
    /// If it exists and cannot be listed.
    fn list(&self, directory: &str) -> Result<Vec<String>>;

    /// Metadata of a file; `None` if it does not exist.
    ///
    /// # Errors
    /// If it exists and its metadata cannot be read.
    fn stat(&self, path: &str) -> Result<Option<Stat>> {
        let bytes = self.read(path)?.map(|bytes| bytes.len() as u64);
        Ok(bytes.map(|bytes| Stat { bytes, modified: None, stamp: None }))
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stamp {
    /// Inode number: changes when the file is replaced.
    pub inode: u64,
    /// Time of the last write (mtime), nanoseconds since the epoch.
    pub modified: i64,
    /// Time of the last change of content or metadata (ctime), nanoseconds since the epoch.
    pub changed: i64,
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
        Err(StoreError::Io { action: "rename", path: path.to_owned(), source })
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
}
