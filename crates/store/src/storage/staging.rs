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

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::io::Write;
    use std::os::unix::fs::PermissionsExt;

    use bytes::Bytes;
    use tidetable_sstable::ReadAt;

    use super::*;
    use crate::storage::blobs::Blobs;
    use crate::storage::blobs::Stat;
    use crate::storage::disk::DiskFile;
    use crate::storage::disk::OsDisk;
    use crate::storage::local::LocalBlobs;
    use crate::store::Store;

    /// A disk that cannot swap directories.
    #[derive(Debug)]
    struct Plain;

    impl Disk for Plain {
        fn create(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
            OsDisk.create(path)
        }
        fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
            OsDisk.link(from, to)
        }
        fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
            OsDisk.rename(from, to)
        }
        fn remove(&self, path: &Path) -> io::Result<()> {
            OsDisk.remove(path)
        }
        fn remove_directory(&self, path: &Path) -> io::Result<()> {
            OsDisk.remove_directory(path)
        }
        fn real_directory(&self, path: &Path) -> io::Result<PathBuf> {
            OsDisk.real_directory(path)
        }
        fn copy_mode(&self, from: &Path, to: &Path) -> io::Result<()> {
            OsDisk.copy_mode(from, to)
        }
        fn make_directory(&self, path: &Path) -> io::Result<()> {
            OsDisk.make_directory(path)
        }
        fn is_directory(&self, path: &Path) -> bool {
            OsDisk.is_directory(path)
        }
        fn sync_directory(&self, path: &Path) -> io::Result<()> {
            OsDisk.sync_directory(path)
        }
        fn list(&self, path: &Path) -> io::Result<Vec<String>> {
            OsDisk.list(path)
        }
        fn read(&self, path: &Path) -> io::Result<Bytes> {
            OsDisk.read(path)
        }
        fn open(&self, path: &Path) -> io::Result<Arc<dyn ReadAt>> {
            OsDisk.open(path)
        }
        fn stat(&self, path: &Path) -> io::Result<Stat> {
            OsDisk.stat(path)
        }
    }

    fn on_both(test: impl Fn(&Arc<LocalBlobs>)) {
        for disk in [Arc::new(OsDisk) as Arc<dyn Disk>, Arc::new(Plain)] {
            let folder = tempfile::tempdir().unwrap();
            test(&Arc::new(LocalBlobs::on(disk, folder.path().join("root"))));
        }
    }

    fn filled(blobs: &LocalBlobs, folder: &str, names: &[&str]) -> Box<dyn StagingDirectory> {
        let aside = blobs.staging(folder).unwrap().unwrap();
        for name in names {
            let mut file = blobs.overwrite_writer(&format!("{folder}/started")).unwrap();
            file.write_all(name.as_bytes()).unwrap();
            file.finish_as(&format!("{}/{name}", aside.path())).unwrap();
        }
        aside
    }

    #[test]
    fn a_folder_takes_the_place_of_one_that_is_there() {
        on_both(|blobs| {
            for name in ["part-0", "part-1", "part-2", "note"] {
                blobs.create_new(&format!("exports/day/{name}"), b"old").unwrap();
            }
            let aside = filled(blobs, "exports/day", &["part-1", "part-3"]);
            assert_eq!(blobs.list("exports").unwrap(), ["day"]);
            assert_eq!(blobs.list("exports/day").unwrap().len(), 4);
            aside.swap(&|name| name.starts_with("part-")).unwrap();
            assert_eq!(blobs.list("exports/day").unwrap(), ["note", "part-1", "part-3"]);
            assert_eq!(blobs.read("exports/day/part-1").unwrap().unwrap().as_ref(), b"part-1");
            assert_eq!(blobs.read("exports/day/note").unwrap().unwrap().as_ref(), b"old");
            assert!(blobs.leftovers("").unwrap().is_empty());
        });
    }

    #[test]
    fn what_else_is_in_a_folder_stays() {
        on_both(|blobs| {
            for name in ["part-0", "note"] {
                blobs.create_new(&format!("exports/day/{name}"), b"old").unwrap();
            }
            let root = PathBuf::from(blobs.display());
            std::fs::set_permissions(root.join("exports/day"), Permissions::from_mode(0o750)).unwrap();
            let aside = filled(blobs, "exports/day", &["part-1"]);
            aside.swap(&|name| name.starts_with("part-")).unwrap();
            assert_eq!(blobs.list("exports/day").unwrap(), ["note", "part-1"]);
            // A directory with a nested directory is not replaced.
            blobs.create_new("exports/day/inner/file", b"old").unwrap();
            assert!(blobs.staging("exports/day").unwrap().is_none());
            assert_eq!(std::fs::metadata(root.join("exports/day")).unwrap().permissions().mode() & 0o777, 0o750);
            assert!(blobs.leftovers("").unwrap().is_empty());
            assert_eq!(blobs.list("").unwrap(), ["exports"]);
        });
    }

    #[test]
    fn a_link_to_a_folder_stays_one() {
        on_both(|blobs| {
            blobs.create_new("elsewhere/day/part-0", b"old").unwrap();
            blobs.create_new("exports/other", b"").unwrap();
            let root = PathBuf::from(blobs.display());
            std::os::unix::fs::symlink("../elsewhere/day", root.join("exports/day")).unwrap();
            filled(blobs, "exports/day", &["part-1"]).swap(&|_| true).unwrap();
            assert_eq!(blobs.list("elsewhere/day").unwrap(), ["part-1"]);
            assert!(root.join("exports/day").is_symlink());
        });
    }

    #[test]
    fn two_processes_of_one_number_have_folders_of_their_own() {
        on_both(|blobs| {
            let other = LocalBlobs::new(PathBuf::from(blobs.display()));
            let (one, two) = (filled(blobs, "exports/a", &["part-0"]), filled(&other, "exports/b", &["part-1"]));
            assert_ne!(one.path(), two.path());
            one.swap(&|_| true).unwrap();
            two.swap(&|_| true).unwrap();
            assert_eq!(blobs.list("exports/a").unwrap(), ["part-0"]);
            assert_eq!(blobs.list("exports/b").unwrap(), ["part-1"]);
        });
    }

    #[test]
    fn what_a_killed_process_left_is_found_and_swept() {
        on_both(|blobs| {
            let aside = filled(blobs, "exports/day", &["part-0", "part-1"]);
            std::mem::forget(aside);
            std::mem::forget(blobs.staging("exports/day").unwrap());
            let store = Store::new(Arc::clone(blobs) as Arc<dyn Blobs>);
            assert!(store.leftovers(0).unwrap().is_empty(), "they are new");
            // Two files and two directories.
            let left = store.leftovers(i64::MAX).unwrap();
            assert_eq!(left.len(), 4, "{left:?}");
            left.iter().for_each(|left| blobs.delete(&left.path).unwrap());
            assert!(store.leftovers(i64::MAX).unwrap().is_empty());
            assert_eq!(std::fs::read_dir(blobs.display()).unwrap().count(), 1);
        });
    }
}
