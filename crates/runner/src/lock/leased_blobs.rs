//! Storage that is changed only while a lease holds.

use std::io::{self, Write};
use std::sync::Arc;

use bytes::Bytes;
use tidetable_blobs::{
    BlobError, BlobWriter, Blobs, ETag, Listed, Listing, OpenMode, Place, ReadAt, ReadBytes, StagingDirectory, Stat,
    Tag, WriteMode,
};

use super::lease::HeldLease;

type Result<T> = std::result::Result<T, BlobError>;

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

    fn open_writer(&self, path: &str, mode: WriteMode<'_>) -> Result<Box<dyn BlobWriter>> {
        // A parked file is taken over without a look at the lease, and finished only with one.
        if !matches!(mode, WriteMode::Parked(_)) {
            self.lease.check()?;
        }
        let inner = self.inner.open_writer(path, mode)?;
        Ok(Box::new(LeasedWriter { inner, lease: Arc::clone(&self.lease) }))
    }

    fn open_staging(&self, directory: &str, parked: Option<&str>) -> Result<Option<Box<dyn StagingDirectory>>> {
        self.lease.check()?;
        self.inner.open_staging(directory, parked)
    }

    fn read_tagged(&self, path: &str) -> Result<Option<(Bytes, Option<Tag>)>> {
        self.inner.read_tagged(path)
    }

    fn read_listed(&self, files: &[(String, Option<ETag>)]) -> Result<Vec<Option<ReadBytes>>> {
        self.inner.read_listed(files)
    }

    fn open_file(&self, path: &str, mode: OpenMode) -> Result<Arc<dyn ReadAt>> {
        self.inner.open_file(path, mode)
    }

    fn list_files(&self, directory: &str, listing: Listing<'_>) -> Result<Vec<Listed>> {
        self.inner.list_files(directory, listing)
    }

    fn list_both(&self, first: &str, second: &str) -> Result<(Vec<Listed>, Option<Vec<Listed>>)> {
        self.inner.list_both(first, second)
    }

    fn stat_all(&self, paths: &[String]) -> Result<Vec<Option<Stat>>> {
        self.inner.stat_all(paths)
    }

    fn leftovers(&self, directory: &str) -> Result<Vec<String>> {
        self.inner.leftovers(directory)
    }

    fn delete_all(&self, paths: &[String]) -> Result<()> {
        self.lease.check()?;
        self.inner.delete_all(paths)
    }

    fn place(&self) -> Place<'_> {
        self.inner.place()
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

    fn park(self: Box<Self>) -> Result<String> {
        self.lease.check()?;
        self.inner.park()
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use object_store::memory::InMemory;
    use tidetable_blobs::BucketBlobs;
    use tidetable_record::Holder;

    use super::*;
    use crate::lock::lease::{LeaseAttempt, LeaseTimes};
    use crate::lock::look::Look;

    #[test]
    fn nothing_is_written_after_the_lease_is_lost() {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
        let (store, handle) = (Arc::new(InMemory::new()), runtime.handle().clone());
        let bucket: Arc<dyn Blobs> = Arc::new(BucketBlobs::new(store, "root".into(), handle, "memory".to_owned()));
        let times = LeaseTimes { holds: Duration::from_secs(3600) };
        let attempt = || LeaseAttempt::new(Arc::clone(&bucket), "j", times);
        let Look::Taken(lease) = attempt().look().unwrap() else { panic!("it is not free") };
        let leased: &dyn Blobs = &LeasedBlobs::new(Arc::clone(&bucket), Arc::clone(&lease));
        assert!(leased.create_new("a", b"1").unwrap());
        let mut begun = leased.writer("b").unwrap();
        begun.write_all(b"2").unwrap();
        let (mut other, now) = (attempt(), Instant::now());
        assert!(matches!(other.look_at(now).unwrap(), Look::Held { .. }));
        assert!(matches!(other.look_at(now + times.holds).unwrap(), Look::Taken(_)));
        lease.tell(Holder::default());
        let tag = bucket.read_tagged("a").unwrap().unwrap().1.unwrap();
        for lost in [
            leased.create_new("c", b"").map(drop),
            leased.replace("a", b"3"),
            leased.replace_if("a", b"3", &tag).map(drop),
            leased.writer("c").map(drop),
            leased.overwrite_writer("a").map(drop),
            leased.delete("a"),
            leased.delete_all(&["a".to_owned()]),
            begun.finish(),
        ] {
            assert!(matches!(lost, Err(BlobError::LeaseLost { .. })), "{lost:?}");
        }
        assert_eq!(leased.read("a").unwrap().unwrap().as_ref(), b"1");
        assert_eq!(bucket.list("").unwrap(), ["a", "locks"]);
    }
}
