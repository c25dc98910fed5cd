//! A store of tables, and one table of it: where its files lie, and what it is.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tidetable_layout::Layout;

use crate::error::{Result, StoreError};
use crate::maintenance::size::ROW_LIMIT;
use crate::read::snapshot::Snapshot;
use crate::storage::blobs::{Blobs, Stat};
use crate::version::{TableIdentity, Version};

const TABLES: &str = "tables";

/// All tables under one root.
#[derive(Debug, Clone)]
pub struct Store {
    blobs: Arc<dyn Blobs>,
    newest: Arc<Newest>,
    row_limit: u64,
}

/// One table of a store.
#[derive(Debug, Clone)]
pub struct Table {
    blobs: Arc<dyn Blobs>,
    name: String,
    newest: Arc<Newest>,
    row_limit: u64,
}

/// The newest versions that were read, by table. A version with a manifest never changes, and one of many windows takes long to
/// read: a run asks for it a dozen times.
#[derive(Debug, Default)]
pub(crate) struct Newest {
    /// With what its manifest was as a file before it was read.
    versions: Mutex<HashMap<String, (Version, Option<Stat>)>>,
}

impl Newest {
    /// That of `table`, if it is the one whose manifest has this number and checksum.
    pub(crate) fn get(&self, table: &str, number: u64, manifest: &str) -> Option<Version> {
        let versions = self.versions.lock().unwrap_or_else(PoisonError::into_inner);
        let (version, _) = versions.get(table)?;
        (version.number == number && version.origin.manifest == manifest).then(|| version.clone())
    }

    /// That of `table`, if its manifest is still this very file: the first of many inputs is long, too.
    pub(crate) fn of_file(&self, table: &str, number: u64, manifest: Stat) -> Option<Version> {
        let versions = self.versions.lock().unwrap_or_else(PoisonError::into_inner);
        let (version, file) = versions.get(table)?;
        (version.number == number && *file == Some(manifest)).then(|| version.clone())
    }

    /// Whether it may be worth asking for `number` of `table`.
    pub(crate) fn has(&self, table: &str, number: u64) -> bool {
        let versions = self.versions.lock().unwrap_or_else(PoisonError::into_inner);
        versions.get(table).is_some_and(|(version, _)| version.number == number)
    }

    pub(crate) fn put(&self, table: &str, version: &Version, file: Option<Stat>) {
        let mut versions = self.versions.lock().unwrap_or_else(PoisonError::into_inner);
        versions.insert(table.to_owned(), (version.clone(), file));
    }
}

impl Store {
    /// The store that `blobs` holds.
    pub fn new(blobs: Arc<dyn Blobs>) -> Self {
        Self { blobs, newest: Arc::default(), row_limit: ROW_LIMIT }
    }

    /// The same store with another limit of the bytes of a row, for tests of it.
    #[doc(hidden)]
    #[must_use]
    pub fn with_row_limit(self, row_limit: u64) -> Self {
        Self { row_limit, ..self }
    }

    /// Where its bytes lie.
    pub fn blobs(&self) -> &Arc<dyn Blobs> {
        &self.blobs
    }

    /// Names of the tables, ascending.
    ///
    /// # Errors
    /// If the store cannot be listed.
    pub fn tables(&self) -> Result<Vec<String>> {
        let mut names = self.blobs.list(TABLES)?;
        // One that cannot be read is there all the same.
        names.retain(|name| !matches!(self.table(name).latest_number(), Ok(0)));
        Ok(names)
    }

    /// The table `name`, whether it exists or not.
    pub fn table(&self, name: &str) -> Table {
        let (blobs, newest) = (Arc::clone(&self.blobs), Arc::clone(&self.newest));
        Table { blobs, name: name.to_owned(), newest, row_limit: self.row_limit }
    }

    /// The newest version of a table that must exist.
    ///
    /// # Errors
    /// [`StoreError::NoTable`], or if it cannot be read.
    pub fn snapshot(&self, name: &str) -> Result<Snapshot> {
        let table = self.table(name);
        match table.latest()? {
            Some(version) => Snapshot::new(table, Arc::new(version)),
            None => {
                let known = self.tables()?;
                let known = if known.is_empty() { "none yet".to_owned() } else { known.join(", ") };
                Err(StoreError::NoTable { name: name.to_owned(), root: self.blobs.display(), known })
            }
        }
    }
}

impl Table {
    /// Table id.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Where the store lies.
    pub fn blobs(&self) -> &Arc<dyn Blobs> {
        &self.blobs
    }

    /// The newest versions that were read.
    pub(crate) fn newest(&self) -> &Newest {
        &self.newest
    }

    /// Most bytes of a row.
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

    /// Where a copy of a damaged SST is kept.
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

    /// The newest version, or an empty one that `identity` describes, to be committed upon.
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
