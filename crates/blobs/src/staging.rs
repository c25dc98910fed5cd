//! Staging directories: replace a directory of a local disk atomically.
//!
//! A part of several files is replaced as a whole: the new files are written into a staging directory, and the two
//! directories are swapped, in one call where the system has one. Readers list the old files or the new, never a
//! mixture. The staging directory is outside the published ones, so that readers do not find it.

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::disk::Disk;
use crate::durability::{TEMPORARY, sync_directory_of};
use crate::error::{BlobError, Result};
use crate::writer::StagingDirectory;

/// Prefix of the files of parts.
pub const PART: &str = "part-";

/// A staging directory on a local disk.
#[derive(Debug)]
pub(crate) struct LocalStaging {
    pub(crate) disk: Arc<dyn Disk>,
    /// Root of the store.
    pub(crate) root: PathBuf,
    /// Path of the staging directory inside the root.
    pub(crate) path: String,
    /// The directory to replace, with links resolved.
    pub(crate) directory: PathBuf,
    /// Whether another process takes it over.
    pub(crate) is_parked: bool,
}

impl LocalStaging {
    /// Whether both directories are on one disk, tested by renaming a file.
    pub(crate) fn shares_disk(&self) -> io::Result<bool> {
        let name = format!("{TEMPORARY}{}", self.path);
        let (here, there) = (self.root.join(&self.path).join(&name), self.directory.join(&name));
        drop(self.disk.create(&here)?);
        match self.disk.rename(&here, &there) {
            Ok(()) => self.disk.remove(&there).map(|()| true),
            Err(error) if error.kind() == ErrorKind::CrossesDevices => Ok(false),
            Err(error) => Err(error),
        }
    }
}

impl StagingDirectory for LocalStaging {
    fn path(&self) -> &str {
        &self.path
    }

    fn swap(self: Box<Self>, goes: &dyn Fn(&str) -> bool) -> Result<()> {
        swap(&*self.disk, &self.root.join(&self.path), &self.directory, goes).map_err(|source| BlobError::Io {
            action: "replace directory",
            path: self.directory.display().to_string(),
            source,
        })
    }

    fn park(mut self: Box<Self>) -> String {
        self.is_parked = true;
        self.path.clone()
    }
}

impl Drop for LocalStaging {
    fn drop(&mut self) {
        if self.is_parked {
            return;
        }

        // After a swap nothing is left to remove. Failures leave files for vacuum; foreign files are never removed.
        let staging = self.root.join(&self.path);
        let _ = remove_files(&*self.disk, &staging, &|name| name.starts_with(PART) || name.starts_with(TEMPORARY))
            .and_then(|()| self.disk.remove_directory(&staging));
    }
}

/// Swaps the staging directory with `directory`. Files of the latter for which `goes` is false are in place before and after.
fn swap(disk: &dyn Disk, staging: &Path, directory: &Path, goes: &dyn Fn(&str) -> bool) -> io::Result<()> {
    let goes = |name: &str| goes(name) || name.starts_with(TEMPORARY);
    for name in disk.list(directory)?.iter().filter(|name| !goes(name)) {
        // Linked into both directories, so that it is in place before and after the swap. Files that cannot be linked
        // are moved below.
        let _ = disk.link(&directory.join(name), &staging.join(name));
    }
    disk.sync_directory(staging)?;

    match disk.exchange(staging, directory) {
        // Not atomic: the directory is briefly absent.
        Err(error) if matches!(error.kind(), ErrorKind::Unsupported | ErrorKind::InvalidInput) => {
            let old = staging.with_extension("old");
            disk.rename(directory, &old)?;
            disk.rename(staging, directory)?;
            disk.rename(&old, staging)?;
        }
        exchanged => exchanged?,
    }

    // The new files are in place.
    remove_files(disk, staging, &goes)?;
    let known = disk.list(directory)?;
    for name in disk.list(staging)? {
        if known.contains(&name) {
            disk.remove(&staging.join(&name))?;
        } else {
            disk.rename(&staging.join(&name), &directory.join(&name))?;
        }
    }

    disk.sync_directory(directory)?;
    sync_directory_of(disk, directory)?;
    // Files with names that are not UTF-8 remain.
    let _ = disk.remove_directory(staging);
    sync_directory_of(disk, staging)
}

/// Removes the files of a directory for which `goes` is true.
fn remove_files(disk: &dyn Disk, directory: &Path, goes: &dyn Fn(&str) -> bool) -> io::Result<()> {
    disk.list(directory)?.iter().filter(|name| goes(name)).try_for_each(|name| disk.remove(&directory.join(name)))
}
