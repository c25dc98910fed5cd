//! Storage that is changed only while a lease holds.

use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use tidetable_store::storage::{BlobWriter, Bucket, ReadAt, StagingDirectory, Stat, Tag};
use tidetable_store::{Blobs, StoreError};

use super::lease::HeldLease;

type Result<T> = std::result::Result<T, StoreError>;

/// The storage of a run that holds a lease: nothing is written or removed once the lease is lost. Reading goes on.
#[derive(Debug)]
pub(crate) struct LeasedBlobs {
    inner: Arc<dyn Blobs>,
    lease: Arc<HeldLease>,
}

impl LeasedBlobs {
    pub(crate) fn new(inner: Arc<dyn Blobs>, lease: Arc<HeldLease>) -> Self {
        Self { inner, lease }
    }

    fn leased(&self, writer: Box<dyn BlobWriter>) -> Box<dyn BlobWriter> {
        Box::new(LeasedWriter { inner: writer, lease: Arc::clone(&self.lease) })
    }
}

impl Blobs for LeasedBlobs {
    fn create_new(&self, path: &str, bytes: &[u8]) -> Result<bool> {
        self.lease.check()?;
        self.inner.create_new(path, bytes)
    }

    fn replace(&self, path: &str, bytes: &[u8]) -> Result<()> {
        self.lease.check()?;
        self.inner.replace(path, bytes)
    }

    fn replace_if(&self, path: &str, bytes: &[u8], tag: &Tag) -> Result<Option<Tag>> {
        self.lease.check()?;
        self.inner.replace_if(path, bytes, tag)
    }

    fn writer(&self, path: &str) -> Result<Box<dyn BlobWriter>> {
        self.lease.check()?;
        Ok(self.leased(self.inner.writer(path)?))
    }

    fn overwrite_writer(&self, path: &str) -> Result<Box<dyn BlobWriter>> {
        self.lease.check()?;
        Ok(self.leased(self.inner.overwrite_writer(path)?))
    }

    fn staging(&self, directory: &str) -> Result<Option<Box<dyn StagingDirectory>>> {
        self.lease.check()?;
        self.inner.staging(directory)
    }

    fn read(&self, path: &str) -> Result<Option<Bytes>> {
        self.inner.read(path)
    }

    fn read_tagged(&self, path: &str) -> Result<Option<(Bytes, Option<Tag>)>> {
        self.inner.read_tagged(path)
    }

    fn read_all(&self, paths: &[String]) -> Result<Vec<Option<Bytes>>> {
        self.inner.read_all(paths)
    }

    fn open(&self, path: &str) -> Result<Arc<dyn ReadAt>> {
        self.inner.open(path)
    }

    fn open_sized(&self, path: &str, len: u64) -> Result<Arc<dyn ReadAt>> {
        self.inner.open_sized(path, len)
    }

    fn list(&self, directory: &str) -> Result<Vec<String>> {
        self.inner.list(directory)
    }

    fn list_after(&self, directory: &str, after: &str) -> Result<Vec<String>> {
        self.inner.list_after(directory, after)
    }

    fn list_stats(&self, directory: &str) -> Result<Vec<(String, Stat)>> {
        self.inner.list_stats(directory)
    }

    fn stat(&self, path: &str) -> Result<Option<Stat>> {
        self.inner.stat(path)
    }

    fn leftovers(&self, directory: &str) -> Result<Vec<String>> {
        self.inner.leftovers(directory)
    }

    fn delete(&self, path: &str) -> Result<()> {
        self.lease.check()?;
        self.inner.delete(path)
    }

    fn delete_all(&self, paths: &[String]) -> Result<()> {
        self.lease.check()?;
        self.inner.delete_all(paths)
    }

    fn directory(&self) -> Option<&Path> {
        self.inner.directory()
    }

    fn bucket(&self) -> Option<Bucket> {
        self.inner.bucket()
    }

    fn can_be_full(&self) -> bool {
        self.inner.can_be_full()
    }

    fn display(&self) -> String {
        self.inner.display()
    }
}

/// A file that is finished only while a lease holds.
struct LeasedWriter {
    inner: Box<dyn BlobWriter>,
    lease: Arc<HeldLease>,
}

impl Write for LeasedWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.inner.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

impl BlobWriter for LeasedWriter {
    fn finish(self: Box<Self>) -> Result<()> {
        self.lease.check()?;
        self.inner.finish()
    }

    fn finish_as(self: Box<Self>, path: &str) -> Result<()> {
        self.lease.check()?;
        self.inner.finish_as(path)
    }
}
