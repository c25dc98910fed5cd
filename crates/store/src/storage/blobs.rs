//! Where the bytes of a store lie, and what "durable" means there.
//!
//! Everything a store keeps is immutable and made once under a name of its own. So two operations
//! carry it: [`Blobs::create_new`], which is durable and atomic when it returns, and reading.

use std::fmt::Debug;
use std::io::Write;
use std::sync::Arc;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use tidetable_sstable::ReadAt;

use crate::error::{Result, StoreError};

/// A folder of immutable files, on disk or in a bucket. Paths are relative, with `/`.
pub trait Blobs: Debug + Send + Sync {
    /// Makes `path` hold `bytes`, durably, if nothing has that name. `false`: the name is taken.
    ///
    /// # Errors
    /// On an error nothing is promised about `path`: read it back.
    fn create_new(&self, path: &str, bytes: &[u8]) -> Result<bool>;

    /// Replaces `path` by `bytes`, durably and at once: readers see the old bytes or the new.
    ///
    /// # Errors
    /// On an error `path` holds the old bytes or the new.
    fn replace(&self, path: &str, bytes: &[u8]) -> Result<()>;

    /// Starts a new file that appears under `path` only when it is finished.
    ///
    /// # Errors
    /// If the file cannot be made.
    fn writer(&self, path: &str) -> Result<Box<dyn BlobWriter>>;

    /// Starts a file that takes the place of `path`, at once, when it is finished.
    ///
    /// # Errors
    /// If the file cannot be made.
    fn replacer(&self, path: &str) -> Result<Box<dyn BlobWriter>>;

    /// A new folder that is to take the place of `folder` at once; `None` where folders cannot be exchanged: in a
    /// bucket, on another disk, or if there is a folder inside.
    ///
    /// # Errors
    /// If it cannot be made.
    fn aside(&self, folder: &str) -> Result<Option<Box<dyn Staging>>> {
        let _ = folder;
        Ok(None)
    }

    /// The whole file, `None` if there is none.
    ///
    /// # Errors
    /// If it exists and cannot be read.
    fn read(&self, path: &str) -> Result<Option<Bytes>>;

    /// A file for positioned reads.
    ///
    /// # Errors
    /// If it does not exist or cannot be opened.
    fn open(&self, path: &str) -> Result<Arc<dyn ReadAt>>;

    /// Names of the files and folders in `folder`, ascending; empty if there is no such folder.
    ///
    /// # Errors
    /// If it exists and cannot be listed.
    fn list(&self, folder: &str) -> Result<Vec<String>>;

    /// Size and age of a file, `None` if there is none.
    ///
    /// # Errors
    /// If it exists and cannot be looked at.
    fn stat(&self, path: &str) -> Result<Option<Stat>> {
        let bytes = self.read(path)?.map(|bytes| bytes.len() as u64);
        Ok(bytes.map(|bytes| Stat { bytes, modified: None, stamp: None }))
    }

    /// Paths of what killed writers left in `folder` half-written, files and, at the root, folders that were filled
    /// [aside](Self::aside); [`Self::list`] never shows it.
    ///
    /// # Errors
    /// If the folder exists and cannot be listed.
    fn leftovers(&self, folder: &str) -> Result<Vec<String>> {
        let _ = folder;
        Ok(Vec::new())
    }

    /// Removes a file, or a folder that was filled aside if it is empty; fine if there is none.
    ///
    /// # Errors
    /// If it exists and cannot be removed.
    fn delete(&self, path: &str) -> Result<()>;

    /// Whether it may run out of room, so that a little is kept for what makes more.
    fn can_be_full(&self) -> bool {
        false
    }

    /// How a person calls this place.
    fn display(&self) -> String;
}

/// What is known of a file without reading it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stat {
    /// Its size.
    pub bytes: u64,
    /// When it was last written, microseconds since the epoch by the clock of the store; `None` where none is kept.
    pub modified: Option<i64>,
    /// Tells it from the same file after it was written to, and from another in its place; `None` where that is not known.
    pub stamp: Option<Stamp>,
}

/// Tells a file from what it was at another time, without reading it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stamp {
    /// Its number on its disk: a file that takes the place of another has another.
    pub inode: u64,
    /// When its bytes were last written, nanoseconds since the epoch.
    pub modified: i64,
    /// When it was last touched in any way, nanoseconds since the epoch.
    pub changed: i64,
}

/// A file being written.
pub trait BlobWriter: Write + Send {
    /// Makes the file durable and visible under its name.
    ///
    /// # Errors
    /// After an error the file is lost: write another under a new name.
    fn finish(self: Box<Self>) -> Result<()>;

    /// As [`Self::finish`], under another name: of a file of a folder that is filled [aside](Blobs::aside).
    ///
    /// # Errors
    /// As [`Self::finish`], and where a store gives no second names.
    fn finish_as(self: Box<Self>, path: &str) -> Result<()> {
        let source = std::io::ErrorKind::Unsupported.into();
        Err(StoreError::Io { action: "rename", path: path.to_owned(), source })
    }
}

/// A folder that nobody sees until it takes the place of another; removed again if it is dropped before.
pub trait Staging: Debug + Send {
    /// Path of the folder, for the names of its files.
    fn path(&self) -> &str;

    /// Puts it in the place of the other, durably and at once: who lists that sees the files of the one or of the other.
    /// Those of the other that `goes` names are removed, the rest stays.
    ///
    /// # Errors
    /// If the other folder holds a folder, which cannot stay, or on an error of the store: then either folder is there, whole.
    fn take_place(self: Box<Self>, goes: &dyn Fn(&str) -> bool) -> Result<()>;
}
