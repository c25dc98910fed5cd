//! Requests to a bucket, made from synchronous code.

use std::error::Error as StdError;
use std::future::Future;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::sync_channel;

use bytes::Bytes;
use object_store::client::HttpError;
use object_store::path::Path as Key;
use object_store::{Error, ObjectStore, ObjectStoreExt, PutMode, PutOptions, PutPayload, PutResult, UpdateVersion};
use tidetable_source::{BucketAddress, BucketError, BucketFault, Secret, is_missing_object};
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::Semaphore;

use super::disk_cache::DiskCache;
use crate::error::{BlobError, ROOT};
use crate::file::Tag;

/// Conditional PUTs with unknown outcome before giving up; the client retries each several times.
const ATTEMPTS: usize = 5;
/// Parts of uploads that are sent at a time, of all files together: their bytes are held in memory.
const PARTS_IN_FLIGHT: usize = 8;

/// Small objects that are read at a time.
pub(super) const READS: usize = 16;
/// Reads of ranges that are sent at a time.
const READS_IN_FLIGHT: usize = 32;

/// Waits for another thread. On a worker of a runtime, the tasks that wait for that worker are handed to another first.
pub(super) fn blocking<T>(wait: impl FnOnce() -> T) -> T {
    match Handle::try_current() {
        Ok(here) if here.runtime_flavor() == RuntimeFlavor::MultiThread => tokio::task::block_in_place(wait),
        _ => wait(),
    }
}

/// The client of a prefix of a bucket.
#[derive(Debug)]
pub(super) struct Client {
    pub(super) store: Arc<dyn ObjectStore>,
    pub(super) prefix: Key,
    handle: Handle,
    /// Its URL, endpoint and credential, for messages.
    pub(super) address: Arc<BucketAddress>,
    secrets: Vec<Secret>,
    /// Whether a request of this client may have changed the bucket.
    may_have_written: AtomicBool,
    /// Room for parts of uploads.
    pub(super) parts: Arc<Semaphore>,
    /// Room for reads of ranges.
    pub(super) reads: Arc<Semaphore>,
    /// Blocks on the local disk.
    pub(super) cache: Option<Arc<DiskCache>>,
}

impl Client {
    pub(super) fn new(
        store: Arc<dyn ObjectStore>,
        prefix: Key,
        handle: Handle,
        address: BucketAddress,
        secrets: Vec<Secret>,
        cache: Option<Arc<DiskCache>>,
    ) -> Self {
        Self {
            store,
            prefix,
            handle,
            address: Arc::new(address),
            secrets,
            may_have_written: AtomicBool::new(false),
            parts: Arc::new(Semaphore::new(PARTS_IN_FLIGHT)),
            reads: Arc::new(Semaphore::new(READS_IN_FLIGHT)),
            cache,
        }
    }

    /// The URL of the prefix.
    pub(super) fn url(&self) -> &str {
        &self.address.url
    }

    /// Notes that a request which is about to be sent, or was answered, may change the bucket.
    pub(super) fn note_write(&self) {
        self.may_have_written.store(true, Ordering::Relaxed);
    }

    pub(super) fn key(&self, path: &str) -> Key {
        let parts = path.split('/').filter(|part| !part.is_empty());
        self.prefix.parts().chain(parts.map(Into::into)).collect()
    }

    pub(super) fn spawn<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> tokio::task::JoinHandle<T> {
        self.handle.spawn(work)
    }

    /// Runs `ask` on the runtime and blocks until it is done.
    pub(super) fn wait<T: Send + 'static, F: Future<Output = T> + Send + 'static>(
        &self,
        ask: impl FnOnce(Arc<dyn ObjectStore>) -> F,
    ) -> io::Result<T> {
        let (sender, receiver) = sync_channel(1);
        let asked = ask(Arc::clone(&self.store));
        self.handle.spawn(async move {
            // The receiver is gone only when the process ends, the sender if the request panics.
            let _ = sender.send(asked.await);
        });
        blocking(|| {
            receiver
                .recv()
                .map_err(|_| io::Error::other("the request stopped at a fault of its client; the line before tells it"))
        })
    }

    /// As [`Self::wait`], with the errors of the store as those of I/O.
    pub(super) fn ask<T: Send + 'static, F: Future<Output = Result<T, Error>> + Send + 'static>(
        &self,
        ask: impl FnOnce(Arc<dyn ObjectStore>) -> F,
    ) -> io::Result<T> {
        self.wait(ask)?.map_err(|error| self.io(error))
    }

    /// As [`Self::ask`], of a list: one whose reply breaks off is asked again, which the client of `object_store` does for
    /// objects only.
    pub(super) fn ask_again<T: Send + 'static, F: Future<Output = Result<T, Error>> + Send + 'static>(
        &self,
        ask: impl Fn(Arc<dyn ObjectStore>) -> F,
    ) -> io::Result<T> {
        let mut left = ATTEMPTS;
        loop {
            left -= 1;
            match self.wait(&ask)? {
                Err(error) if left > 0 && broke_off(&error) => {}
                done => return done.map_err(|error| self.io(error)),
            }
        }
    }

    /// An error of the store as one of I/O, with no secret of its settings in its text.
    pub(super) fn io(&self, error: Error) -> io::Error {
        let mut text = error.to_string();
        let mut at: &dyn StdError = &error;
        while let Some(source) = at.source() {
            text.push_str(&source.to_string());
            at = source;
        }
        if self.secrets.iter().any(|secret| text.contains(secret.expose())) {
            return io::Error::other("the request failed; its error shows a secret, so it is left out");
        }
        if is_missing_object(&error) {
            return io::ErrorKind::NotFound.into();
        }
        let is_unchanged = !self.may_have_written.load(Ordering::Relaxed);
        let error = BucketError::new(&self.address, error).unchanged(is_unchanged);
        let kind = match error.fault() {
            BucketFault::Denied { .. } => io::ErrorKind::PermissionDenied,
            _ => io::ErrorKind::Other,
        };
        io::Error::new(kind, error)
    }

    pub(super) fn get(&self, key: Key) -> io::Result<Option<(Bytes, Tag)>> {
        let got = self.wait(|store| async move {
            let got = store.get(&key).await?;
            let tag = Tag { e_tag: got.meta.e_tag.clone(), version: got.meta.version.clone() };
            Ok((got.bytes().await?, tag))
        })?;
        match got {
            Ok(found) => Ok(Some(found)),
            Err(error) if is_missing_object(&error) => Ok(None),
            Err(error) => Err(self.io(error)),
        }
    }

    pub(super) fn put(&self, key: Key, bytes: Bytes, mode: PutMode) -> io::Result<Result<PutResult, Error>> {
        let put = self.wait(|store| async move {
            let options = PutOptions { mode, ..PutOptions::default() };
            store.put_opts(&key, PutPayload::from_bytes(bytes), options).await
        })?;
        let is_refused = put.as_ref().is_err_and(|error| {
            // A server that is down now may have been there for the first of the repeated requests.
            BucketFault::of(error).is_transient() == Some(false)
        });
        if !is_refused {
            self.note_write();
        }
        Ok(put)
    }

    /// Creates an object if it does not exist.
    pub(super) fn create_new(&self, key: &Key, bytes: &Bytes) -> io::Result<bool> {
        Ok(self.put_if(key, bytes, &PutMode::Create)?.is_some())
    }

    /// Replaces an object if its tag is still `tag`; returns the new tag.
    pub(super) fn replace_if(&self, key: &Key, bytes: &Bytes, tag: &Tag) -> io::Result<Option<Tag>> {
        let before = UpdateVersion { e_tag: tag.e_tag.clone(), version: tag.version.clone() };
        self.put_if(key, bytes, &PutMode::Update(before))
    }

    /// A conditional PUT, whose outcome is read back unless it is known. `None`: the object holds other bytes.
    fn put_if(&self, key: &Key, bytes: &Bytes, mode: &PutMode) -> io::Result<Option<Tag>> {
        let mut last = io::Error::from(io::ErrorKind::TimedOut);
        for _ in 0..ATTEMPTS {
            match self.put(key.clone(), bytes.clone(), mode.clone())? {
                Ok(put) => return Ok(Some(Tag { e_tag: put.e_tag, version: put.version })),
                // Written by this client, by another, or not at all. Azure and Google Cloud answer an update of a missing
                // object so, too.
                Err(Error::AlreadyExists { .. } | Error::Precondition { .. }) => {}
                Err(error) if is_missing_object(&error) => {}
                Err(error @ Error::NotImplemented { .. }) => return Err(self.io(error)),
                Err(error) if BucketFault::of(&error).is_transient() == Some(false) => return Err(self.io(error)),
                Err(error) => last = self.io(error),
            }
            match (self.get(key.clone())?, mode) {
                (Some((found, tag)), _) if found == *bytes => return Ok(Some(tag)),
                // Still as it was: nothing was written.
                (Some((_, tag)), PutMode::Update(before))
                    if tag.e_tag == before.e_tag && tag.version == before.version => {}
                (Some(_), _) | (None, PutMode::Update(_)) => return Ok(None),
                (None, _) => {}
            }
        }
        Err(last)
    }
}

/// Whether a reply broke off within its body. Of a request that the client has repeated in vain, the error of the
/// connection is not the second in the chain.
fn broke_off(error: &Error) -> bool {
    error.source().and_then(StdError::source).is_some_and(<dyn StdError>::is::<HttpError>)
}

/// An error of the store with what was attempted.
pub(super) fn io_error(action: &'static str, path: &str) -> impl Fn(io::Error) -> BlobError + use<> {
    let path = if path.is_empty() { ROOT.to_owned() } else { path.to_owned() };
    move |source| BlobError::Io { action, path: path.clone(), source }
}
