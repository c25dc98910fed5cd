//! An object being uploaded, in parts of which several are sent at a time.

use std::io::{self, Write};
use std::sync::Arc;

use bytes::Bytes;
use object_store::path::Path as Key;
use object_store::{CopyMode, CopyOptions, Error, MultipartUpload, ObjectStore, ObjectStoreExt, PutMode, PutPayload};
use tidetable_source::is_missing_object;
use tokio::task::JoinHandle;

use super::client::{Client, io_error};
use crate::error::{BlobError, Result};
use crate::writer::BlobWriter;

/// Larger files are uploaded in parts of this size, bytes; S3 needs 5 MiB or more, and takes 10,000 parts.
const PART: usize = 8 << 20;

/// An upload, visible once it is complete.
pub(super) struct Upload {
    client: Arc<Client>,
    key: Key,
    path: String,
    replaces: bool,
    waiting: Vec<u8>,
    /// Bytes of the parts.
    sent: u64,
    /// Set after the first part was begun.
    parts: Option<Box<dyn MultipartUpload>>,
    /// Parts being sent, the oldest first.
    sending: Vec<JoinHandle<Result<(), Error>>>,
}

impl Upload {
    pub(super) fn new(client: &Arc<Client>, path: &str, replaces: bool) -> Self {
        Self {
            client: Arc::clone(client),
            key: client.key(path),
            path: path.to_owned(),
            replaces,
            waiting: Vec::new(),
            sent: 0,
            parts: None,
            sending: Vec::new(),
        }
    }

    /// Begins to send the buffer as a part, once there is room for it among those in flight.
    fn send(&mut self) -> io::Result<()> {
        if self.parts.is_none() {
            let key = self.key.clone();
            self.client.note_write();
            self.parts = Some(self.client.ask(|store| async move { store.put_multipart(&key).await })?);
        }

        let Some(parts) = &mut self.parts else { return Ok(()) };
        self.sent += self.waiting.len() as u64;
        let part = parts.put_part(PutPayload::from(std::mem::take(&mut self.waiting)));
        let room = Arc::clone(&self.client.parts);
        let permit = self.client.wait(|_| room.acquire_owned())?.map_err(io::Error::other)?;
        self.sending.push(self.client.spawn(async move {
            let sent = part.await;
            drop(permit);
            sent
        }));

        // A part that failed stops the file at once.
        while let Some(at) = self.sending.iter().position(JoinHandle::is_finished) {
            let done = self.sending.remove(at);
            self.joined(done)?;
        }
        Ok(())
    }

    /// Waits for a part.
    fn joined(&self, part: JoinHandle<Result<(), Error>>) -> io::Result<()> {
        let sent = self.client.wait(|_| part)?.map_err(io::Error::other)?;
        sent.map_err(|error| self.client.io(error))
    }

    /// Completes an upload of parts.
    fn complete(&mut self) -> io::Result<()> {
        if !self.waiting.is_empty() {
            self.send()?;
        }
        // Completing an upload is unconditional; names made from new ids have no other writer, so looking while the last
        // parts are under way is as good as looking after them.
        if !self.replaces && self.len()?.is_some() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        for part in std::mem::take(&mut self.sending) {
            self.joined(part)?;
        }
        let Some(mut parts) = self.parts.take() else { return Ok(()) };
        match self.client.wait(|_| async move { parts.complete().await })? {
            Ok(_) => Ok(()),
            // A retry after a lost reply does not find its upload any more.
            Err(_) if !self.replaces && self.len()? == Some(self.sent) => Ok(()),
            Err(error) => Err(self.client.io(error)),
        }
    }

    /// Bytes of the object, if it exists.
    fn len(&self) -> io::Result<Option<u64>> {
        let key = self.key.clone();
        match self.client.wait(|store| async move { store.head(&key).await })? {
            Ok(head) => Ok(Some(head.size)),
            Err(error) if is_missing_object(&error) => Ok(None),
            Err(error) => Err(self.client.io(error)),
        }
    }

    /// Puts a file that is smaller than a part.
    fn put(&mut self) -> io::Result<()> {
        let bytes = Bytes::from(std::mem::take(&mut self.waiting));
        if self.replaces {
            let put = self.client.put(self.key.clone(), bytes, PutMode::Overwrite)?;
            return put.map(|_| ()).map_err(|error| self.client.io(error));
        }
        match self.client.create_new(&self.key, &bytes)? {
            true => Ok(()),
            false => Err(io::ErrorKind::AlreadyExists.into()),
        }
    }

    fn failed(&self, error: io::Error) -> BlobError {
        match error.kind() {
            io::ErrorKind::AlreadyExists => BlobError::Exists { path: self.path.clone() },
            _ => io_error("write", &self.path)(error),
        }
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
        let done = if self.parts.is_some() { self.complete() } else { self.put() };
        done.map_err(|error| self.failed(error))
    }

    /// A large file is copied by the server from the name it was begun under.
    fn finish_as(mut self: Box<Self>, path: &str) -> Result<()> {
        let target = self.client.key(path);
        if self.parts.is_none() || target == self.key {
            self.key = target;
            path.clone_into(&mut self.path);
            return self.finish();
        }
        let copied = self.complete().and_then(|()| {
            let (from, to) = (self.key.clone(), target);
            self.client.ask(|store| async move {
                copy_over(store.as_ref(), &from, &to).await?;
                remove(store.as_ref(), &from).await
            })
        });
        copied.map_err(|error| self.failed(error))
    }

    fn park(self: Box<Self>) -> Result<String> {
        let path = self.path.clone();
        self.finish().map(|()| path)
    }
}

/// An object that another process put under a temporary name. It is removed if dropped unfinished.
pub(super) struct ParkedObject {
    client: Arc<Client>,
    /// `None` once it has its name.
    from: Option<Key>,
    target: String,
}

impl ParkedObject {
    pub(super) fn new(client: &Arc<Client>, path: &str, target: &str) -> Self {
        Self { client: Arc::clone(client), from: Some(client.key(path)), target: target.to_owned() }
    }
}

impl Write for ParkedObject {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl BlobWriter for ParkedObject {
    fn finish(self: Box<Self>) -> Result<()> {
        let target = self.target.clone();
        self.finish_as(&target)
    }

    fn finish_as(mut self: Box<Self>, path: &str) -> Result<()> {
        let Some(from) = self.from.clone() else { return Ok(()) };
        let to = self.client.key(path);
        self.client.note_write();
        let done = self.client.ask(|store| async move {
            copy_over(store.as_ref(), &from, &to).await?;
            remove(store.as_ref(), &from).await
        });
        done.map_err(io_error("write", path))?;
        self.from = None;
        Ok(())
    }
}

impl Drop for ParkedObject {
    fn drop(&mut self) {
        if let Some(from) = self.from.take() {
            // If this fails, vacuum removes it.
            let _ = self.client.ask(|store| async move { remove(store.as_ref(), &from).await });
        }
    }
}

/// Copies an object over any other.
async fn copy_over(store: &dyn ObjectStore, from: &Key, to: &Key) -> Result<(), Error> {
    match store.copy(from, to).await {
        // The client for Google Cloud in object_store 0.13.2 has the two modes of a copy the wrong way round. A right one
        // never answers so.
        Err(Error::AlreadyExists { .. }) => {
            store.copy_opts(from, to, CopyOptions { mode: CopyMode::Create, ..CopyOptions::default() }).await
        }
        done => done,
    }
}

/// Deletes an object that may be gone: a delete that is repeated after a lost reply finds none, which Google says.
async fn remove(store: &dyn ObjectStore, key: &Key) -> Result<(), Error> {
    match store.delete(key).await {
        Ok(()) | Err(Error::NotFound { .. }) => Ok(()),
        Err(error) => Err(error),
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        let sending = std::mem::take(&mut self.sending);
        sending.iter().for_each(JoinHandle::abort);
        if let Some(mut parts) = self.parts.take() {
            // Aborting may fail: unfinished uploads are invisible, and rules of the bucket remove them.
            let _ = self.client.wait(|_| async move {
                for part in sending {
                    let _ = part.await;
                }
                parts.abort().await
            });
        }
    }
}
