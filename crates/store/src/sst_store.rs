//! SST store: paths, opening and deletion of the SSTs of a table.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tidetable_sstable::Reader;

use crate::error::{Result, StoreError};
use crate::ids::{TABLES, ulid_text};
use crate::storage::blobs::Blobs;
use crate::version::Sst;

/// The SSTs of a table.
#[derive(Debug, Clone)]
pub(crate) struct SstStore {
    blobs: Arc<dyn Blobs>,
    table: String,
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

    pub(crate) fn directory(&self) -> String {
        format!("{TABLES}/{}/sst", self.table)
    }

    pub(crate) fn path(&self, id: &str) -> String {
        format!("{}/{id}.sst", self.directory())
    }

    pub(crate) fn quarantine_directory(&self) -> String {
        format!("{TABLES}/{}/quarantine", self.table)
    }

    /// Path of the quarantined copy of a damaged SST.
    pub(crate) fn quarantine_path(&self, id: &str) -> String {
        format!("{}/{id}.sst", self.quarantine_directory())
    }

    /// Opens an SST and checks that it is the one `sst` describes.
    ///
    /// # Errors
    /// If it is missing, damaged, or another file.
    pub(crate) fn open(&self, sst: &Sst) -> Result<Reader> {
        let path = self.path(&sst.id);
        let file = self.blobs.open(&path)?;
        let length = file.len();
        let reader = Reader::open(file).map_err(|source| StoreError::Sst { path: path.clone(), source })?;
        let swapped = |reason| Err(StoreError::Swapped { path: path.clone(), reason });
        if tidetable_sstable::failpoint!(AcceptAnyFile) {
            return Ok(reader);
        }
        if length != sst.bytes {
            return swapped("it has another length");
        }
        if ulid_text(reader.uid()) != sst.id {
            return swapped("it has another id");
        }
        Ok(reader)
    }

    /// Removes SSTs that no version names. One that cannot be removed is left to vacuum.
    pub(crate) fn delete<'a>(&self, ssts: impl Iterator<Item = &'a Sst>) {
        for sst in ssts {
            if let Err(error) = self.blobs.delete(&self.path(&sst.id)) {
                tracing::warn!(%error, "cannot remove an unused SST; vacuum will");
            }
        }
    }
}

/// Open readers of SSTs: each file is opened once, on first use; different files in parallel.
#[derive(Debug, Default)]
pub(crate) struct OpenSsts {
    readers: Mutex<HashMap<String, Arc<Mutex<Option<Reader>>>>>,
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
        let mut reader = entry.lock().unwrap_or_else(PoisonError::into_inner);
        match &*reader {
            Some(reader) => Ok(reader.clone()),
            None => Ok(reader.insert(store.open(sst)?).clone()),
        }
    }
}
