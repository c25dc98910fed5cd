//! Folders of a local disk that take the place of others.
//!
//! A published day of several files is replaced as a whole: the new files are written into a folder of their own, and the two
//! folders exchange their names, in one call where the system has one. Who lists the day sees the old files or the new, never
//! some of both.

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::blobs::Aside;
use crate::disk::Disk;
use crate::error::{Result, StoreError};
use crate::local::{TEMPORARY, sync_folder_of};

/// A folder under a temporary name.
#[derive(Debug)]
pub(crate) struct LocalAside {
    pub(crate) disk: Arc<dyn Disk>,
    /// Of the store.
    pub(crate) root: PathBuf,
    /// Path inside it.
    pub(crate) path: String,
    /// Path of the folder whose place it is to take.
    pub(crate) folder: String,
}

impl LocalAside {
    /// Removes what a killed process that had our number left there.
    pub(crate) fn clear(&self) -> io::Result<()> {
        match remove_all(&*self.disk, &self.root.join(&self.path)) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }
}

impl Aside for LocalAside {
    fn path(&self) -> &str {
        &self.path
    }

    fn take_place(self: Box<Self>, goes: &dyn Fn(&str) -> bool) -> Result<()> {
        let (aside, folder) = (self.root.join(&self.path), self.root.join(&self.folder));
        take_place(&*self.disk, &aside, &folder, goes).map_err(|source| StoreError::Io {
            action: "replace the folder",
            path: self.folder.clone(),
            source,
        })
    }
}

impl Drop for LocalAside {
    fn drop(&mut self) {
        // Gone already when it took its place. What stays is swept with other leftovers.
        let _ = remove_all(&*self.disk, &self.root.join(&self.path));
    }
}

fn take_place(disk: &dyn Disk, aside: &Path, folder: &Path, goes: &dyn Fn(&str) -> bool) -> io::Result<()> {
    let names = match disk.list(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            disk.rename(aside, folder)?;
            return sync_both(disk, aside, folder);
        }
        names => names?,
    };
    for name in names.iter().filter(|name| !goes(name) && !name.starts_with(TEMPORARY)) {
        if disk.is_folder(&folder.join(name)) {
            let reason = format!("it holds a folder, {name}: move that away, nothing was replaced");
            return Err(io::Error::new(ErrorKind::DirectoryNotEmpty, reason));
        }
        // Under both names, so that it is in the folder whichever that is.
        disk.link(&folder.join(name), &aside.join(name))?;
    }
    disk.sync_folder(aside)?;
    match disk.exchange(aside, folder) {
        // Who looks in between finds no folder.
        Err(error) if matches!(error.kind(), ErrorKind::Unsupported | ErrorKind::InvalidInput) => {
            let old = aside.with_extension("old");
            disk.rename(folder, &old)?;
            disk.rename(aside, folder)?;
            disk.rename(&old, aside)?;
        }
        exchanged => exchanged?,
    }
    sync_both(disk, aside, folder)?;
    // The new files are in their place: what cannot be removed is swept later.
    let _ = remove_all(disk, aside);
    Ok(())
}

fn sync_both(disk: &dyn Disk, aside: &Path, folder: &Path) -> io::Result<()> {
    sync_folder_of(disk, folder)?;
    if aside.parent() == folder.parent() { Ok(()) } else { sync_folder_of(disk, aside) }
}

/// Removes a folder and the files in it.
fn remove_all(disk: &dyn Disk, folder: &Path) -> io::Result<()> {
    for name in disk.list(folder)? {
        disk.remove(&folder.join(name))?;
    }
    disk.remove_folder(folder)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use bytes::Bytes;
    use tidetable_sstable::ReadAt;

    use super::*;
    use crate::blobs::Blobs;
    use crate::disk::{DiskFile, OsDisk};
    use crate::local::LocalBlobs;

    /// A disk that cannot exchange names.
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
        fn remove_folder(&self, path: &Path) -> io::Result<()> {
            OsDisk.remove_folder(path)
        }
        fn make_folder(&self, path: &Path) -> io::Result<()> {
            OsDisk.make_folder(path)
        }
        fn is_folder(&self, path: &Path) -> bool {
            OsDisk.is_folder(path)
        }
        fn sync_folder(&self, path: &Path) -> io::Result<()> {
            OsDisk.sync_folder(path)
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
    }

    fn on_both(test: impl Fn(&LocalBlobs)) {
        for disk in [Arc::new(OsDisk) as Arc<dyn Disk>, Arc::new(Plain)] {
            let folder = tempfile::tempdir().unwrap();
            test(&LocalBlobs::on(disk, folder.path().join("root")));
        }
    }

    fn filled(blobs: &LocalBlobs, folder: &str, names: &[&str]) -> Box<dyn Aside> {
        let aside = blobs.aside(folder).unwrap().unwrap();
        for name in names {
            let mut file = blobs.replacer(&format!("{folder}/started")).unwrap();
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
            aside.take_place(&|name| name.starts_with("part-")).unwrap();
            assert_eq!(blobs.list("exports/day").unwrap(), ["note", "part-1", "part-3"]);
            assert_eq!(blobs.read("exports/day/part-1").unwrap().unwrap().as_ref(), b"part-1");
            assert_eq!(blobs.read("exports/day/note").unwrap().unwrap().as_ref(), b"old");
            assert!(blobs.leftovers("exports").unwrap().is_empty());
        });
    }

    #[test]
    fn a_folder_comes_where_none_is() {
        on_both(|blobs| {
            let aside = blobs.aside("exports/a/day=1").unwrap().unwrap();
            let mut file = blobs.replacer(&format!("{}/part-0", aside.path())).unwrap();
            file.write_all(b"new").unwrap();
            file.finish().unwrap();
            blobs.create_new("exports/a/day=0/part-0", b"other").unwrap();
            aside.take_place(&|_| true).unwrap();
            assert_eq!(blobs.list("exports/a/day=1").unwrap(), ["part-0"]);
            assert_eq!(blobs.list("exports/a").unwrap(), ["day=0", "day=1"]);
        });
    }

    #[test]
    fn a_folder_inside_is_in_the_way() {
        on_both(|blobs| {
            blobs.create_new("exports/day/part-0", b"old").unwrap();
            blobs.create_new("exports/day/inner/file", b"old").unwrap();
            let aside = filled(blobs, "exports/day", &["part-1"]);
            let refused = aside.take_place(&|name| name.starts_with("part-")).unwrap_err();
            assert!(refused.to_string().contains("exports/day"), "{refused}");
            assert_eq!(blobs.list("exports/day").unwrap(), ["inner", "part-0"]);
            assert!(blobs.leftovers("exports").unwrap().is_empty());
        });
    }

    #[test]
    fn what_a_killed_process_left_is_found_and_swept() {
        on_both(|blobs| {
            let aside = filled(blobs, "exports/day", &["part-0", "part-1"]);
            std::mem::forget(aside);
            let left = blobs.leftovers("exports").unwrap();
            assert_eq!(left.len(), 2, "{left:?}");
            left.iter().for_each(|path| blobs.delete(path).unwrap());
            assert!(blobs.leftovers("exports").unwrap().is_empty());
            let root = PathBuf::from(blobs.display()).join("exports");
            assert_eq!(std::fs::read_dir(root).unwrap().count(), 1);
        });
    }
}
