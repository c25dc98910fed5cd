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
use std::sync::Arc;

use bytes::Bytes;
use futures::{StreamExt, TryStreamExt, stream};
use object_store::path::Path as Key;
use object_store::{Error, ObjectMeta, ObjectStore, ObjectStoreExt, PutMode};
use tidetable_source::{BucketAddress, OpenedBucket, Secret, is_missing_object, open_object_store};
use tidetable_sstable::ReadAt;
use tokio::runtime::Handle;
use xxhash_rust::xxh3::xxh3_64;

use crate::blobs::{BlobWriter, Blobs, Bucket, ETag, Listed, ReadBytes, Stamp, Stat, Tag};
use crate::durability::TEMPORARY;
use crate::error::Result;
use blocks::{BlockFile, Blocks};
use client::{Client, READS, io_error};
pub use disk_cache::{CacheUsage, DiskCache};
use object::{ImmutableObject, Object};
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
        let client = Arc::new(client);
        Ok(Self { client, blocks: Arc::default() })
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

    fn immutable(&self, path: &str, len: u64, is_fresh: bool) -> Arc<dyn ReadAt> {
        let (client, blocks) = (Arc::clone(&self.client), Arc::clone(&self.blocks));
        Arc::new(ImmutableObject { client, blocks, file: BlockFile::new(path, self.client.key(path), len, is_fresh) })
    }

    /// The names directly below `directory`.
    fn names(&self, directory: &str) -> Result<Vec<String>> {
        let key = self.client.key(directory);
        let listed = self.client.ask_again(move |store| {
            let key = key.clone();
            async move {
                let found = store.list_with_delimiter(Some(&key)).await?;
                let objects = found.objects.into_iter().map(|object| object.location);
                Ok(objects.chain(found.common_prefixes).collect::<Vec<_>>())
            }
        });
        let found = listed.map_err(io_error("list", directory))?;
        let last = |key: &Key| key.parts().next_back().map(|part| part.as_ref().to_owned());
        let mut names: Vec<String> = found.iter().filter_map(last).collect();
        names.sort_unstable();
        names.dedup();
        Ok(names)
    }
}

/// The directory that has temporary objects: files of exports whose name is not known yet.
const TEMPORARY_IN: &str = "exports";

/// The longest directory that holds all `keys`; `None` if there are none.
fn common_directory(keys: &[Key]) -> Option<Key> {
    let (first, rest) = keys.split_first()?;
    let parts: Vec<_> = first.parts().collect();
    let shared = |other: &Key| other.parts().zip(&parts).take_while(|(a, b)| a == *b).count();
    let depth = rest.iter().map(shared).min().unwrap_or(parts.len()).min(parts.len().saturating_sub(1));
    Some(parts.into_iter().take(depth).collect())
}

/// An object has no inode. Its entity tag and version take that place in the stamp: another content has others.
fn stat_of(object: &ObjectMeta) -> Stat {
    let modified = object.last_modified.timestamp_micros();
    let stamp = object.e_tag.as_ref().map(|e_tag| {
        let version = object.version.as_deref().unwrap_or_default();
        let inode = xxh3_64(format!("{e_tag}\0{version}").as_bytes());
        Stamp { inode, modified: modified.saturating_mul(1000), changed: 0 }
    });
    Stat { bytes: object.size, modified: Some(modified), stamp }
}

impl Blobs for BucketBlobs {
    fn create_new(&self, path: &str, bytes: &[u8]) -> Result<bool> {
        let key = self.client.key(path);
        self.client.create_new(&key, &Bytes::copy_from_slice(bytes)).map_err(io_error("write", path))
    }

    fn replace(&self, path: &str, bytes: &[u8]) -> Result<()> {
        let put = self.client.put(self.client.key(path), Bytes::copy_from_slice(bytes), PutMode::Overwrite);
        let put = put.and_then(|put| put.map(|_| ()).map_err(|error| self.client.io(error)));
        put.map_err(io_error("write", path))
    }

    fn replace_if(&self, path: &str, bytes: &[u8], tag: &Tag) -> Result<Option<Tag>> {
        let key = self.client.key(path);
        self.client.replace_if(&key, &Bytes::copy_from_slice(bytes), tag).map_err(io_error("write", path))
    }

    fn writer(&self, path: &str) -> Result<Box<dyn BlobWriter>> {
        Ok(Box::new(Upload::new(&self.client, path, false)))
    }

    fn overwrite_writer(&self, path: &str) -> Result<Box<dyn BlobWriter>> {
        Ok(Box::new(Upload::new(&self.client, path, true)))
    }

    fn parked(&self, path: &str, target: &str) -> Result<Box<dyn BlobWriter>> {
        Ok(Box::new(ParkedObject::new(&self.client, path, target)))
    }

    fn read(&self, path: &str) -> Result<Option<Bytes>> {
        let found = self.client.get(self.client.key(path)).map_err(io_error("read", path))?;
        Ok(found.map(|(bytes, _)| bytes))
    }

    fn read_tagged(&self, path: &str) -> Result<Option<(Bytes, Option<Tag>)>> {
        let found = self.client.get(self.client.key(path)).map_err(io_error("read", path))?;
        Ok(found.map(|(bytes, tag)| (bytes, Some(tag))))
    }

    fn read_all(&self, paths: &[String]) -> Result<Vec<Option<Bytes>>> {
        let asked: Vec<_> = paths.iter().map(|path| (path.clone(), self.client.key(path))).collect();
        let read = self.client.wait(|store| async move {
            let get = |(path, key): (String, Key)| {
                let store = Arc::clone(&store);
                async move {
                    match store.get(&key).await {
                        Ok(got) => got.bytes().await.map(Some).map_err(|error| (path, error)),
                        Err(error) if is_missing_object(&error) => Ok(None),
                        Err(error) => Err((path, error)),
                    }
                }
            };
            stream::iter(asked).map(get).buffered(READS).try_collect::<Vec<_>>().await
        });
        let read = read.map_err(io_error("read", paths.first().map_or("", String::as_str)))?;
        read.map_err(|(path, error)| io_error("read", &path)(self.client.io(error)))
    }

    fn read_listed(&self, files: &[(String, Option<ETag>)]) -> Result<Vec<Option<ReadBytes>>> {
        self.client.read_listed(files)
    }

    fn open(&self, path: &str) -> Result<Arc<dyn ReadAt>> {
        let key = self.client.key(path);
        let head = self.client.ask(|store| async move { store.head(&key).await });
        let len = head.map_err(io_error("open", path))?.size;
        Ok(Arc::new(Object { client: Arc::clone(&self.client), key: self.client.key(path), len }))
    }

    fn open_sized(&self, path: &str, len: u64) -> Result<Arc<dyn ReadAt>> {
        Ok(self.immutable(path, len, false))
    }

    fn open_fresh(&self, path: &str, len: u64) -> Result<Arc<dyn ReadAt>> {
        Ok(self.immutable(path, len, true))
    }

    fn list(&self, directory: &str) -> Result<Vec<String>> {
        let mut names = self.names(directory)?;
        names.retain(|name| !name.starts_with('.'));
        Ok(names)
    }

    fn list_after(&self, directory: &str, after: &str) -> Result<Vec<Listed>> {
        let key = self.client.key(directory);
        let after = key.clone().join(after);
        let listed = self.client.ask_again(move |store| {
            let (key, after) = (key.clone(), after.clone());
            async move { store.list_with_offset(Some(&key), &after).try_collect::<Vec<_>>().await }
        });
        let depth = self.client.key(directory).parts().count();
        Ok(listed::children_of(listed.map_err(io_error("list", directory))?, depth))
    }

    fn list_both(&self, first: &str, second: &str) -> Result<(Vec<Listed>, Option<Vec<Listed>>)> {
        let keys = (self.client.key(first), self.client.key(second));
        let listed = self.client.ask_again(move |store| {
            let keys = keys.clone();
            async move {
                let of_second = store.list(Some(&keys.1)).take(REPLY).try_collect::<Vec<_>>();
                let (first, second) = futures::try_join!(store.list_with_delimiter(Some(&keys.0)), of_second)?;
                let all = second.len() < REPLY;
                Ok((listed::files_of(first.objects), all.then(|| listed::files_of(second))))
            }
        });
        listed.map_err(io_error("list", first))
    }

    fn list_stats(&self, directory: &str) -> Result<Vec<(String, Stat)>> {
        let key = self.client.key(directory);
        let listed = self.client.ask_again(move |store| {
            let key = key.clone();
            async move { store.list_with_delimiter(Some(&key)).await }
        });
        let found = listed.map_err(io_error("list", directory))?.objects;
        let with_stat = |object: &ObjectMeta| {
            let name = object.location.parts().next_back()?.as_ref().to_owned();
            (!name.starts_with('.')).then(|| (name, stat_of(object)))
        };
        let mut files: Vec<(String, Stat)> = found.iter().filter_map(with_stat).collect();
        files.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        Ok(files)
    }

    fn leftovers(&self, directory: &str) -> Result<Vec<String>> {
        if directory != TEMPORARY_IN {
            return Ok(Vec::new());
        }
        let names = self.names(directory)?.into_iter().filter(|name| name.starts_with(TEMPORARY));
        Ok(names.map(|name| format!("{directory}/{name}")).collect())
    }

    fn stat(&self, path: &str) -> Result<Option<Stat>> {
        let key = self.client.key(path);
        let head = self.client.wait(|store| async move { store.head(&key).await });
        let found = head.and_then(|head| match head {
            Ok(head) => Ok(Some(stat_of(&head))),
            Err(error) if is_missing_object(&error) => Ok(None),
            Err(error) => Err(self.client.io(error)),
        });
        found.map_err(io_error("read metadata of", path))
    }

    /// A few by a request each, all at a time; many by listing the directory that holds them all.
    fn stat_all(&self, paths: &[String]) -> Result<Vec<Option<Stat>>> {
        let keys: Vec<Key> = paths.iter().map(|path| self.client.key(path)).collect();
        let Some(common) = common_directory(&keys).filter(|_| keys.len() > READS) else {
            let asked = self.client.ask(|store| async move {
                let head = |key: Key| {
                    let store = Arc::clone(&store);
                    async move {
                        match store.head(&key).await {
                            Ok(head) => Ok(Some(stat_of(&head))),
                            Err(error) if is_missing_object(&error) => Ok(None),
                            Err(error) => Err(error),
                        }
                    }
                };
                stream::iter(keys).map(head).buffered(READS).try_collect::<Vec<_>>().await
            });
            return asked.map_err(io_error("read metadata of", paths.first().map_or("", String::as_str)));
        };
        let listed = self.client.ask_again(move |store| {
            let common = common.clone();
            async move {
                let with_stat = |object: ObjectMeta| (stat_of(&object), object.location);
                store.list(Some(&common)).map_ok(with_stat).try_collect::<Vec<_>>().await
            }
        });
        let listed = listed.map_err(io_error("list", paths.first().map_or("", String::as_str)))?;
        let found: HashMap<Key, Stat> = listed.into_iter().map(|(stat, key)| (key, stat)).collect();
        Ok(keys.iter().map(|key| found.get(key).copied()).collect())
    }

    fn delete(&self, path: &str) -> Result<()> {
        self.delete_all(&[path.to_owned()])
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

    fn bucket(&self) -> Option<Bucket> {
        Some(Bucket { client: Arc::clone(&self.client.store), prefix: self.client.prefix.clone() })
    }

    fn display(&self) -> String {
        self.client.url().to_owned()
    }
}
