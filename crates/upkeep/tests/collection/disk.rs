//! A disk whose faults a test decides.

use std::fmt::Debug;
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use tidetable_blobs::{Disk, DiskFile, OsDisk, Stat};
use tidetable_sstable::ReadAt;

/// A disk that cannot swap directories, and that can be set full, until the reserve is removed.
#[derive(Debug, Clone, Default)]
pub struct TestDisk {
    pub full: Arc<AtomicBool>,
}

struct File {
    file: Box<dyn DiskFile>,
    full: Arc<AtomicBool>,
}

impl Write for File {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.full.load(Ordering::Relaxed) {
            return Err(ErrorKind::StorageFull.into());
        }
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl DiskFile for File {
    fn sync(&mut self) -> io::Result<()> {
        self.file.sync()
    }
}

impl Disk for TestDisk {
    fn create(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        Ok(Box::new(File { file: OsDisk.create(path)?, full: Arc::clone(&self.full) }))
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        OsDisk.link(from, to)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        OsDisk.rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        OsDisk.remove(path)?;
        if path.ends_with(".reserve") {
            self.full.store(false, Ordering::Relaxed);
        }
        Ok(())
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

    fn remove_directory(&self, path: &Path) -> io::Result<()> {
        OsDisk.remove_directory(path)
    }

    fn real_directory(&self, path: &Path) -> io::Result<PathBuf> {
        OsDisk.real_directory(path)
    }

    fn copy_mode(&self, from: &Path, to: &Path) -> io::Result<()> {
        OsDisk.copy_mode(from, to)
    }
}
