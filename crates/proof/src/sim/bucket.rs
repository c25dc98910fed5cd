//! A bucket that loses replies.

use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::BoxStream;
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};

use crate::random::Random;

/// Wraps a bucket: one reply in `one_in` is wrong.
#[derive(Debug)]
pub struct FaultyBucket {
    inner: Arc<dyn ObjectStore>,
    random: Mutex<Random>,
    one_in: u64,
}

impl FaultyBucket {
    /// Wraps `inner`, whose replies are lost by `random`: one of `one_in` writes.
    pub fn new(inner: Arc<dyn ObjectStore>, random: Random, one_in: u64) -> Self {
        Self { inner, random: Mutex::new(random), one_in }
    }

    /// The index of the wrong reply to give, if any.
    fn wrong(&self, answers: u64) -> Option<u64> {
        let mut random = self.random.lock().unwrap_or_else(PoisonError::into_inner);
        random.one_in(self.one_in).then(|| random.below(answers))
    }
}

impl fmt::Display for FaultyBucket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} behind an unreliable line", self.inner)
    }
}

fn unavailable() -> Error {
    Error::Generic { store: "faulty", source: "503 Service Unavailable".into() }
}

fn taken(path: &Path) -> Error {
    Error::AlreadyExists { path: path.to_string(), source: "412 or 409".into() }
}

#[async_trait]
impl ObjectStore for FaultyBucket {
    async fn put_opts(&self, location: &Path, payload: PutPayload, opts: PutOptions) -> Result<PutResult> {
        match self.wrong(4) {
            None => self.inner.put_opts(location, payload, opts).await,
            // It was not done.
            Some(0) => Err(unavailable()),
            // Not done, because of a concurrent request that did not succeed either: 409.
            Some(1) if opts.mode == object_store::PutMode::Create => Err(taken(location)),
            // Done, and retried by the client: 412.
            Some(2) if opts.mode == object_store::PutMode::Create => {
                self.inner.put_opts(location, payload, opts).await.and(Err(taken(location)))
            }
            // Done, and the reply lost.
            Some(_) => self.inner.put_opts(location, payload, opts).await.and(Err(unavailable())),
        }
    }

    async fn put_multipart_opts(&self, location: &Path, opts: PutMultipartOptions) -> Result<Box<dyn MultipartUpload>> {
        self.inner.put_multipart_opts(location, opts).await
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        self.inner.get_opts(location, options).await
    }

    async fn get_ranges(&self, location: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        self.inner.get_ranges(location, ranges).await
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        self.inner.delete_stream(locations)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.inner.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.inner.copy_opts(from, to, options).await
    }
}
