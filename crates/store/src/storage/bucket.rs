//! Bucket storage: S3 and other services of `object_store`, with conditional PUTs.
//!
//! The result of a conditional PUT is not reliable. A client that retries after a lost reply is refused because of
//! its own object (412); two concurrent requests may both be refused (409); and a request that failed may have been
//! executed. So after anything but success the object is read: if it holds our bytes, the PUT was ours. That is sound
//! where the bytes identify the writer, as in manifests.

use std::future::Future;
use std::io::{self, Write};
use std::ops::Range;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;

use bytes::Bytes;
use object_store::path::Path as Key;
use object_store::{
    Error, MultipartUpload, ObjectStore, ObjectStoreExt, PutMode, PutOptions, PutPayload, parse_url_opts,
};
use tidetable_sstable::ReadAt;
use tokio::runtime::Handle;
use url::Url;

use crate::error::{Result, StoreError};
use crate::storage::blobs::{BlobWriter, Blobs, Stat};

/// Conditional PUTs with unknown outcome before giving up; the client retries each several times.
const ATTEMPTS: usize = 5;
/// Larger files are uploaded in parts of this size, bytes; S3 needs 5 MiB or more.
const PART: usize = 8 << 20;

/// A prefix of a bucket.
#[derive(Debug, Clone)]
pub struct BucketBlobs {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    store: Arc<dyn ObjectStore>,
    prefix: Key,
    handle: Handle,
    name: String,
}

impl BucketBlobs {
    /// The storage at a URL such as `s3://bucket/prefix`; credentials and endpoint come from the environment
    /// (`AWS_ACCESS_KEY_ID`, `AWS_ENDPOINT` and so on).
    ///
    /// Calls block on the runtime of `handle`, so they must not be made on its worker threads.
    ///
    /// # Errors
    /// If it is not the URL of a bucket, or the environment lacks settings.
    pub fn open(url: &str, handle: Handle) -> Result<Self> {
        let wrong = |source: io::Error| StoreError::Io { action: "open", path: url.to_owned(), source };
        let parsed = Url::parse(url).map_err(|error| wrong(io::Error::new(io::ErrorKind::InvalidInput, error)))?;
        let environment =
            std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
        let inside = handle.enter();
        let (store, prefix) = parse_url_opts(&parsed, environment).map_err(|error| wrong(io::Error::other(error)))?;
        drop(inside);
        Ok(Self::new(Arc::from(store), prefix, handle, url.to_owned()))
    }

    /// The objects of `store` under `prefix`; `name` is for messages.
    pub fn new(store: Arc<dyn ObjectStore>, prefix: Key, handle: Handle, name: String) -> Self {
        Self { inner: Arc::new(Inner { store, prefix, handle, name }) }
    }
}

impl Inner {
    fn key(&self, path: &str) -> Key {
        self.prefix.parts().chain(path.split('/').map(Into::into)).collect()
    }

    /// Runs `ask` on the runtime and blocks until it is done.
    fn wait<T: Send + 'static, F: Future<Output = T> + Send + 'static>(
        &self,
        ask: impl FnOnce(Arc<dyn ObjectStore>) -> F,
    ) -> io::Result<T> {
        let (sender, receiver) = sync_channel(1);
        let asked = ask(Arc::clone(&self.store));
        self.handle.spawn(async move {
            // The receiver is gone only when the process ends.
            let _ = sender.send(asked.await);
        });
        receiver.recv().map_err(|_| io::Error::other("the runtime ended"))
    }

    fn get(&self, key: Key) -> Result<Option<Bytes>, io::Error> {
        let got = self.wait(|store| async move { store.get(&key).await?.bytes().await })?;
        match got {
            Ok(bytes) => Ok(Some(bytes)),
            Err(Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(io::Error::other(error)),
        }
    }

    fn put(&self, key: Key, bytes: Bytes, mode: PutMode) -> io::Result<Result<(), Error>> {
        self.wait(|store| async move {
            let options = PutOptions { mode, ..PutOptions::default() };
            store.put_opts(&key, PutPayload::from_bytes(bytes), options).await.map(|_| ())
        })
    }

    fn create_new(&self, key: &Key, bytes: &Bytes) -> io::Result<bool> {
        let mut last = io::Error::from(io::ErrorKind::TimedOut);
        for _ in 0..ATTEMPTS {
            match self.put(key.clone(), bytes.clone(), PutMode::Create)? {
                Ok(()) => return Ok(true),
                // Created by this client, by another, or not at all.
                Err(Error::AlreadyExists { .. } | Error::Precondition { .. }) => {}
                Err(error @ (Error::PermissionDenied { .. } | Error::Unauthenticated { .. })) => {
                    return Err(io::Error::new(io::ErrorKind::PermissionDenied, error));
                }
                Err(error @ Error::NotImplemented { .. }) => return Err(io::Error::other(error)),
                Err(error) => last = io::Error::other(error),
            }
            if let Some(found) = self.get(key.clone())? {
                return Ok(found == *bytes);
            }
        }
        Err(last)
    }

    fn upload(self: &Arc<Self>, path: &str, replaces: bool) -> Upload {
        let (bucket, key) = (Arc::clone(self), self.key(path));
        Upload { bucket, key, path: path.to_owned(), replaces, waiting: Vec::new(), parts: None }
    }
}

fn io_error(action: &'static str, path: &str) -> impl Fn(io::Error) -> StoreError + use<> {
    let path = path.to_owned();
    move |source| StoreError::Io { action, path: path.clone(), source }
}

impl Blobs for BucketBlobs {
    fn create_new(&self, path: &str, bytes: &[u8]) -> Result<bool> {
        let key = self.inner.key(path);
        self.inner.create_new(&key, &Bytes::copy_from_slice(bytes)).map_err(io_error("write", path))
    }

    fn replace(&self, path: &str, bytes: &[u8]) -> Result<()> {
        let put = self.inner.put(self.inner.key(path), Bytes::copy_from_slice(bytes), PutMode::Overwrite);
        put.and_then(|put| put.map_err(io::Error::other)).map_err(io_error("write", path))
    }

    fn writer(&self, path: &str) -> Result<Box<dyn BlobWriter>> {
        Ok(Box::new(self.inner.upload(path, false)))
    }

    fn overwrite_writer(&self, path: &str) -> Result<Box<dyn BlobWriter>> {
        Ok(Box::new(self.inner.upload(path, true)))
    }

    fn read(&self, path: &str) -> Result<Option<Bytes>> {
        self.inner.get(self.inner.key(path)).map_err(io_error("read", path))
    }

    fn open(&self, path: &str) -> Result<Arc<dyn ReadAt>> {
        let key = self.inner.key(path);
        let asked = key.clone();
        let head = self.inner.wait(|store| async move { store.head(&asked).await }).and_then(|head| {
            head.map_err(|error| match error {
                Error::NotFound { .. } => io::ErrorKind::NotFound.into(),
                error => io::Error::other(error),
            })
        });
        let len = head.map_err(io_error("open", path))?.size;
        Ok(Arc::new(Object { bucket: Arc::clone(&self.inner), key, len }))
    }

    fn list(&self, directory: &str) -> Result<Vec<String>> {
        let key = self.inner.key(directory);
        let asked = self.inner.wait(|store| async move { store.list_with_delimiter(Some(&key)).await });
        let found = asked.and_then(|found| found.map_err(io::Error::other)).map_err(io_error("list", directory))?;
        let last = |key: &Key| key.parts().next_back().map(|part| part.as_ref().to_owned());
        let objects = found.objects.iter().filter_map(|object| last(&object.location));
        let mut names: Vec<String> = objects.chain(found.common_prefixes.iter().filter_map(last)).collect();
        names.sort_unstable();
        names.dedup();
        Ok(names)
    }

    fn stat(&self, path: &str) -> Result<Option<Stat>> {
        let key = self.inner.key(path);
        let head = self.inner.wait(|store| async move { store.head(&key).await });
        let found = head.and_then(|head| match head {
            Ok(head) => {
                Ok(Some(Stat { bytes: head.size, modified: Some(head.last_modified.timestamp_micros()), stamp: None }))
            }
            Err(Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(io::Error::other(error)),
        });
        found.map_err(io_error("read metadata of", path))
    }

    fn delete(&self, path: &str) -> Result<()> {
        let key = self.inner.key(path);
        let done = self.inner.wait(|store| async move { store.delete(&key).await });
        let done = done.and_then(|done| match done {
            Ok(()) | Err(Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(io::Error::other(error)),
        });
        done.map_err(io_error("delete", path))
    }

    fn display(&self) -> String {
        self.inner.name.clone()
    }
}

/// An object read by byte ranges.
#[derive(Debug)]
struct Object {
    bucket: Arc<Inner>,
    key: Key,
    len: u64,
}

impl ReadAt for Object {
    fn len(&self) -> u64 {
        self.len
    }

    fn read_at(&self, offset: u64, len: usize) -> io::Result<Bytes> {
        let range: Range<u64> = offset..offset.saturating_add(len as u64);
        if range.end > self.len {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if range.is_empty() {
            return Ok(Bytes::new());
        }
        let key = self.key.clone();
        self.bucket.wait(|store| async move { store.get_range(&key, range).await })?.map_err(io::Error::other)
    }
}

/// An object being uploaded, visible once it is complete.
struct Upload {
    bucket: Arc<Inner>,
    key: Key,
    path: String,
    replaces: bool,
    waiting: Vec<u8>,
    /// Set after the first part was sent.
    parts: Option<Box<dyn MultipartUpload>>,
}

impl Upload {
    /// Sends the buffer as a part.
    fn send(&mut self) -> io::Result<()> {
        if self.parts.is_none() {
            let key = self.key.clone();
            let begun = self.bucket.wait(|store| async move { store.put_multipart(&key).await })?;
            self.parts = Some(begun.map_err(io::Error::other)?);
        }
        let Some(parts) = &mut self.parts else { return Ok(()) };
        let sent = parts.put_part(PutPayload::from(std::mem::take(&mut self.waiting)));
        self.bucket.wait(|_| sent)?.map_err(io::Error::other)
    }

    fn complete(&mut self, mut parts: Box<dyn MultipartUpload>) -> Result<()> {
        let failed = io_error("write", &self.path);
        if !self.waiting.is_empty() {
            self.parts = Some(parts);
            self.send().map_err(&failed)?;
            let Some(sent) = self.parts.take() else { return Ok(()) };
            parts = sent;
        }
        // Completing an upload is unconditional; names made from new ids have no other writer.
        let key = self.key.clone();
        let head = self.bucket.wait(|store| async move { store.head(&key).await }).map_err(&failed)?;
        if head.is_ok() && !self.replaces {
            return Err(StoreError::Exists { path: self.path.clone() });
        }
        let done = self.bucket.wait(|_| async move { parts.complete().await }).map_err(&failed)?;
        done.map(|_| ()).map_err(|error| failed(io::Error::other(error)))
    }
}

impl Write for Upload {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.waiting.extend_from_slice(bytes);
        if self.waiting.len() >= PART {
            self.send()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl BlobWriter for Upload {
    fn finish(mut self: Box<Self>) -> Result<()> {
        if let Some(parts) = self.parts.take() {
            return self.complete(parts);
        }
        let (failed, bytes) = (io_error("write", &self.path), Bytes::from(std::mem::take(&mut self.waiting)));
        if self.replaces {
            let put = self.bucket.put(self.key.clone(), bytes, PutMode::Overwrite).map_err(&failed)?;
            return put.map_err(|error| failed(io::Error::other(error)));
        }
        match self.bucket.create_new(&self.key, &bytes).map_err(failed)? {
            true => Ok(()),
            false => Err(StoreError::Exists { path: self.path.clone() }),
        }
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        if let Some(mut parts) = self.parts.take() {
            // Aborting may fail: unfinished uploads are invisible, and lifecycle rules remove them.
            let _ = self.bucket.wait(|_| async move { parts.abort().await });
        }
    }
}
