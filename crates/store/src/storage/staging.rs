//! Staging directories: replace a directory of a local disk atomically.
//!
//! A part of several files is replaced as a whole: the new files are written into a staging directory, and the two
//! directories are swapped, in one call where the system has one. Readers list the old files or the new, never a
//! mixture. The staging directory is outside the published ones, so that readers do not find it.

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::{Result, StoreError};
use crate::storage::blobs::StagingDirectory;
use crate::storage::disk::Disk;
use crate::storage::durability::{TEMPORARY, sync_directory_of};

/// Prefix of the files of parts.
pub(crate) const PART: &str = "part-";

/// A staging directory on a local disk.
#[derive(Debug)]
pub(crate) struct LocalStaging {
    pub(crate) disk: Arc<dyn Disk>,
    /// Of the store.
    pub(crate) root: PathBuf,
    /// Path inside it.
    pub(crate) path: String,
    /// The directory to replace, with links resolved.
    pub(crate) folder: PathBuf,
}

impl LocalStaging {
    /// Whether both directories are on one disk, tested by renaming a file.
    pub(crate) fn shares_disk(&self) -> io::Result<bool> {
        let name = format!("{TEMPORARY}{}", self.path);
        let (here, there) = (self.root.join(&self.path).join(&name), self.folder.join(&name));
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
        swap(&*self.disk, &self.root.join(&self.path), &self.folder, goes).map_err(|source| StoreError::Io {
            action: "replace directory",
            path: self.folder.display().to_string(),
            source,
        })
    }
}

impl Drop for LocalStaging {
    fn drop(&mut self) {
        // After a swap nothing is left to remove. Failures leave files for vacuum; foreign files are never removed.
        let aside = self.root.join(&self.path);
        let ours = |name: &str| name.starts_with(PART) || name.starts_with(TEMPORARY);
        let _ = remove_files(&*self.disk, &aside, &ours).and_then(|()| self.disk.remove_directory(&aside));
    }
}

fn swap(disk: &dyn Disk, aside: &Path, folder: &Path, goes: &dyn Fn(&str) -> bool) -> io::Result<()> {
    let goes = |name: &str| goes(name) || name.starts_with(TEMPORARY);
    for name in disk.list(folder)?.iter().filter(|name| !goes(name)) {
        // Linked into both directories, so that it is in place before and after the swap. Files that cannot be linked
        // are moved below.
        let _ = disk.link(&folder.join(name), &aside.join(name));
    }
    disk.sync_directory(aside)?;
    match disk.exchange(aside, folder) {
        // Not atomic: the directory is briefly absent.
        Err(error) if matches!(error.kind(), ErrorKind::Unsupported | ErrorKind::InvalidInput) => {
            let old = aside.with_extension("old");
            disk.rename(folder, &old)?;
            disk.rename(aside, folder)?;
            disk.rename(&old, aside)?;
        }
        exchanged => exchanged?,
    }
    // The new files are in place.
    remove_files(disk, aside, &goes)?;
    let known = disk.list(folder)?;
    for name in disk.list(aside)? {
        if known.contains(&name) {
            disk.remove(&aside.join(&name))?;
        } else {
            disk.rename(&aside.join(&name), &folder.join(&name))?;
        }
    }
    disk.sync_directory(folder)?;
    sync_directory_of(disk, folder)?;
    // Files with names that are not UTF-8 remain.
    let _ = disk.remove_directory(aside);
    sync_directory_of(disk, aside)
}

/// Removes the files of a directory for which `goes` is true.
fn remove_files(disk: &dyn Disk, folder: &Path, goes: &dyn Fn(&str) -> bool) -> io::Result<()> {
    disk.list(folder)?.iter().filter(|name| goes(name)).try_for_each(|name| disk.remove(&folder.join(name)))
}
