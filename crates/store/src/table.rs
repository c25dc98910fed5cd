//! One table of a store.

use std::sync::Arc;

use tidetable_blobs::Blobs;
use tidetable_layout::Layout;

use crate::error::{Result, StoreError};
use crate::manifest::newest::VersionCache;
use crate::manifest::store::ManifestStore;
use crate::sst_store::SstStore;
use crate::version::identity_change::change_of;
use crate::version::{TableIdentity, Version, VersionEdit};

/// One table of a store: its versions, their manifests and SSTs.
#[derive(Debug, Clone)]
pub struct Table {
    manifests: ManifestStore,
    ssts: SstStore,
    row_limit: u64,
}

impl Table {
    pub(crate) fn new(blobs: &Arc<dyn Blobs>, name: &str, newest: &Arc<VersionCache>, row_limit: u64) -> Self {
        let manifests = ManifestStore::new(Arc::clone(blobs), name.to_owned(), Arc::clone(newest));
        Self { manifests, ssts: SstStore::new(Arc::clone(blobs), name.to_owned()), row_limit }
    }

    /// Name of the table.
    pub fn name(&self) -> &str {
        self.ssts.table()
    }

    /// The storage in which the store keeps its files.
    pub fn blobs(&self) -> &Arc<dyn Blobs> {
        self.ssts.blobs()
    }

    /// The manifests and checkpoints of its versions.
    pub fn manifests(&self) -> &ManifestStore {
        &self.manifests
    }

    /// The files with its cells.
    pub fn ssts(&self) -> &SstStore {
        &self.ssts
    }

    /// Limit on the bytes of a row.
    pub fn row_limit(&self) -> u64 {
        self.row_limit
    }

    /// Path, inside the store, of the SST with this id.
    pub fn sst_path(&self, id: &str) -> String {
        self.ssts.path(id)
    }

    /// Number of the newest version; 0 if there is none.
    ///
    /// # Errors
    /// If the manifests cannot be listed, or one is missing between others.
    pub fn latest_number(&self) -> Result<u64> {
        self.manifests.latest_number()
    }

    /// The newest version; `None` if the table has none.
    ///
    /// # Errors
    /// If its manifest cannot be read.
    pub fn latest(&self) -> Result<Option<Version>> {
        self.manifests.latest()
    }

    /// Numbers of all versions, ascending.
    ///
    /// # Errors
    /// If the manifests cannot be listed.
    pub fn version_numbers(&self) -> Result<Vec<u64>> {
        self.manifests.version_numbers()
    }

    /// Version `number`.
    ///
    /// # Errors
    /// [`StoreError::Vacuumed`] or [`StoreError::NoVersion`] if there is none; or if its manifest, or one that it is
    /// based on, cannot be read.
    pub fn version(&self, number: u64) -> Result<Version> {
        self.manifests.version(number)
    }

    /// Passes the versions from `first` to `last` to `take`, ascending: faster than reading each.
    ///
    /// # Errors
    /// As [`Self::version`], and those of `take`.
    pub fn walk(&self, first: u64, last: u64, take: impl FnMut(&Version) -> Result<()>) -> Result<()> {
        self.manifests.walk(first, last, take)
    }

    /// The newest version with a logical time of at most `time` (microseconds since the epoch).
    ///
    /// # Errors
    /// [`StoreError::NoVersionAt`] if there is none, or if a manifest cannot be read.
    pub fn version_at(&self, time: i64) -> Result<Version> {
        self.manifests.version_at(time)
    }

    /// The files, except SSTs, of a copy of the table whose oldest version is `version`: path inside the store and
    /// content.
    ///
    /// # Errors
    /// If its manifest cannot be read.
    pub fn metadata_files(&self, version: &Version) -> Result<Vec<(String, Vec<u8>)>> {
        self.manifests.metadata_files(version)
    }

    /// Removes the SSTs that were written for an edit that will not be committed.
    pub fn discard(&self, edit: &VersionEdit) {
        self.ssts.delete(edit.written());
    }

    /// The base of the next commit: the newest version, or version 0 with `identity` if there is none.
    ///
    /// # Errors
    /// [`StoreError::OwnedByOtherJob`] or [`StoreError::LayoutChanged`] if the table has another job or layout than `identity`,
    /// or if the version cannot be read.
    pub fn base(&self, identity: &TableIdentity) -> Result<Version> {
        let Some(version) = self.latest()? else {
            return Ok(Version::empty(identity.clone()));
        };
        if version.table.job != identity.job {
            return Err(StoreError::OwnedByOtherJob { table: self.name().to_owned(), owner: version.table.job });
        }
        if version.table.layout != identity.layout {
            let change = change_of(&version.table, identity);
            return Err(StoreError::LayoutChanged { table: self.name().to_owned(), change });
        }
        Ok(version)
    }

    /// Compiles the layout that `version` records.
    ///
    /// # Errors
    /// If this build cannot compile it.
    pub fn layout(&self, version: &Version) -> Result<Layout> {
        Layout::compile(&version.table.spec, &version.table.source).map_err(|errors| StoreError::Layout {
            table: self.name().to_owned(),
            reason: errors.first().map(ToString::to_string).unwrap_or_default(),
        })
    }
}
