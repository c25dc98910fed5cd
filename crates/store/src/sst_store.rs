//! SST store: paths, opening and deletion of the SSTs of a table.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use tidetable_blobs::{BlobError, Blobs, OpenMode};
use tidetable_sstable::{ReadAt, Reader};

use crate::error::{Result, StoreError};
use crate::ids::{TABLES, ulid_text};
use crate::version::Sst;

/// The SSTs of a table.
#[derive(Debug, Clone)]
pub struct SstStore {
    blobs: Arc<dyn Blobs>,
    table: String,
}

/// The error for an SST that is missing; any other as it is.
fn or_missing(error: BlobError, path: &str) -> StoreError {
    if error.is_not_found() {
        return StoreError::SstMissing { path: path.to_owned() };
    }
    error.into()
}

impl SstStore {
    pub(crate) fn new(blobs: Arc<dyn Blobs>, table: String) -> Self {
        Self { blobs, table }
    }

    pub(crate) fn blobs(&self) -> &Arc<dyn Blobs> {
        &self.blobs
    }

    /// Name of the table.
    pub(crate) fn table(&self) -> &str {
        &self.table
    }

    /// Directory of the SSTs, inside the store.
    pub fn directory(&self) -> String {
        format!("{TABLES}/{}/sst", self.table)
    }

    pub(crate) fn path(&self, id: &str) -> String {
        format!("{}/{id}.sst", self.directory())
    }

    /// Directory of SSTs that repair replaced, inside the store.
    pub fn quarantine_directory(&self) -> String {
        format!("{TABLES}/{}/quarantine", self.table)
    }

    /// Path of the quarantined copy of a damaged SST.
    pub fn quarantine_path(&self, id: &str) -> String {
        format!("{}/{id}.sst", self.quarantine_directory())
    }

    /// In a bucket, begins to fetch what is read when these SSTs are opened, all at a time.
    pub(crate) fn announce<'a>(&self, ssts: impl Iterator<Item = &'a Sst>) {
        if !self.blobs.capabilities().round_trips {
            return;
        }
        for sst in ssts {
            // Opening it again reports an error.
            if let Ok(file) = self.blobs.open_file(&self.path(&sst.id), OpenMode::Sized(sst.bytes)) {
                file.will_read(opening_range(sst));
            }
        }
    }

    /// Opens an SST and checks that it is the one `sst` describes.
    ///
    /// # Errors
    /// If it is missing, damaged, or another file.
    pub fn open(&self, sst: &Sst) -> Result<Reader> {
        let path = self.path(&sst.id);
        let file = self.blobs.open_file(&path, OpenMode::Sized(sst.bytes)).map_err(|error| or_missing(error, &path))?;
        self.checked(sst, file)
    }

    /// As [`Self::open`], reading from the storage itself and no cache.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn open_fresh(&self, sst: &Sst) -> Result<Reader> {
        let path = self.path(&sst.id);
        let file = self.blobs.open_file(&path, OpenMode::Fresh(sst.bytes)).map_err(|error| or_missing(error, &path))?;
        self.checked(sst, file)
    }

    fn checked(&self, sst: &Sst, file: Arc<dyn ReadAt>) -> Result<Reader> {
        let path = self.path(&sst.id);
        file.will_read(opening_range(sst));
        let length = file.len();
        let reader = match Reader::open(file) {
            Ok(reader) => reader,
            Err(source) => return Err(StoreError::Sst { path, source }),
        };

        if tidetable_sstable::failpoint!(AcceptAnyFile) {
            return Ok(reader);
        }
        if length != sst.bytes {
            return Err(StoreError::Swapped { path, reason: "it has another length" });
        }
        if ulid_text(reader.uid()) != sst.id {
            return Err(StoreError::Swapped { path, reason: "it has another id" });
        }
        Ok(reader)
    }

    /// Removes SSTs that no version names. One that cannot be removed is left to vacuum.
    pub(crate) fn delete<'a>(&self, ssts: impl Iterator<Item = &'a Sst>) {
        let paths: Vec<String> = ssts.map(|sst| self.path(&sst.id)).collect();
        if let Err(error) = self.blobs.delete_all(&paths) {
            tracing::warn!(%error, "cannot remove unused SSTs; vacuum will");
        }
    }
}

/// Files of at most this size are read whole in a bucket, where a request takes longer than so many bytes.
const SMALL: u64 = 1 << 20;
/// The end of a file with its footer, meta and filter, at most, bytes.
const LARGEST_END: u64 = 4 << 20;

/// The bytes that are read when an SST is opened, and for its filter: more than enough, by its rows and cells.
fn opening_range(sst: &Sst) -> Range<u64> {
    if sst.bytes <= SMALL {
        return 0..sst.bytes;
    }
    // A filter has 9 bits a row; the meta some hundred bytes a stripe of 65,536 cells, and the schema.
    let end = (64 << 10) + sst.rows / 8 * 10 + sst.cells / 64;
    sst.bytes - end.min(LARGEST_END).min(sst.bytes)..sst.bytes
}

/// Open readers of SSTs: each file is opened on first use; different files in parallel.
#[derive(Debug, Default)]
pub(crate) struct OpenSsts {
    readers: Mutex<HashMap<String, Arc<OnceLock<Reader>>>>,
}

impl OpenSsts {
    /// The reader of an SST of `store`.
    ///
    /// # Errors
    /// As [`SstStore::open`]; then the next call tries again.
    pub(crate) fn get(&self, store: &SstStore, sst: &Sst) -> Result<Reader> {
        let entry = {
            let mut readers = self.readers.lock().unwrap_or_else(PoisonError::into_inner);
            match readers.get(&sst.id) {
                Some(entry) => Arc::clone(entry),
                None => Arc::clone(readers.entry(sst.id.clone()).or_default()),
            }
        };
        if let Some(reader) = entry.get() {
            return Ok(reader.clone());
        }
        // No lock is held while it is opened: if two threads do, one of the readers is dropped.
        let reader = store.open(sst)?;
        Ok(entry.get_or_init(|| reader).clone())
    }

    /// Whether an SST is open.
    pub(crate) fn has(&self, sst: &Sst) -> bool {
        let readers = self.readers.lock().unwrap_or_else(PoisonError::into_inner);
        readers.get(&sst.id).is_some_and(|entry| entry.get().is_some())
    }
}
