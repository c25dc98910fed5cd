//! A store of tables, and one table of it: where its files lie, its newest version, its commits.

use std::sync::Arc;

use tidetable_layout::Layout;

use crate::blobs::Blobs;
use crate::compaction::Compacted;
use crate::error::{Result, StoreError};
use crate::ids::Ids;
use crate::manifest;
use crate::snapshot::Snapshot;
use crate::version::{Edit, TableIdentity, Version};

const TABLES: &str = "tables";
/// Attempts to put a commit after those of others before giving up.
const REBASES: usize = 100;

/// All tables under one root.
#[derive(Debug, Clone)]
pub struct Store {
    blobs: Arc<dyn Blobs>,
}

/// One table of a store.
#[derive(Debug, Clone)]
pub struct Table {
    blobs: Arc<dyn Blobs>,
    name: String,
}

impl Store {
    /// The store that `blobs` holds.
    pub fn new(blobs: Arc<dyn Blobs>) -> Self {
        Self { blobs }
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
        names.retain(|name| self.table(name).latest_number().is_ok_and(|number| number > 0));
        Ok(names)
    }

    /// The table `name`, whether it exists or not.
    pub fn table(&self, name: &str) -> Table {
        Table { blobs: Arc::clone(&self.blobs), name: name.to_owned() }
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

    /// Path of an SST inside the store.
    pub fn sst_path(&self, id: &str) -> String {
        format!("{TABLES}/{}/sst/{id}.sst", self.name)
    }

    fn manifest_folder(&self) -> String {
        format!("{TABLES}/{}/manifest", self.name)
    }

    fn manifest_path(&self, number: u64) -> String {
        format!("{}/{number:020}.json", self.manifest_folder())
    }

    /// Number of the newest version; 0 if there is none.
    ///
    /// # Errors
    /// If the manifests cannot be listed.
    pub fn latest_number(&self) -> Result<u64> {
        let names = self.blobs.list(&self.manifest_folder())?;
        Ok(names.iter().filter_map(|name| name.strip_suffix(".json")?.parse().ok()).max().unwrap_or(0))
    }

    /// The newest version; `None` if the table was never made.
    ///
    /// # Errors
    /// If its manifest cannot be read.
    pub fn latest(&self) -> Result<Option<Version>> {
        let number = self.latest_number()?;
        if number == 0 { Ok(None) } else { self.version(number).map(Some) }
    }

    /// Version `number`.
    ///
    /// # Errors
    /// If there is none, or its manifest cannot be read.
    pub fn version(&self, number: u64) -> Result<Version> {
        let path = self.manifest_path(number);
        let broken = |reason: String| StoreError::Manifest { path: path.clone(), reason };
        let bytes = self.blobs.read(&path)?.ok_or_else(|| broken("there is no such file".to_owned()))?;
        manifest::decode(&bytes, number).map_err(broken)
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

    /// Commits `edit` after the newest version: the commit point is the name of the manifest. If
    /// others commit at the same time, it is put after theirs where that is sound.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] if it is not; then nothing was committed.
    pub fn commit(&self, base: Version, edit: &Edit, ids: &dyn Ids, now: i64) -> Result<Version> {
        let commit = format!("{:032x}", ids.next());
        let mut base = base;
        for _ in 0..REBASES {
            let conflict = |reason| StoreError::Conflict { table: self.name.clone(), reason };
            let next = match base.apply(edit, &commit, now) {
                Ok(next) => next,
                Err(reason) => {
                    // Perhaps because of itself: an earlier try of the caller, whose answer was lost.
                    let landed = self.landed(edit, &base)?;
                    if landed.is_none() {
                        self.discard(edit);
                    }
                    return landed.ok_or_else(|| conflict(reason));
                }
            };
            let path = self.manifest_path(next.number);
            let bytes =
                manifest::encode(&next).map_err(|reason| StoreError::Manifest { path: path.clone(), reason })?;
            if self.blobs.create_new(&path, &bytes)? {
                return Ok(next);
            }
            // Taken: by another, or by ourselves in a try whose reply was lost.
            if self.latest_number()? < next.number {
                // By one that was at it at the same time and did not finish either.
                continue;
            }
            let taken = self.version(next.number)?;
            if taken.commit == commit {
                return Ok(taken);
            }
            base = self.latest()?.unwrap_or(taken);
        }
        Err(StoreError::Conflict { table: self.name.clone(), reason: format!("{REBASES} others were faster") })
    }

    /// Removes the SSTs of an edit that will not be committed. What cannot be removed is named by no
    /// version, and harmless.
    pub fn discard(&self, edit: &Edit) {
        let compacted = edit.compacted.iter().flat_map(Compacted::written);
        for sst in edit.ssts.values().flatten().chain(compacted) {
            if let Err(error) = self.blobs.delete(&self.sst_path(&sst.id)) {
                tracing::warn!(%error, "an unused file stays");
            }
        }
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
