//! Disk interface: the system calls of local storage, one each.
//!
//! [`LocalBlobs`](crate::LocalBlobs) makes files durable by the order of these calls. They are apart from it so that
//! a proof can count them, let each fail, and drop unsynced data.

use std::fmt::Debug;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::UNIX_EPOCH;

use bytes::Bytes;
use tidetable_sstable::{FileSource, ReadAt};

use crate::file::{Stamp, Stat};

/// Files and directories, by path. Errors are those of the operating system.
#[expect(clippy::missing_errors_doc, reason = "each is one call, and its errors are the system's")]
pub trait Disk: Debug + Send + Sync {
    /// Creates an empty file; `AlreadyExists` if the name is taken.
    fn create(&self, path: &Path) -> io::Result<Box<dyn DiskFile>>;

    /// Creates a hard link; `AlreadyExists` if the name is taken.
    fn link(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Renames a file, replacing any file of that name.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Swaps two directories atomically; `Unsupported` or `InvalidInput` where that is not possible.
    fn exchange(&self, one: &Path, other: &Path) -> io::Result<()> {
        let _ = (one, other);
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Removes a file; `NotFound` if it does not exist.
    fn remove(&self, path: &Path) -> io::Result<()>;

    /// Resolves links of a directory path.
    fn real_directory(&self, path: &Path) -> io::Result<PathBuf> {
        Ok(path.to_owned())
    }

    /// Copies permissions between directories, and the group where that is allowed.
    fn copy_mode(&self, from: &Path, to: &Path) -> io::Result<()> {
        let _ = (from, to);
        Ok(())
    }

    /// Removes an empty directory; another error than `NotFound` if it is not empty.
    fn remove_directory(&self, path: &Path) -> io::Result<()> {
        let _ = path;
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Creates a directory; `AlreadyExists` if the name is taken.
    fn make_directory(&self, path: &Path) -> io::Result<()>;

    /// Whether the path is a directory.
    fn is_directory(&self, path: &Path) -> bool;

    /// Syncs a directory, which makes its names durable.
    fn sync_directory(&self, path: &Path) -> io::Result<()>;

    /// The names in a directory, in any order, without those that are not UTF-8.
    fn list(&self, path: &Path) -> io::Result<Vec<String>>;

    /// Reads a whole file into memory: for manifests and lists, not for SSTs.
    fn read(&self, path: &Path) -> io::Result<Bytes>;

    /// Opens a file for positioned reads.
    fn open(&self, path: &Path) -> io::Result<Arc<dyn ReadAt>>;

    /// Metadata of a file; without times where the disk keeps none.
    fn stat(&self, path: &Path) -> io::Result<Stat> {
        Ok(Stat { bytes: self.open(path)?.len(), modified: None, stamp: None })
    }
}

/// A file being written.
pub trait DiskFile: Write + Send {
    /// Syncs its bytes, not its name.
    ///
    /// # Errors
    /// After an error the bytes count as lost, even if a second call succeeds.
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

    fn real_directory(&self, path: &Path) -> io::Result<PathBuf> {
        fs::canonicalize(path)
    }

    #[cfg(unix)]
    fn copy_mode(&self, from: &Path, to: &Path) -> io::Result<()> {
        use std::os::unix::fs::{MetadataExt, chown};
        let wanted = fs::metadata(from)?;
        if fs::metadata(to)?.gid() != wanted.gid() {
            // Without permission to change it, the directory keeps the default group.
            let _ = chown(to, None, Some(wanted.gid()));
        }
        fs::set_permissions(to, wanted.permissions())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn remove_directory(&self, path: &Path) -> io::Result<()> {
        fs::remove_dir(path)
    }

    fn make_directory(&self, path: &Path) -> io::Result<()> {
        fs::create_dir(path)
    }

    fn is_directory(&self, path: &Path) -> bool {
        path.is_dir()
    }

    fn sync_directory(&self, path: &Path) -> io::Result<()> {
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
        let since_epoch = found.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        let modified = since_epoch.and_then(|since| i64::try_from(since.as_micros()).ok());

        Ok(Stat { bytes: found.len(), modified, stamp: stamp(&found) })
    }
}

/// What tells a file from another, or from what it was before.
#[cfg(unix)]
fn stamp(found: &fs::Metadata) -> Option<Stamp> {
    use std::os::unix::fs::MetadataExt;

    Some(Stamp {
        inode: found.ino(),
        modified: nanoseconds(found.mtime(), found.mtime_nsec()),
        changed: nanoseconds(found.ctime(), found.ctime_nsec()),
    })
}

/// Nanoseconds since the epoch, of whole seconds and the nanoseconds beyond them.
#[cfg(unix)]
fn nanoseconds(seconds: i64, beyond: i64) -> i64 {
    seconds.saturating_mul(1_000_000_000).saturating_add(beyond)
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

/// Bytes that are free for this user on the disk of `directory`; `None` if they are not known.
pub fn free_bytes(directory: &Path) -> Option<u64> {
    #[cfg(any(target_os = "linux", target_vendor = "apple"))]
    {
        let disk = rustix::fs::statvfs(directory).ok()?;
        Some(disk.f_bavail.saturating_mul(disk.f_frsize))
    }
    #[cfg(not(any(target_os = "linux", target_vendor = "apple")))]
    {
        let _ = directory;
        None
    }
}
