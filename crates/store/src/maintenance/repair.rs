//! Repair: damaged SSTs are taken out of a table, and what they held is loaded again where its inputs are still there.
//!
//! A window is a function of its inputs, so nothing is patched: the inputs of a window that lost a file count as changed
//! from then on, and the next run builds their windows anew. Until then the table answers without what was lost, and
//! the days of those windows count as changed.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;

use tidetable_source::ContentHash;

use crate::error::{Result, StoreError};
use crate::ids::Ids;
use crate::maintenance::verify::{SstReport, VerifyOptions};
use crate::store::Store;
use crate::table::Table;
use crate::version::{Input, Version, VersionEdit};

/// What a repair takes out of the newest version of a table.
#[derive(Debug)]
pub struct RepairPlan {
    table: Table,
    base: Version,
    /// The damaged SSTs, by window: with their keys and times these are what is lost.
    pub lost: Vec<SstReport>,
    /// The inputs whose cells lie in the windows of those, by sequence: what to load again.
    pub inputs: Vec<Input>,
    /// What is wrong with manifests, which a repair cannot mend.
    pub manifests: Vec<StoreError>,
}

/// What a repair did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepairDone {
    /// The version without the damaged SSTs.
    pub version: u64,
    /// Copies of those that could be read, beside the table's other files; vacuum does not touch them.
    pub kept: Vec<String>,
}

impl RepairPlan {
    /// Reads the newest version of a table back and plans to take out what is damaged of it: all SSTs, or those of
    /// `only`, by id.
    ///
    /// # Errors
    /// If there is no version that can be read, or [`StoreError::NotDamaged`] if one of `only` is sound or is none
    /// of the newest version.
    pub fn new(store: &Store, name: &str, only: &[String]) -> Result<Self> {
        let base = store.snapshot(name)?.version().clone();
        let table = store.table(name);
        let report = table.verify(VerifyOptions::default())?;
        let mut lost: Vec<SstReport> = report.ssts.into_iter().filter(|file| !file.damage.is_empty()).collect();
        if let Some(sound) = only.iter().find(|id| !lost.iter().any(|file| file.sst.id == **id)) {
            return Err(StoreError::NotDamaged { table: name.to_owned(), sst: sound.clone() });
        }
        lost.retain(|file| only.is_empty() || only.contains(&file.sst.id));
        let windows: BTreeSet<i64> = lost.iter().flat_map(SstReport::windows).collect();
        let touches = |input: &&Input| input.windows.iter().any(|window| windows.contains(window));
        let inputs = base.inputs.iter().filter(touches).cloned().collect();
        Ok(Self { table, base, lost, inputs, manifests: report.manifests })
    }

    /// Whether nothing is damaged.
    pub fn is_empty(&self) -> bool {
        self.lost.is_empty()
    }

    /// The version it was worked out against.
    pub fn version(&self) -> &Version {
        &self.base
    }

    /// The edit that takes the SSTs out.
    fn edit(&self) -> VersionEdit {
        let mut edit = VersionEdit { base: self.base.number, ..VersionEdit::default() };
        for file in &self.lost {
            edit.taken_out.entry(file.window).or_default().push(file.sst.id.clone());
        }
        let windows: BTreeSet<i64> = self.lost.iter().flat_map(SstReport::windows).collect();
        let lost = self.base.windows.iter().filter(|window| windows.contains(&window.start));
        let days: BTreeMap<i64, BTreeSet<i32>> =
            lost.map(|window| (window.start, window.days.keys().copied().collect())).collect();
        edit.days = days;
        // What is left of them is not their content.
        let changed = |input: &Input| Input { hash: ContentHash(0), version: String::new(), ..input.clone() };
        edit.inputs = self.inputs.iter().map(changed).collect();
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
                Err(error) => tracing::warn!(%error, "no copy of a damaged file is kept"),
            }
        }
        Ok(RepairDone { version, kept })
    }

    /// Copies an SST where vacuum does not look; `None` if it is not there.
    fn keep(&self, id: &str) -> Result<Option<String>> {
        let path = self.table.quarantine_path(id);
        let Some(bytes) = self.table.blobs().read(&self.table.sst_path(id))? else { return Ok(None) };
        let mut copy = self.table.blobs().replacer(&path)?;
        copy.write_all(&bytes).map_err(|source| StoreError::Io { action: "write", path: path.clone(), source })?;
        copy.finish()?;
        Ok(Some(path))
    }
}
