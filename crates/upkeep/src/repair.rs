//! Repair: removes damaged SSTs from a table, so that their windows are rebuilt from inputs that still exist.
//!
//! A window is a function of its inputs, so nothing is patched: the inputs of a window that lost a file count as
//! changed, and the next run rebuilds their windows. Until then the table answers without the lost cells, and the
//! days of those windows count as changed.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use tidetable_blobs::BlobError;

use tidetable_source::ContentHash;

use crate::verify::{SstReport, VerifyOptions, verify};
use tidetable_store::Ids;
use tidetable_store::Store;
use tidetable_store::Table;
use tidetable_store::version::{Input, InputName, Version, VersionEdit};
use tidetable_store::{Result, StoreError};

/// The SSTs that a repair removes from the newest version of a table.
#[derive(Debug)]
pub struct RepairPlan {
    table: Table,
    base: Version,
    /// The damaged SSTs, by window; their keys and times tell what is lost.
    pub lost: Vec<SstReport>,
    /// The inputs with cells in their windows, by sequence number: they are loaded again.
    pub inputs: Vec<Input>,
    /// Damage of manifests, which a repair cannot remove.
    pub manifests: Vec<StoreError>,
}

/// Result of a repair.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepairDone {
    /// The version without the damaged SSTs.
    pub version: u64,
    /// Quarantined copies of the readable ones; vacuum does not remove them.
    pub kept: Vec<String>,
}

impl RepairPlan {
    /// Verifies the newest version of a table and plans to remove its damaged SSTs: all, or those of `only`, by id.
    ///
    /// # Errors
    /// If no version is readable, or [`StoreError::NotDamaged`] if one of `only` is sound or not in the newest
    /// version.
    pub fn new(store: &Store, name: &str, only: &[String]) -> Result<Self> {
        let base = store.snapshot(name)?.version().clone();
        let table = store.table(name);
        let report = verify(&table, VerifyOptions::default())?;
        let mut lost: Vec<SstReport> = report.ssts.into_iter().filter(|file| !file.damage.is_empty()).collect();
        if let Some(sound) = only.iter().find(|id| !lost.iter().any(|file| file.sst.id == **id)) {
            return Err(StoreError::NotDamaged { table: name.to_owned(), sst: sound.clone() });
        }
        lost.retain(|file| only.is_empty() || only.contains(&file.sst.id));
        let windows: BTreeSet<i64> = lost.iter().flat_map(SstReport::windows).collect();
        let touches = |input: &&Input| input.touches().any(|window| windows.contains(&window));
        let inputs = base.inputs.iter().filter(touches).cloned().collect();
        Ok(Self { table, base, lost, inputs, manifests: report.manifests })
    }

    /// Whether nothing is damaged.
    pub fn is_empty(&self) -> bool {
        self.lost.is_empty()
    }

    /// The version it was made against.
    pub fn version(&self) -> &Version {
        &self.base
    }

    /// The edit that removes the SSTs.
    fn edit(&self) -> VersionEdit {
        let mut edit = VersionEdit { base: self.base.number, ..VersionEdit::default() };
        for file in &self.lost {
            edit.removed_ssts.entry(file.window).or_default().push(file.sst.id.clone());
        }
        let windows: BTreeSet<i64> = self.lost.iter().flat_map(SstReport::windows).collect();
        let lost = self.base.windows.iter().filter(|window| windows.contains(&window.start));
        let days: BTreeMap<i64, BTreeSet<i32>> =
            lost.map(|window| (window.start, window.days.keys().copied().collect())).collect();
        edit.days = days;
        // Their remaining cells are not their content.
        let changed = |input: &Input| {
            let mut changed = Input { hash: ContentHash(0), version: String::new(), ..input.clone() };
            changed.owed.iter_mut().for_each(|owed| owed.held = None);
            changed
        };
        edit.inputs = self.inputs.iter().map(changed).collect();
        let left_in = |name: &&InputName| name.owed.iter().any(|owed| windows.contains(&owed.start));
        edit.names = self.base.names.iter().filter(left_in).cloned().collect();
        edit.names.iter_mut().flat_map(|name| &mut name.owed).for_each(|owed| owed.held = None);
        edit
    }

    /// Commits the table without the damaged SSTs, and keeps copies of them.
    ///
    /// # Errors
    /// Those of committing; then nothing has changed.
    pub fn run(&self, ids: &dyn Ids) -> Result<RepairDone> {
        if self.is_empty() {
            return Ok(RepairDone { version: self.base.number, kept: Vec::new() });
        }
        let version = self.table.commit(self.base.clone(), &self.edit(), ids, self.base.now)?.number;
        let mut kept = Vec::new();
        for file in &self.lost {
            match self.keep(&file.sst.id) {
                Ok(path) => kept.extend(path),
                Err(error) => tracing::warn!(%error, "cannot copy a damaged SST to quarantine"),
            }
        }
        Ok(RepairDone { version, kept })
    }

    /// Copies an SST to quarantine; `None` if it is missing.
    fn keep(&self, id: &str) -> Result<Option<String>> {
        let path = self.table.ssts().quarantine_path(id);
        let Some(bytes) = self.table.blobs().read(&self.table.sst_path(id))? else { return Ok(None) };
        let mut copy = self.table.blobs().overwrite_writer(&path)?;
        copy.write_all(&bytes)
            .map_err(|source| StoreError::Blob(BlobError::Io { action: "write", path: path.clone(), source }))?;
        copy.finish()?;
        Ok(Some(path))
    }
}
