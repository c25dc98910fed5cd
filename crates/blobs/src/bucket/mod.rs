//! Bucket storage: S3 and other services of `object_store`, with conditional PUTs.
//!
//! The result of a conditional PUT is not reliable. A client that retries after a lost reply is refused because of
//! its own object (412); two concurrent requests may both be refused (409); and a request that failed may have been
//! executed. So after anything but success the object is read: if it holds our bytes, the PUT was ours. That is sound
//! where the bytes identify the writer, as in manifests and leases.

mod blocks;
mod client;
mod disk_cache;
mod listed;
mod object;
mod upload;

use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use bytes::Bytes;
use futures::{StreamExt, TryStreamExt, stream};
use object_store::path::Path as Key;
use object_store::{Error, ListResult, ObjectMeta, ObjectStore, ObjectStoreExt, PutMode};
use tidetable_source::{BucketAddress, OpenedBucket, Secret, is_missing_object, open_object_store};
use tidetable_sstable::ReadAt;
use tokio::runtime::Handle;

use crate::blobs::{Blobs, OpenMode};
use crate::durability::TEMPORARY;
use crate::error::Result;
use crate::file::{ETag, Listed, Listing, ReadBytes, Stat, Tag};
use crate::place::Place;
use crate::writer::{BlobWriter, WriteMode};
use blocks::{BlockFile, Blocks};
use client::{Client, READS, io_error};
pub use disk_cache::{CacheUsage, DiskCache};
use object::{ImmutableObject, Object, last_part, stat_of};
use upload::{ParkedObject, Upload};

/// Names in a reply to a list.
const REPLY: usize = 1000;

/// Settings whose values no message shows.
const SECRETS: [&str; 6] =
    ["secret_access_key", "session_token", "service_account_key", "account_key", "sas_token", "client_secret"];

/// A prefix of a bucket.
#[derive(Debug, Clone)]
pub struct BucketBlobs {
    client: Arc<Client>,
    blocks: Arc<Blocks>,
}

impl BucketBlobs {
    /// The storage at a URL such as `s3://bucket/prefix`, with `settings` by their names in `object_store`; the environment
    /// (`AWS_ACCESS_KEY_ID`, `AWS_ENDPOINT` and so on) sets the others, as [`open_object_store`] says. What never changes is
    /// kept in `cache`, too.
    ///
    /// Calls block, and their requests run on the runtime of `handle`, which needs several threads.
    ///
    /// # Errors
    /// If it is not the URL of a bucket, or settings are missing.
    pub fn open(url: &str, settings: Vec<(String, Secret)>, cache: Option<DiskCache>, handle: Handle) -> Result<Self> {
        let OpenedBucket { store, prefix, address } = open_object_store(url, &settings, &handle)?;
        let secrets = settings.into_iter().filter(|(name, _)| SECRETS.contains(&name.as_str()));
        let secrets = secrets.map(|(_, value)| value).filter(|value| !value.expose().is_empty()).collect();

        let client = Client::new(store, prefix, handle, address, secrets, cache.map(Arc::new));
        Ok(Self { client: Arc::new(client), blocks: Arc::default() })
    }

    /// The objects of `store` under `prefix`; `name` is for messages.
    pub fn new(store: Arc<dyn ObjectStore>, prefix: Key, handle: Handle, name: String) -> Self {
        let client = Arc::new(Client::new(store, prefix, handle, BucketAddress::of_url(&name), Vec::new(), None));
        Self { client, blocks: Arc::default() }
    }

    /// As [`Self::new`], with a cache on the local disk.
    pub fn with_cache(
        store: Arc<dyn ObjectStore>,
        prefix: Key,
        handle: Handle,
        name: String,
        cache: DiskCache,
    ) -> Self {
        let address = BucketAddress::of_url(&name);
        let client = Client::new(store, prefix, handle, address, Vec::new(), Some(Arc::new(cache)));
        Self { client: Arc::new(client), blocks: Arc::default() }
    }

    /// The names directly below `directory`, ascending, also hidden ones.
    fn names(&self, directory: &str) -> Result<Vec<String>> {
        let found = self.children(directory)?;
        let objects = found.objects.iter().map(|object| &object.location);
        let keys = objects.chain(&found.common_prefixes);
        let mut names: Vec<String> = keys.filter_map(last_part).collect();
        names.sort_unstable();
        names.dedup();
        Ok(names)
    }

    /// The objects and prefixes directly below `directory`.
    fn children(&self, directory: &str) -> Result<ListResult> {
        let key = self.client.key(directory);
        let listed = self.client.ask_again(move |store| {
            let key = key.clone();
            async move { store.list_with_delimiter(Some(&key)).await }
        });
        listed.map_err(io_error("list", directory))
    }

    /// The files and directories of `directory` that sort after `after`, ascending, without hidden ones.
    fn children_after(&self, directory: &str, after: &str) -> Result<Vec<Listed>> {
        let key = self.client.key(directory);
        let depth = key.parts().count();
        let after = key.clone().join(after);
        let listed = self.client.ask_again(move |store| {
            let (key, after) = (key.clone(), after.clone());
            async move { store.list_with_offset(Some(&key), &after).try_collect::<Vec<_>>().await }
        });
        Ok(listed::children_of(listed.map_err(io_error("list", directory))?, depth))
    }

    /// Metadata of all objects below `key`, at any depth.
    fn stats_below(&self, key: Key) -> io::Result<HashMap<Key, Stat>> {
        let listed = self.client.ask_again(move |store| {
            let key = key.clone();
            async move { store.list(Some(&key)).try_collect::<Vec<ObjectMeta>>().await }
        })?;
        Ok(listed.into_iter().map(|object| (object.location.clone(), stat_of(&object))).collect())
    }

    /// Metadata of a few objects, by a request each, all at a time.
    fn heads(&self, keys: Vec<Key>) -> io::Result<Vec<Option<Stat>>> {
        self.client.ask(|store| async move {
            let heads = stream::iter(keys).map(|key| head(Arc::clone(&store), key));
            heads.buffered(READS).try_collect().await
        })
    }
}

/// The directory that has temporary objects: files of exports whose name is not known yet.
const TEMPORARY_IN: &str = "exports";

/// Metadata of an object; `None` if it does not exist.
async fn head(store: Arc<dyn ObjectStore>, key: Key) -> std::result::Result<Option<Stat>, Error> {
    match store.head(&key).await {
        Ok(head) => Ok(Some(stat_of(&head))),
        Err(error) if is_missing_object(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The longest directory that holds all `keys`; `None` if there are none.
fn common_directory(keys: &[Key]) -> Option<Key> {
    let (first, rest) = keys.split_first()?;
    let parts: Vec<_> = first.parts().collect();
    let mut depth = parts.len().saturating_sub(1);
    for key in rest {
        depth = depth.min(key.parts().zip(&parts).take_while(|(a, b)| a == *b).count());
    }

    Some(parts.into_iter().take(depth).collect())
}

impl Blobs for BucketBlobs {
    fn create_new(&self, path: &str, bytes: &[u8]) -> Result<bool> {
        let key = self.client.key(path);
        self.client.create_new(&key, &Bytes::copy_from_slice(bytes)).map_err(io_error("write", path))
    }

    fn replace(&self, path: &str, bytes: &[u8]) -> Result<()> {
        let put = self.client.put(self.client.key(path), Bytes::copy_from_slice(bytes), PutMode::Overwrite);
        let done = put.and_then(|put| put.map(drop).map_err(|error| self.client.io(error)));
        done.map_err(io_error("write", path))
    }

    fn replace_if(&self, path: &str, bytes: &[u8], tag: &Tag) -> Result<Option<Tag>> {
        let key = self.client.key(path);
        self.client.replace_if(&key, &Bytes::copy_from_slice(bytes), tag).map_err(io_error("write", path))
    }

    fn open_writer(&self, path: &str, mode: WriteMode<'_>) -> Result<Box<dyn BlobWriter>> {
        Ok(match mode {
            WriteMode::New => Box::new(Upload::new(&self.client, path, false)),
            WriteMode::Replace => Box::new(Upload::new(&self.client, path, true)),
            WriteMode::Parked(parked) => Box::new(ParkedObject::new(&self.client, parked, path)),
        })
    }

    fn read_tagged(&self, path: &str) -> Result<Option<(Bytes, Option<Tag>)>> {
        let found = self.client.get(self.client.key(path)).map_err(io_error("read", path))?;
        Ok(found.map(|(bytes, tag)| (bytes, Some(tag))))
    }

    fn read_listed(&self, files: &[(String, Option<ETag>)]) -> Result<Vec<Option<ReadBytes>>> {
        self.client.read_listed(files)
    }

    fn open_file(&self, path: &str, mode: OpenMode) -> Result<Arc<dyn ReadAt>> {
        let key = self.client.key(path);
        let (len, is_fresh) = match mode {
            OpenMode::Sized(len) => (len, false),
            OpenMode::Fresh(len) => (len, true),
            OpenMode::Now => {
                let asked = key.clone();
                let head = self.client.ask(|store| async move { store.head(&asked).await });
                let len = head.map_err(io_error("open", path))?.size;
                return Ok(Arc::new(Object { client: Arc::clone(&self.client), key, len }));
            }
        };

        let (client, blocks) = (Arc::clone(&self.client), Arc::clone(&self.blocks));
        Ok(Arc::new(ImmutableObject { client, blocks, file: BlockFile::new(path, key, len, is_fresh) }))
    }

    fn list_files(&self, directory: &str, listing: Listing<'_>) -> Result<Vec<Listed>> {
        match listing {
            Listing::Names => {
                let names = self.names(directory)?.into_iter().filter(|name| !name.starts_with('.'));
                Ok(names.map(Listed::named).collect())
            }
            Listing::After(after) => self.children_after(directory, after),
            Listing::Stats => Ok(listed::files_of(self.children(directory)?.objects)),
        }
    }

    fn list_both(&self, first: &str, second: &str) -> Result<(Vec<Listed>, Option<Vec<Listed>>)> {
        let (first_key, second_key) = (self.client.key(first), self.client.key(second));
        let listed = self.client.ask_again(move |store| {
            let (first_key, second_key) = (first_key.clone(), second_key.clone());
            async move {
                let of_second = store.list(Some(&second_key)).take(REPLY).try_collect::<Vec<_>>();
                let (first, second) = futures::try_join!(store.list_with_delimiter(Some(&first_key)), of_second)?;
                let all = second.len() < REPLY;
                Ok((listed::files_of(first.objects), all.then(|| listed::files_of(second))))
            }
        });
        listed.map_err(io_error("list", first))
    }

    fn leftovers(&self, directory: &str) -> Result<Vec<String>> {
        if directory != TEMPORARY_IN {
            return Ok(Vec::new());
        }
        let names = self.names(directory)?.into_iter().filter(|name| name.starts_with(TEMPORARY));
        Ok(names.map(|name| format!("{directory}/{name}")).collect())
    }

    /// A few by a request each, all at a time; many by listing the directory that holds them all.
    fn stat_all(&self, paths: &[String]) -> Result<Vec<Option<Stat>>> {
        let Some(first) = paths.first() else { return Ok(Vec::new()) };
        let keys: Vec<Key> = paths.iter().map(|path| self.client.key(path)).collect();

        match common_directory(&keys).filter(|_| keys.len() > READS) {
            Some(common) => {
                let found = self.stats_below(common).map_err(io_error("list", first))?;
                Ok(keys.iter().map(|key| found.get(key).copied()).collect())
            }
            None => self.heads(keys).map_err(io_error("read metadata of", first)),
        }
    }

    fn delete_all(&self, paths: &[String]) -> Result<()> {
        let Some(first) = paths.first() else { return Ok(()) };
        self.client.note_write();
        let keys: Vec<_> = paths.iter().map(|path| Ok(self.client.key(path))).collect();
        let done = self.client.ask(|store| async move {
            let mut done = store.delete_stream(stream::iter(keys).boxed());
            while let Some(deleted) = done.next().await {
                match deleted {
                    Ok(_) | Err(Error::NotFound { .. }) => {}
                    Err(error) => return Err(error),
                }
            }
            Ok(())
        });
        done.map_err(io_error("delete", first))
    }

    fn place(&self) -> Place<'_> {
        Place::Bucket { url: self.client.url(), client: &self.client.store, prefix: &self.client.prefix }
    }
}
