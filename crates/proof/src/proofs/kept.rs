//! Checks of versions and files: remaining versions read as before, their files are intact, and no other file exists.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tidetable_layout::KeyRange;
use tidetable_store::{Snapshot, Table};
use tidetable_upkeep::{VerifyOptions, verify};

use crate::cells::{Cells, cells_in, same};
use crate::finding::{Finding, Result};

/// Expected cells of each version that vacuum has not removed.
#[derive(Debug, Default)]
pub struct Shown(BTreeMap<u64, Arc<Cells>>);

impl Shown {
    /// Records that version `number` shows `cells`; of a version that is known already nothing changes.
    pub fn put(&mut self, number: u64, cells: &Cells) {
        self.0.entry(number).or_insert_with(|| Arc::new(cells.clone()));
    }

    /// Forgets the versions that vacuum removed. At least the newest `kept` must be there, and all from the oldest on.
    ///
    /// # Errors
    /// If one is missing.
    pub fn vacuumed(&mut self, table: &Table, kept: u64) -> Result<()> {
        let numbers = table.version_numbers()?;
        let (Some(oldest), Some(newest)) = (numbers.first(), numbers.last()) else {
            return Err(Finding::new("a vacuum left no version"));
        };
        let known = self.0.keys().next_back().copied().unwrap_or(0);
        let first = (known + 1).saturating_sub(kept).max(self.0.keys().next().copied().unwrap_or(1));
        if *oldest > first || numbers.len() as u64 != newest + 1 - oldest {
            return Err(Finding::new(format!("versions {numbers:?} are left of {known}, {kept} were to stay")));
        }
        self.0 = self.0.split_off(oldest);
        Ok(())
    }

    /// Reads version `number` back, if it is known.
    ///
    /// # Errors
    /// If it cannot be read or shows something else.
    pub fn check(&self, table: &Table, number: u64) -> Result<()> {
        let Some(cells) = self.0.get(&number) else { return Ok(()) };
        let snapshot = Snapshot::new(table.clone(), table.version(number)?.into())?;
        same(&format!("version {number}"), &cells_in(&snapshot, &KeyRange::all())?, cells)
    }

    /// Numbers of the known versions, ascending: those that reads must still find.
    pub fn numbers(&self) -> Vec<u64> {
        self.0.keys().copied().collect()
    }
}

/// Fails unless all files of the newest version, or of all versions, are intact.
///
/// # Errors
/// The report of verify.
pub fn whole(table: &Table, all_versions: bool) -> Result<()> {
    let report = verify(table, VerifyOptions { all_versions, checksums_only: false })?;
    if report.is_sound() { Ok(()) } else { Err(Finding::new(format!("verify says: {report:?}"))) }
}

/// Fails if a file exists that no version needs, or one is missing.
///
/// # Errors
/// The first such files.
pub fn tidy(table: &Table) -> Result<()> {
    let numbers = table.version_numbers()?;
    let mut named = BTreeSet::new();
    for number in &numbers {
        named.extend(table.version(*number)?.ssts().map(|sst| format!("{}.sst", sst.id)));
    }
    alike("SSTs", files_of(table, "sst")?, named)?;
    let manifests = numbers.iter().map(|number| format!("{number:020}.json")).collect();
    alike("manifests", files_of(table, "manifest")?, manifests)?;

    let oldest = numbers.first().map(|number| format!("{number:020}")).unwrap_or_default();
    if let Some(passed) = files_of(table, "checkpoint")?.iter().find(|name| name.as_str() < oldest.as_str()) {
        return Err(Finding::new(format!("checkpoint {passed} is left over")));
    }
    for name in ["sst", "manifest", "checkpoint"] {
        alike(name, table.blobs().leftovers(&folder(table, name))?.into_iter().collect(), BTreeSet::new())?;
    }
    Ok(())
}

fn folder(table: &Table, name: &str) -> String {
    format!("tables/{}/{name}", table.name())
}

fn files_of(table: &Table, name: &str) -> Result<BTreeSet<String>> {
    Ok(table.blobs().list(&folder(table, name))?.into_iter().collect())
}

fn alike(what: &str, found: BTreeSet<String>, expected: BTreeSet<String>) -> Result<()> {
    if found == expected {
        return Ok(());
    }
    let left: Vec<&String> = found.difference(&expected).take(3).collect();
    let missing: Vec<&String> = expected.difference(&found).take(3).collect();
    Err(Finding::new(format!("{what}: {left:?} are left over, {missing:?} are missing")))
}
