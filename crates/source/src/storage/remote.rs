//! An object as a stream of bytes, one range ahead of its reader.

use std::io;
use std::io::Read;
use std::ops::Range;
use std::sync::Arc;

use bytes::{Buf, Bytes};
use object_store::path::Path as Key;
use object_store::{Error, GetOptions, ObjectStore};
use tokio::runtime::Handle;
use tokio::task::JoinHandle;

use crate::bucket_error::{BucketAddress, BucketError};

/// Large enough that a request's latency does not matter, small enough to have two of them in memory for each file.
const RANGE: u64 = 8 << 20;

pub(super) struct RangeReader {
    store: Arc<dyn ObjectStore>,
    address: Arc<BucketAddress>,
    handle: Handle,
    key: Key,
    etag: Option<String>,
    size: u64,
    /// Start of the range to ask for next.
    next: u64,
    current: Bytes,
    ahead: Option<JoinHandle<Result<Bytes, Error>>>,
}

impl RangeReader {
    pub fn new(
        store: Arc<dyn ObjectStore>,
        address: Arc<BucketAddress>,
        handle: Handle,
        key: Key,
        etag: Option<String>,
        size: u64,
    ) -> Self {
        let mut reader = Self { store, address, handle, key, etag, size, next: 0, current: Bytes::new(), ahead: None };
        reader.ask();
        reader
    }

    fn ask(&mut self) {
        if self.next >= self.size {
            return;
        }
        let range = self.next..(self.next + RANGE).min(self.size);
        self.next = range.end;
        let (store, key, etag) = (Arc::clone(&self.store), self.key.clone(), self.etag.clone());
        self.ahead = Some(self.handle.spawn(async move { get(&*store, &key, etag, Some(range)).await }));
    }
}

impl Read for RangeReader {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.current.is_empty() {
            let Some(ahead) = self.ahead.take() else { return Ok(0) };
            let read = self.handle.block_on(ahead).map_err(io::Error::other)?;
            self.current = read.map_err(|error| io::Error::other(BucketError::new(&self.address, error)))?;
            self.ask();
        }
        let count = into.len().min(self.current.len());
        if let Some(into) = into.get_mut(..count) {
            self.current.copy_to_slice(into);
        }
        Ok(count)
    }
}

impl Drop for RangeReader {
    fn drop(&mut self) {
        if let Some(ahead) = self.ahead.take() {
            ahead.abort();
        }
    }
}

/// A whole object, unless it has changed.
pub(super) async fn fetch(store: &dyn ObjectStore, key: &Key, etag: Option<String>) -> Result<Bytes, Error> {
    get(store, key, etag, None).await
}

async fn get(
    store: &dyn ObjectStore,
    key: &Key,
    etag: Option<String>,
    range: Option<Range<u64>>,
) -> Result<Bytes, Error> {
    let options = GetOptions { if_match: etag, range: range.map(Into::into), ..GetOptions::default() };
    store.get_opts(key, options).await?.bytes().await
}
