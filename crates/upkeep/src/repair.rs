//! Repair: removes damaged SSTs from a table, so that their windows are rebuilt from inputs that still exist.
//!
//! A window is a function of its inputs, so nothing is patched: the inputs of a window that lost a file owe that window,
//! and the next run rebuilds it from them. If one of them is gone, the window stays owed until that input is back or
//! removed. Until then the table answers without the lost cells, and no day of the window is published.

use std::collections::BTreeSet;
use std::io::Write;

use tidetable_blobs::BlobError;
use tidetable_store::version::{Input, OwedWindow, Version, VersionEdit, days_in, mark_lost};
use tidetable_store::{Ids, Result, Store, StoreError, Table, window_names};

use crate::verify::{SstReport, VerifyOptions, verify};

/// The SSTs that a repair removes from the newest version of a table.
#[derive(Debug)]
pub struct RepairPlan {
    table: Table,
    base: Version,
    /// The damaged SSTs, by window; their keys and times tell what is lost.
    pub lost: Vec<SstReport>,
    /// The inputs with cells in their windows, by sequence number: they are read again.
    pub inputs: Vec<Input>,
    /// Those of `inputs` that are gone, by path.
    pub gone: Vec<String>,
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
    /// `is_gone` says whether the input with a path is known to be missing.
    ///
    /// # Errors
    /// If no version is readable, or [`StoreError::NotDamaged`] if one of `only` is sound or not in the newest
    /// version.
    pub fn new(store: &Store, name: &str, only: &[String], is_gone: impl Fn(&str) -> bool) -> Result<Self> {
        let base = store.snapshot(name)?.version().clone();
        let table = store.table(name);
        let report = verify(&table, VerifyOptions::default())?;
        let mut lost: Vec<SstReport> = report.ssts.into_iter().filter(|file| !file.damage.is_empty()).collect();
        if let Some(sound) = only.iter().find(|id| !lost.iter().any(|file| file.sst.id == **id)) {
            return Err(StoreError::NotDamaged { table: name.to_owned(), sst: sound.clone() });
        }
        lost.retain(|file| only.is_empty() || only.contains(&file.sst.id));

        let windows: BTreeSet<i64> = lost.iter().flat_map(SstReport::windows).collect();
        let touching = base.inputs.iter().filter(|input| input.touches().any(|window| windows.contains(&window)));
        let inputs: Vec<Input> = touching.cloned().collect();
        let paths = inputs.iter().map(|input| input.path.as_str());
        let gone = paths.filter(|path| is_gone(path)).map(str::to_owned).collect();
        Ok(Self { table, base, lost, inputs, gone, manifests: report.manifests })
    }

    /// Starts of the windows that the SSTs belong to.
    fn windows(&self) -> BTreeSet<i64> {
        self.lost.iter().flat_map(SstReport::windows).collect()
    }

    /// Starts of the windows that the next run cannot rebuild, because an input of theirs is gone.
    pub fn stuck(&self) -> BTreeSet<i64> {
        let gone = self.inputs.iter().filter(|input| self.gone.contains(&input.path));
        let touched: BTreeSet<i64> = gone.flat_map(Input::touches).collect();
        self.windows().intersection(&touched).copied().collect()
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
        let windows = self.windows();
        for window in self.base.windows.iter().filter(|window| windows.contains(&window.start)) {
            edit.days.insert(window.start, window.days.keys().copied().collect());
        }

        // The next load rebuilds these windows, and no other window of the inputs.
        edit.inputs = self.inputs.iter().map(|input| self.owing(input, &windows)).collect();

        let names = self.base.names.iter();
        let owing = names.filter(|name| name.owed.iter().any(|owed| windows.contains(&owed.start)));
        edit.names = owing.cloned().collect();
        edit.names.iter_mut().for_each(|name| mark_lost(&mut name.owed, &windows));
        edit
    }

    /// The record of `input` with what it owes in the lost `windows`.
    fn owing(&self, input: &Input, windows: &BTreeSet<i64>) -> Input {
        let mut input = input.clone();
        for start in input.windows.iter().filter(|start| windows.contains(start)) {
            if input.owed.iter().any(|owed| owed.start == *start) {
                continue;
            }
            let days = days_in(&input.days, self.base.table.spec.window, *start);
            input.owed.push(OwedWindow { start: *start, rows: 0, days, held: None, lost: true });
        }
        input.owed.sort_by_key(|owed| owed.start);
        mark_lost(&mut input.owed, windows);
        input
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
        self.log_lost(version);
        let mut kept = Vec::new();
        for file in &self.lost {
            match self.keep(&file.sst.id) {
                Ok(path) => kept.extend(path),
                Err(error) => tracing::warn!(%error, "cannot copy a damaged SST to quarantine"),
            }
        }
        Ok(RepairDone { version, kept })
    }

    /// Logs each SST that `version` no longer names.
    fn log_lost(&self, version: u64) {
        let unit = self.base.table.spec.window;
        for file in &self.lost {
            tracing::debug!(
                table = self.table.name(),
                window = window_names(unit, file.windows()),
                reason = file.damage.first().map(ToString::to_string),
                sst = file.sst.id,
                version,
                "sst_removed"
            );
        }
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
