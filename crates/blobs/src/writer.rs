//! Files and directories that are being written: no reader sees them before they are finished.

use std::fmt::Debug;
use std::io::Write;

use crate::error::{BlobError, Result};

/// How a file begins that a [`BlobWriter`] writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteMode<'a> {
    /// Empty. Its name must be free when it is finished.
    New,
    /// Empty. Finished, it atomically replaces the file of its name.
    Replace,
    /// As another process has [parked](BlobWriter::park) it at this path. It takes no more bytes.
    Parked(&'a str),
}

/// A file being written. Dropped unfinished, it is removed.
pub trait BlobWriter: Write + Send {
    /// Makes the file durable and visible under its name.
    ///
    /// # Errors
    /// After an error the file is lost: write a new one under a new name.
    fn finish(self: Box<Self>) -> Result<()>;

    /// As [`Self::finish`], under another name: for files of a [`StagingDirectory`].
    ///
    /// # Errors
    /// As [`Self::finish`], or if the storage cannot rename.
    fn finish_as(self: Box<Self>, path: &str) -> Result<()> {
        Err(unsupported("rename", path))
    }

    /// Makes the file durable under a temporary name, which no list shows, and returns its path, so that another process
    /// finishes it ([`WriteMode::Parked`]). In a bucket the name of the file must be temporary itself.
    ///
    /// # Errors
    /// As [`Self::finish`], or if the storage cannot park files.
    fn park(self: Box<Self>) -> Result<String> {
        Err(unsupported("park", ""))
    }
}

/// A staging directory: invisible until it is swapped with another, removed if dropped before.
pub trait StagingDirectory: Debug + Send {
    /// Path inside the store, for the paths of its files.
    fn path(&self) -> &str;

    /// Swaps it with the other directory, durably and atomically: readers list the files of one or the other. Old
    /// files for which `goes` is true are removed, the rest stays.
    ///
    /// # Errors
    /// If the other directory contains a directory, or on an I/O error: then either the old or the new directory is
    /// in place, complete.
    fn swap(self: Box<Self>, goes: &dyn Fn(&str) -> bool) -> Result<()>;

    /// Leaves it as it is and returns its path, so that another process swaps it.
    fn park(self: Box<Self>) -> String;
}

/// The error of an operation that a storage does not have.
pub(crate) fn unsupported(action: &'static str, path: &str) -> BlobError {
    BlobError::Io { action, path: path.to_owned(), source: std::io::ErrorKind::Unsupported.into() }
}
