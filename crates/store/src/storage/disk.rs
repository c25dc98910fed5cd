//! What a local store asks of a disk, one call of the operating system each.
//!
//! [`LocalBlobs`](crate::LocalBlobs) says in which order they come, and that order is what makes a file durable. It is
//! apart from the calls themselves so that a proof can count them, let each fail, and drop what was not synced.

use std::fmt::Debug;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::UNIX_EPOCH;

use bytes::Bytes;
use tidetable_sstable::{FileSource, ReadAt};

use crate::storage::blobs::{Stamp, Stat};

/// Files and folders, by path. Errors are those of the operating system.
#[expect(clippy::missing_errors_doc, reason = "each is one call, and its errors are the system's")]
pub trait Disk: Debug + Send + Sync {
    /// Makes an empty file; `AlreadyExists` if the name is taken.
    fn create(&self, path: &Path) -> io::Result<Box<dyn DiskFile>>;

    /// Gives a file a second name; `AlreadyExists` if that is taken.
    fn link(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Gives a file another name, in place of the file that has it.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Exchanges the names of two folders; `Unsupported` or `InvalidInput` where that is not one call.
    fn exchange(&self, one: &Path, other: &Path) -> io::Result<()> {
        let _ = (one, other);
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Takes the name of a file away.
    fn remove(&self, path: &Path) -> io::Result<()>;

    /// The folder that a path leads to.
    fn real_folder(&self, path: &Path) -> io::Result<PathBuf> {
        Ok(path.to_owned())
    }

    /// Gives a folder the permissions of another, and its group where that is allowed.
    fn copy_mode(&self, from: &Path, to: &Path) -> io::Result<()> {
        let _ = (from, to);
        Ok(())
    }

    /// Takes the name of an empty folder away.
    fn remove_folder(&self, path: &Path) -> io::Result<()> {
        let _ = path;
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Makes a folder; `AlreadyExists` if the name is taken.
    fn make_folder(&self, path: &Path) -> io::Result<()>;

    /// Whether there is a folder of this name.
    fn is_folder(&self, path: &Path) -> bool;

    /// Makes the names in a folder durable.
    fn sync_folder(&self, path: &Path) -> io::Result<()>;

    /// The names in a folder, in any order; those that are no UTF-8 are left out.
    fn list(&self, path: &Path) -> io::Result<Vec<String>>;

    /// The whole of a file.
    fn read(&self, path: &Path) -> io::Result<Bytes>;

    /// A file for positioned reads.
    fn open(&self, path: &Path) -> io::Result<Arc<dyn ReadAt>>;

    /// Its size, and when it was last written; a disk that keeps no times says none.
    fn stat(&self, path: &Path) -> io::Result<Stat> {
        Ok(Stat { bytes: self.open(path)?.len(), modified: None, stamp: None })
    }
}

/// A file that is being written.
pub trait DiskFile: Write + Send {
    /// Makes its bytes durable, not its name.
    ///
    /// # Errors
    /// After one the bytes count as lost, whatever a second call says.
    fn sync(&mut self) -> io::Result<()>;
}

/// The disk of the operating system.
#[derive(Debug, Clone, Copy, Default)]
pub struct OsDisk;

impl Disk for OsDisk {
    fn create(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        Ok(Box::new(OpenOptions::new().write(true).create_new(true).open(path)?))
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::hard_link(from, to)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    #[cfg(any(target_os = "linux", target_vendor = "apple"))]
    fn exchange(&self, one: &Path, other: &Path) -> io::Result<()> {
        use rustix::fs::{CWD, RenameFlags, renameat_with};
        Ok(renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE)?)
    }

    fn real_folder(&self, path: &Path) -> io::Result<PathBuf> {
        fs::canonicalize(path)
    }

    #[cfg(unix)]
    fn copy_mode(&self, from: &Path, to: &Path) -> io::Result<()> {
        use std::os::unix::fs::{MetadataExt, chown};
        let wanted = fs::metadata(from)?;
        if fs::metadata(to)?.gid() != wanted.gid() {
            // Who may not give it away keeps the usual group.
            let _ = chown(to, None, Some(wanted.gid()));
        }
        fs::set_permissions(to, wanted.permissions())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn remove_folder(&self, path: &Path) -> io::Result<()> {
        fs::remove_dir(path)
    }

    fn make_folder(&self, path: &Path) -> io::Result<()> {
        fs::create_dir(path)
    }

    fn is_folder(&self, path: &Path) -> bool {
        path.is_dir()
    }

    fn sync_folder(&self, path: &Path) -> io::Result<()> {
        File::open(path)?.sync_all()
    }

    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(path)? {
            names.extend(entry?.file_name().to_str().map(str::to_owned));
        }
        Ok(names)
    }

    fn read(&self, path: &Path) -> io::Result<Bytes> {
        fs::read(path).map(Bytes::from)
    }

    fn open(&self, path: &Path) -> io::Result<Arc<dyn ReadAt>> {
        Ok(Arc::new(FileSource::new(File::open(path)?)?))
    }

    fn stat(&self, path: &Path) -> io::Result<Stat> {
        let found = fs::metadata(path)?;
        let since = found.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        let modified = since.and_then(|since| i64::try_from(since.as_micros()).ok());
        Ok(Stat { bytes: found.len(), modified, stamp: stamp(&found) })
    }
}

#[cfg(unix)]
fn stamp(found: &fs::Metadata) -> Option<Stamp> {
    use std::os::unix::fs::MetadataExt;
    let nanos = |seconds: i64, nanos: i64| seconds.saturating_mul(1_000_000_000).saturating_add(nanos);
    Some(Stamp {
        inode: found.ino(),
        modified: nanos(found.mtime(), found.mtime_nsec()),
        changed: nanos(found.ctime(), found.ctime_nsec()),
    })
}

#[cfg(not(unix))]
fn stamp(_: &fs::Metadata) -> Option<Stamp> {
    None
}

impl DiskFile for File {
    fn sync(&mut self) -> io::Result<()> {
        self.sync_all()
    }
}
