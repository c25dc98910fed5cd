//! Blobs in memory that never fail.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use tidetable_blobs::{BlobError, BlobWriter, Blobs, Listed, Listing, OpenMode, Place, Stat, Tag, WriteMode};
use tidetable_sstable::ReadAt;
use xxhash_rust::xxh3::Xxh3;

type Result<T> = std::result::Result<T, BlobError>;

/// Files by path, in memory, with times that ascend. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct Shelf {
    files: Arc<Mutex<Files>>,
}

#[derive(Debug, Clone, Default)]
struct Files {
    /// Files with the time of their last write.
    by_path: BTreeMap<String, (i64, Bytes)>,
    /// The clock: the number of files written.
    now: i64,
}

impl Files {
    fn put(&mut self, path: &str, bytes: Bytes) {
        self.now += 1;
        self.by_path.insert(path.to_owned(), (self.now, bytes));
    }

    fn get(&self, path: &str) -> Option<&Bytes> {
        self.by_path.get(path).map(|(_, bytes)| bytes)
    }

    fn stat(&self, path: &str) -> Option<Stat> {
        let (time, bytes) = self.by_path.get(path)?;
        Some(Stat { bytes: bytes.len() as u64, modified: Some(*time), stamp: None })
    }
}

impl Shelf {
    fn files(&self) -> MutexGuard<'_, Files> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An independent copy: later writes to one are not in the other.
    #[must_use]
    pub fn copy(&self) -> Self {
        Self { files: Arc::new(Mutex::new(self.files().clone())) }
    }

    /// The paths of all files, in ascending order.
    pub fn paths(&self) -> Vec<String> {
        self.files().by_path.keys().cloned().collect()
    }

    /// The bytes of a file; empty if it does not exist.
    pub fn bytes(&self, path: &str) -> Bytes {
        self.files().get(path).cloned().unwrap_or_default()
    }

    /// Replaces the bytes of a file, or creates it; its time is later than all before.
    pub fn put(&self, path: &str, bytes: impl Into<Bytes>) {
        self.files().put(path, bytes.into());
    }

    /// A hash of all paths and bytes, by which two runs are compared.
    pub fn hash(&self) -> u128 {
        let mut hash = Xxh3::new();
        for (path, (_, bytes)) in &self.files().by_path {
            hash.update(path.as_bytes());
            hash.update(&bytes.len().to_le_bytes());
            hash.update(bytes);
        }
        hash.digest128()
    }
}

impl Blobs for Shelf {
    fn create_new(&self, path: &str, bytes: &[u8]) -> Result<bool> {
        let mut files = self.files();
        if files.by_path.contains_key(path) && !tidetable_sstable::failpoint!(CommitWithoutCompare) {
            return Ok(false);
        }
        files.put(path, Bytes::copy_from_slice(bytes));
        Ok(true)
    }

    fn replace(&self, path: &str, bytes: &[u8]) -> Result<()> {
        self.put(path, Bytes::copy_from_slice(bytes));
        Ok(())
    }

    fn open_writer(&self, path: &str, mode: WriteMode<'_>) -> Result<Box<dyn BlobWriter>> {
        let replaces = match mode {
            WriteMode::New => false,
            WriteMode::Replace => true,
            WriteMode::Parked(parked) => {
                let (path, source) = (parked.to_owned(), io::ErrorKind::Unsupported.into());
                return Err(BlobError::Io { action: "take over", path, source });
            }
        };
        Ok(Box::new(ShelfWriter { shelf: self.clone(), path: path.to_owned(), bytes: Vec::new(), replaces }))
    }

    fn read_tagged(&self, path: &str) -> Result<Option<(Bytes, Option<Tag>)>> {
        Ok(self.files().get(path).map(|bytes| (bytes.clone(), None)))
    }

    fn open_file(&self, path: &str, _: OpenMode) -> Result<Arc<dyn ReadAt>> {
        match self.files().get(path) {
            Some(bytes) => Ok(Arc::new(bytes.clone())),
            None => {
                Err(BlobError::Io { action: "open", path: path.to_owned(), source: io::ErrorKind::NotFound.into() })
            }
        }
    }

    fn list_files(&self, folder: &str, listing: Listing<'_>) -> Result<Vec<Listed>> {
        let inside = format!("{folder}/");
        let files = self.files();
        let mut names: Vec<&str> = files
            .by_path
            .range(inside.clone()..)
            .map_while(|(path, _)| path.strip_prefix(&inside))
            .map(|rest| rest.split('/').next().unwrap_or_default())
            .collect();
        names.dedup();
        if let Listing::After(after) = listing {
            names.retain(|name| *name > after);
        }

        let listed =
            |name: &str| Listed { name: name.to_owned(), e_tag: None, stat: files.stat(&format!("{inside}{name}")) };
        Ok(names.into_iter().map(listed).collect())
    }

    fn stat_all(&self, paths: &[String]) -> Result<Vec<Option<Stat>>> {
        let files = self.files();
        Ok(paths.iter().map(|path| files.stat(path)).collect())
    }

    fn delete_all(&self, paths: &[String]) -> Result<()> {
        let mut files = self.files();
        for path in paths {
            files.by_path.remove(path);
        }
        Ok(())
    }

    fn place(&self) -> Place<'_> {
        Place::Elsewhere("memory")
    }
}

struct ShelfWriter {
    shelf: Shelf,
    path: String,
    bytes: Vec<u8>,
    replaces: bool,
}

impl Write for ShelfWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl BlobWriter for ShelfWriter {
    fn finish(self: Box<Self>) -> Result<()> {
        if self.replaces {
            return self.shelf.replace(&self.path, &self.bytes);
        }
        if self.shelf.create_new(&self.path, &self.bytes)? {
            Ok(())
        } else {
            Err(BlobError::Exists { path: self.path.clone() })
        }
    }
}
