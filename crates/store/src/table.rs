//! A store, its tables, and the paths of their files.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tidetable_layout::Layout;

use crate::error::{Result, StoreError};
use crate::maintenance::size::ROW_LIMIT;
use crate::read::snapshot::Snapshot;
use crate::storage::blobs::{Blobs, Stat};
use crate::version::{TableIdentity, Version};

const TABLES: &str = "tables";

/// One table of a store.
#[derive(Debug, Clone)]
pub struct Table {
    blobs: Arc<dyn Blobs>,
    name: String,
    newest: Arc<Newest>,
    row_limit: u64,
}

/// Cache of the newest version of each table. A committed version never changes; one of many windows is slow to read,
/// and a run asks for it a dozen times.
#[derive(Debug, Default)]
pub(crate) struct Newest {
    /// With the file metadata of its manifest, taken before the manifest was read.
    versions: Mutex<HashMap<String, (Version, Option<Stat>)>>,
}

impl Newest {
    /// The cached version of `table`, if its manifest has this number and checksum.
    pub(crate) fn get(&self, table: &str, number: u64, manifest: &str) -> Option<Version> {
        let versions = self.versions.lock().unwrap_or_else(PoisonError::into_inner);
        let (version, _) = versions.get(table)?;
        (version.number == number && version.origin.manifest == manifest).then(|| version.clone())
    }

    /// The cached version of `table`, if its manifest file is unchanged. Saves reading a long full manifest, too.
    pub(crate) fn of_file(&self, table: &str, number: u64, manifest: Stat) -> Option<Version> {
        let versions = self.versions.lock().unwrap_or_else(PoisonError::into_inner);
        let (version, file) = versions.get(table)?;
        (version.number == number && *file == Some(manifest)).then(|| version.clone())
    }

    /// Whether version `number` of `table` is cached.
    pub(crate) fn has(&self, table: &str, number: u64) -> bool {
        let versions = self.versions.lock().unwrap_or_else(PoisonError::into_inner);
        versions.get(table).is_some_and(|(version, _)| version.number == number)
    }

    pub(crate) fn put(&self, table: &str, version: &Version, file: Option<Stat>) {
        let mut versions = self.versions.lock().unwrap_or_else(PoisonError::into_inner);
        versions.insert(table.to_owned(), (version.clone(), file));
    }
}

impl Table {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Storage of the store.
    pub fn blobs(&self) -> &Arc<dyn Blobs> {
        &self.blobs
    }

    /// The cache of newest versions.
    pub(crate) fn newest(&self) -> &Newest {
        &self.newest
    }

    /// Limit on the bytes of a row.
    pub(crate) fn row_limit(&self) -> u64 {
        self.row_limit
    }

    /// Path of an SST inside the store.
    pub fn sst_path(&self, id: &str) -> String {
        format!("{TABLES}/{}/sst/{id}.sst", self.name)
    }

    pub(crate) fn folder(&self) -> String {
        format!("{TABLES}/{}", self.name)
    }

    pub(crate) fn sst_folder(&self) -> String {
        format!("{TABLES}/{}/sst", self.name)
    }

    /// Path of the quarantined copy of a damaged SST.
    pub(crate) fn quarantine_path(&self, id: &str) -> String {
        format!("{}/{id}.sst", self.quarantine_folder())
    }

    pub(crate) fn quarantine_folder(&self) -> String {
        format!("{TABLES}/{}/quarantine", self.name)
    }

    pub(crate) fn manifest_folder(&self) -> String {
        format!("{TABLES}/{}/manifest", self.name)
    }

    pub(crate) fn checkpoint_folder(&self) -> String {
        format!("{TABLES}/{}/checkpoint", self.name)
    }

    pub(crate) fn checkpoint_path(&self, number: u64) -> String {
        format!("{}/{number:020}.json", self.checkpoint_folder())
    }

    pub(crate) fn manifest_path(&self, number: u64) -> String {
        format!("{}/{number:020}.json", self.manifest_folder())
    }

    /// The newest version, or an empty one with `identity`: the base of the next commit.
    ///
    /// # Errors
    /// [`StoreError::Owned`], [`StoreError::LayoutChanged`], or if it cannot be read.
    pub fn base(&self, identity: &TableIdentity) -> Result<Version> {
        let Some(version) = self.latest()? else {
            return Ok(Version::empty(identity.clone()));
        };
        if version.table.job != identity.job {
            return Err(StoreError::Owned { table: self.name.clone(), owner: version.table.job });
        }
        if version.table.layout != identity.layout {
            return Err(StoreError::LayoutChanged { table: self.name.clone() });
        }
        Ok(version)
    }

    /// Compiles the layout a version records.
    ///
    /// # Errors
    /// If this build cannot compile it.
    pub fn layout(&self, version: &Version) -> Result<Layout> {
        Layout::compile(&version.table.spec, &version.table.source).map_err(|errors| StoreError::Layout {
            table: self.name.clone(),
            reason: errors.first().map(ToString::to_string).unwrap_or_default(),
        })
    }
}
