//! The real disk with named places around each call, where a process stops to be killed.

use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use tidetable_blobs::{Disk, DiskFile, OsDisk, Stat};
use tidetable_sstable::ReadAt;

/// Callback for reached places, which may kill the process: then it does not return.
pub trait Stop: std::fmt::Debug + Send + Sync {
    /// The place `before` or `after` (or in the `middle` of) a `call` about a file of the kind `what`.
    fn reached(&self, call: &'static str, what: &'static str, when: &'static str);
}

/// All places, as call, kind of file and when.
pub fn places() -> Vec<(&'static str, &'static str, &'static str)> {
    let mut places = Vec::new();
    for what in ["sst", "manifest", "checkpoint"] {
        // The checkpoint of the oldest version replaces any file of its name.
        let rename = (what == "checkpoint").then_some("rename");
        for call in ["create", "write", "sync", "link", "remove", "sync_folder"].into_iter().chain(rename) {
            places.extend(["before", "after"].map(|when| (call, what, when)));
        }
        places.push(("write", what, "middle"));
    }
    places.extend(["before", "after"].map(|when| ("make_folder", "folder", when)));
    places
}

/// The disk of the operating system, with a place before and after each call.
#[derive(Debug)]
pub struct StopDisk {
    stop: Arc<dyn Stop>,
}

impl StopDisk {
    /// A disk that calls `stop` at every place.
    pub fn new(stop: Arc<dyn Stop>) -> Self {
        Self { stop }
    }

    fn at<T>(&self, call: &'static str, what: &'static str, act: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        self.stop.reached(call, what, "before");
        let done = act()?;
        self.stop.reached(call, what, "after");
        Ok(done)
    }
}

fn kind(path: &Path) -> &'static str {
    let kinds = ["sst", "manifest", "checkpoint"];
    let found = kinds.into_iter().find(|name| path.components().any(|part| part.as_os_str() == *name));
    found.unwrap_or("folder")
}

impl Disk for StopDisk {
    fn create(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        let inner = self.at("create", kind(path), || OsDisk.create(path))?;
        Ok(Box::new(StopFile { inner, stop: Arc::clone(&self.stop), what: kind(path) }))
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.at("link", kind(to), || OsDisk.link(from, to))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.at("rename", kind(to), || OsDisk.rename(from, to))
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.at("remove", kind(path), || OsDisk.remove(path))
    }

    fn make_directory(&self, path: &Path) -> io::Result<()> {
        self.at("make_folder", "folder", || OsDisk.make_directory(path))
    }

    fn is_directory(&self, path: &Path) -> bool {
        OsDisk.is_directory(path)
    }

    fn sync_directory(&self, path: &Path) -> io::Result<()> {
        self.at("sync_folder", kind(path), || OsDisk.sync_directory(path))
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

struct StopFile {
    inner: Box<dyn DiskFile>,
    stop: Arc<dyn Stop>,
    what: &'static str,
}

impl Write for StopFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stop.reached("write", self.what, "before");
        let (first, second) = bytes.split_at(bytes.len() / 2);
        self.inner.write_all(first)?;
        self.stop.reached("write", self.what, "middle");
        self.inner.write_all(second)?;
        self.stop.reached("write", self.what, "after");
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

impl DiskFile for StopFile {
    fn sync(&mut self) -> io::Result<()> {
        self.stop.reached("sync", self.what, "before");
        self.inner.sync()?;
        self.stop.reached("sync", self.what, "after");
        Ok(())
    }
}
