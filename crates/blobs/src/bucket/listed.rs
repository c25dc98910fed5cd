//! Objects as lists tell them, and their bytes by way of the local disk.
//!
//! The name of a manifest may be given again, after a vacuum has removed it or a writer has taken it back. Its tag may
//! not: a name with a tag stands for bytes that never change, so they are cached by both.

use std::sync::Arc;

use bytes::Bytes;
use futures::{StreamExt, TryStreamExt, stream};
use object_store::path::Path as Key;
use object_store::{Error, ObjectMeta, ObjectStore, ObjectStoreExt};
use tidetable_source::is_missing_object;

use super::client::{Client, READS, io_error};
use super::object::{last_part, stat_of};
use crate::error::Result;
use crate::file::{ETag, Listed, ReadBytes};

/// The files of a list, ascending, without hidden ones.
pub(super) fn files_of(objects: Vec<ObjectMeta>) -> Vec<Listed> {
    let mut files: Vec<Listed> = Vec::with_capacity(objects.len());
    for object in objects {
        let Some(name) = last_part(&object.location).filter(|name| !name.starts_with('.')) else { continue };
        files.push(Listed { name, stat: Some(stat_of(&object)), e_tag: object.e_tag });
    }

    files.sort_unstable_by(|a, b| a.name.cmp(&b.name));
    files
}

/// The files and directories of a list of all that is below a key of `depth` parts, ascending, without hidden ones. A directory
/// has no tag.
pub(super) fn children_of(objects: Vec<ObjectMeta>, depth: usize) -> Vec<Listed> {
    let mut children: Vec<Listed> = Vec::new();
    for object in objects {
        let mut below = object.location.parts().skip(depth);
        let Some(name) = below.next().map(|part| part.as_ref().to_owned()) else { continue };
        let e_tag = if below.next().is_none() { object.e_tag } else { None };
        if !name.starts_with('.') {
            children.push(Listed { e_tag, ..Listed::named(name) });
        }
    }

    children.sort_unstable_by(|a, b| a.name.cmp(&b.name));
    children.dedup_by(|a, b| a.name == b.name);
    children
}

/// An object to read.
#[derive(Debug, Clone)]
struct Wanted {
    path: String,
    key: Key,
    tag: Option<ETag>,
    /// Its name on the local disk, if it may be there.
    cached: Option<String>,
}

impl Client {
    /// The bytes of objects with the tags that a list told, from the local disk where it has them; the others are
    /// fetched several at a time.
    pub(super) fn read_listed(self: &Arc<Self>, files: &[(String, Option<ETag>)]) -> Result<Vec<Option<ReadBytes>>> {
        let wanted: Vec<Wanted> = files.iter().map(|(path, tag)| self.wanted(path, tag.as_ref())).collect();
        let held: Vec<Option<Bytes>> = wanted.iter().map(|wanted| self.cached(wanted)).collect();
        let missing = wanted.into_iter().zip(&held).filter(|(_, held)| held.is_none()).map(|(wanted, _)| wanted);
        let missing: Vec<Wanted> = missing.collect();
        let fetched = self.fetch_all(&missing)?;
        self.keep(&missing, &fetched);

        let mut fetched = fetched.into_iter();
        let mut read = Vec::with_capacity(held.len());
        for held in held {
            read.push(match held {
                Some(bytes) => Some(ReadBytes { bytes, is_listed: true }),
                None => fetched.next().flatten(),
            });
        }
        Ok(read)
    }

    /// The bytes of objects, several requests at a time; `None` for those that are gone.
    fn fetch_all(&self, wanted: &[Wanted]) -> Result<Vec<Option<ReadBytes>>> {
        let Some(first) = wanted.first() else { return Ok(Vec::new()) };
        let asked = wanted.to_vec();
        let read = self.wait(|store| async move {
            let fetched = stream::iter(asked).map(|wanted| fetch(Arc::clone(&store), wanted));
            fetched.buffered(READS).try_collect::<Vec<_>>().await
        });
        let read = read.map_err(io_error("read", &first.path))?;
        read.map_err(|(path, error)| io_error("read", &path)(self.io(error)))
    }

    /// The bytes of an object on the local disk, if it has them.
    fn cached(&self, wanted: &Wanted) -> Option<Bytes> {
        self.cache.as_ref()?.get(wanted.cached.as_ref()?)
    }

    fn wanted(&self, path: &str, tag: Option<&ETag>) -> Wanted {
        let cached = tag.filter(|_| self.cache.is_some()).map(|tag| format!("{}\0{path}\0{tag}", self.url()));
        Wanted { path: path.to_owned(), key: self.key(path), tag: tag.cloned(), cached }
    }

    /// Writes what was fetched to the local disk.
    fn keep(&self, wanted: &[Wanted], fetched: &[Option<ReadBytes>]) {
        let Some(cache) = &self.cache else { return };
        for (wanted, read) in wanted.iter().zip(fetched) {
            if let (Some(name), Some(ReadBytes { bytes, is_listed: true })) = (&wanted.cached, read) {
                cache.put(name, bytes);
            }
        }
    }
}

/// The bytes of an object; `None` if it is gone.
async fn fetch(store: Arc<dyn ObjectStore>, wanted: Wanted) -> Result<Option<ReadBytes>, (String, Error)> {
    let got = match store.get(&wanted.key).await {
        Ok(got) => got,
        Err(error) if is_missing_object(&error) => return Ok(None),
        Err(error) => return Err((wanted.path, error)),
    };
    let is_listed = wanted.tag.is_some() && got.meta.e_tag == wanted.tag;
    let bytes = got.bytes().await.map_err(|error| (wanted.path, error))?;
    Ok(Some(ReadBytes { bytes, is_listed }))
}
