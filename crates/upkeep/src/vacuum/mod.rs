//! Vacuum: removes old versions and files that no remaining version names.
//!
//! [`decide`] selects the files from listings and manifests; a [`VacuumPlan`] lists them; [`VacuumPlan::run`] removes
//! them. Minimum age protects readers and writers: a version is removed only some time after it was replaced, an
//! orphan file some time after it was written. A writer suspended for longer is fenced: before SSTs are removed, a
//! version is committed that records which may be gone (see `commit`).

pub(crate) mod decide;
pub(crate) mod options;

use std::collections::HashSet;

use crate::pins::pinned;
use decide::{FoundFile, TableFiles, decide, oldest_kept};
pub use decide::{Removal, RemovalKind};
pub use options::VacuumOptions;
use tidetable_blobs::PART;
use tidetable_blobs::Stat;
use tidetable_store::Ids;
use tidetable_store::Result;
use tidetable_store::Store;
use tidetable_store::Table;
use tidetable_store::version::{Version, VersionEdit};

/// Files removed in one call: a request of S3 takes as many.
const BATCH: usize = 1000;

/// The files that a vacuum of a table removes.
#[derive(Debug, Clone)]
pub struct VacuumPlan {
    table: Table,
    options: VacuumOptions,
    /// The newest version.
    pub newest: u64,
    /// The oldest version to keep.
    pub oldest: u64,
    /// The files to remove, in this order.
    pub removals: Vec<Removal>,
}

/// Result of a vacuum.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct VacuumDone {
    /// The removed files.
    pub removals: Vec<Removal>,
    /// The version it committed, if SSTs were removed.
    pub version: Option<u64>,
}

impl VacuumPlan {
    /// Plans a vacuum of `table`, and removes nothing.
    ///
    /// # Errors
    /// If the store cannot be listed, or a version to keep cannot be read: then no file is known to be unused.
    pub fn new(table: &Table, options: VacuumOptions) -> Result<Self> {
        Self::keeping(table, options, u64::MAX)
    }

    /// As [`Self::new`], but keeps `oldest` and later versions, too.
    fn keeping(table: &Table, options: VacuumOptions, oldest: u64) -> Result<Self> {
        let stat = |path: String| -> Result<Option<FoundFile>> {
            let found = table.blobs().stat(&path)?;
            Ok(found.map(|Stat { bytes, modified, .. }| FoundFile { path, bytes, modified }))
        };
        // The files of a directory by their names without this ending.
        let files = |directory: String, ending: &str| -> Result<Vec<(String, FoundFile)>> {
            let found = table.blobs().list_stats(&directory)?.into_iter();
            let file = |(name, Stat { bytes, modified, .. }): (String, Stat)| {
                let path = format!("{directory}/{name}");
                Some((name.strip_suffix(ending)?.to_owned(), FoundFile { path, bytes, modified }))
            };
            Ok(found.filter_map(file).collect())
        };
        let numbered = |directory: String| -> Result<Vec<(u64, FoundFile)>> {
            let found = files(directory, ".json")?.into_iter();
            let mut found: Vec<_> = found.filter_map(|(name, file)| Some((name.parse().ok()?, file))).collect();
            found.sort_unstable_by_key(|(number, _)| *number);
            Ok(found)
        };
        let (stored, sst_store) = (table.manifests(), table.ssts());
        let manifests = numbered(stored.directory())?;
        let newest = table.latest_number()?;
        let first = stored.kept()?.oldest;
        let line = manifests.partition_point(|(number, _)| *number < first);
        let (pinned, dead_pins) = pinned(table, options.half_written_before)?;
        let kept = oldest_of_newest(table, first, newest, options.keep_versions)?;
        let oldest = oldest_kept(&manifests[line..], newest, kept, options.before).min(oldest);
        let oldest = pinned.map_or(oldest, |pinned| oldest.min(pinned.max(first)));
        let mut named = HashSet::new();
        if newest > 0 {
            let mut before: Option<Version> = None;
            let first = if tidetable_sstable::failpoint!(VacuumRetained) { newest } else { oldest };
            stored.walk(first, newest, |version| {
                name_ssts(before.as_ref(), version, &mut named);
                before = Some(version.clone());
                Ok(())
            })?;
        }
        let checkpoints = numbered(stored.checkpoint_directory())?;
        // Listed after reading versions: SSTs committed since are newer than any file to remove.
        let ssts = files(sst_store.directory(), ".sst")?;
        let mut leftovers = Vec::new();
        for path in dead_pins {
            leftovers.extend(stat(path)?);
        }
        let (directory, quarantine) = (sst_store.directory(), sst_store.quarantine_directory());
        for directory in [stored.directory(), stored.checkpoint_directory(), directory, quarantine] {
            for path in table.blobs().leftovers(&directory)? {
                leftovers.extend(stat(path)?);
            }
        }
        let found = TableFiles { manifests, checkpoints, ssts, leftovers };
        let removals = decide(found, oldest, &named, options);
        Ok(Self { table: table.clone(), options, newest, oldest, removals })
    }

    /// Whether there is nothing to remove.
    pub fn is_empty(&self) -> bool {
        self.removals.is_empty()
    }

    /// Bytes to be freed.
    pub fn bytes(&self) -> u64 {
        self.removals.iter().map(|removal| removal.bytes).sum()
    }

    /// Removes the planned files, except those in use by then. On a full disk it removes the reserve file, which the
    /// caller must create again.
    ///
    /// # Errors
    /// If a file cannot be removed: the rest is left to the next vacuum. If the version with the new cutoff cannot be
    /// committed: nothing was removed.
    pub fn run(self, ids: &dyn Ids) -> Result<VacuumDone> {
        let store = Store::new(self.table.blobs().clone());
        // Removed before anything is written, because the disk may be full; no version names them.
        for removal in self.removals.iter().filter(|removal| removal.kind == RemovalKind::Leftover) {
            self.table.blobs().delete(&removal.path)?;
        }
        let (plan, version) = store.with_room(|| self.announce(ids))?;
        // Manifests one by one, in ascending order; others in batches, which is one request each in a bucket.
        for removals in plan.removals.chunk_by(|a, b| a.kind == b.kind && a.kind != RemovalKind::Manifest) {
            for batch in removals.chunks(BATCH) {
                let paths: Vec<String> = batch.iter().map(|removal| removal.path.clone()).collect();
                plan.table.blobs().delete_all(&paths)?;
            }
        }
        Ok(VacuumDone { removals: plan.removals, version })
    }

    /// Commits the new cutoff. Returns the files that may still be removed, and that version.
    fn announce(&self, ids: &dyn Ids) -> Result<(Self, Option<u64>)> {
        let table = &self.table;
        let (mut plan, mut version) = (self.clone(), None);
        if plan.removals.iter().any(|removal| removal.kind.is_sst())
            && !tidetable_sstable::failpoint!(VacuumSaysNothing)
            && let Some(latest) = table.latest()?
        {
            let (base, now) = (latest.number, latest.now);
            let edit = VersionEdit { vacuum_watermark: Some(plan.options.before), base, ..VersionEdit::default() };
            version = Some(table.commit(latest, &edit, ids, now)?.number);
            // Planned again: later commits see the cutoff. Files not in the first plan stay.
            let announced: HashSet<&str> = self.removals.iter().map(|removal| removal.path.as_str()).collect();
            plan = Self::keeping(table, plan.options, plan.oldest)?;
            plan.removals.retain(|removal| announced.contains(removal.path.as_str()));
            let gone = self.removals.iter().filter(|removal| removal.kind == RemovalKind::Leftover);
            plan.removals.extend(gone.cloned());
        }
        let takes_manifests = plan.removals.iter().any(|removal| removal.kind == RemovalKind::Manifest);
        if takes_manifests && !tidetable_sstable::failpoint!(VacuumWithoutCheckpoint) {
            table.manifests().truncate_before(&table.version(plan.oldest)?)?;
        }
        Ok((plan, version))
    }
}

/// The oldest of the newest `count` versions from `first` on, not counting those that change nothing. For a count of
/// one it is the newest version in any case.
fn oldest_of_newest(table: &Table, first: u64, newest: u64, count: u64) -> Result<u64> {
    let (mut number, mut left) = (newest, count);
    if count < 2 {
        return Ok(newest);
    }
    while number > first {
        let is_own = table.manifests().delta(number)?.is_some_and(|(delta, _)| delta.changes_nothing());
        left -= u64::from(!is_own);
        if left == 0 {
            break;
        }
        number -= 1;
    }
    Ok(number)
}

/// Adds the SSTs of `version`, except of windows shared with `before`.
fn name_ssts(before: Option<&Version>, version: &Version, named: &mut HashSet<String>) {
    for (at, window) in version.windows.iter().enumerate() {
        let place = before.and_then(|before| {
            let place = before.windows.binary_search_by_key(&window.start, |window| window.start).ok()?;
            version.windows.shares(at, &before.windows, place).then_some(())
        });
        if place.is_none() {
            named.extend(window.ssts.iter().map(|sst| sst.id.clone()));
        }
    }
}

/// Unfinished files of killed writers outside tables, last written before `before`.
///
/// # Errors
/// If the store cannot be listed.
pub fn leftovers(store: &Store, before: i64) -> Result<Vec<Removal>> {
    let mut directories: Vec<String> = ["exports", "runs", "rejected"].map(str::to_owned).into();
    // Parts are directories; listing a file returns nothing.
    let parts = store.blobs().list("exports")?;
    directories.extend(parts.into_iter().filter(|name| !name.contains('.')).map(|name| format!("exports/{name}")));
    let stat = |path: String| -> Result<Option<FoundFile>> {
        Ok(store.blobs().stat(&path)?.map(|Stat { bytes, modified, .. }| FoundFile { path, bytes, modified }))
    };
    let mut leftovers = Vec::new();
    for directory in &directories {
        for path in store.blobs().leftovers(directory)? {
            leftovers.extend(stat(path)?);
        }
    }

    for staging in store.blobs().leftovers("")? {
        leftovers.extend(staging_leftovers(store, staging, stat)?);
    }
    Ok(decide::leftovers(leftovers, before).collect())
}

/// The files to remove of a staging directory, and itself last. All are as new as the newest of them, since one
/// may still be written. Foreign files stay.
fn staging_leftovers(
    store: &Store,
    staging: String,
    stat: impl Fn(String) -> Result<Option<FoundFile>>,
) -> Result<Vec<FoundFile>> {
    let blobs = store.blobs();
    let inside = |name: &String| format!("{staging}/{name}");
    let mut paths: Vec<String> =
        blobs.list(&staging)?.iter().filter(|name| name.starts_with(PART)).map(inside).collect();
    paths.extend(blobs.leftovers(&staging)?);
    paths.push(staging);
    let mut found: Vec<FoundFile> = paths.into_iter().map(stat).filter_map(Result::transpose).collect::<Result<_>>()?;
    let newest = found.iter().map(|file| file.modified).max().flatten();
    found.iter_mut().for_each(|file| file.modified = newest);
    Ok(found)
}
