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
use tidetable_blobs::{Blobs, PART, Stat};
use tidetable_store::version::{Version, VersionEdit};
use tidetable_store::{Ids, Result, Store, Table};

/// Files removed in one call: a request of S3 takes as many.
const BATCH: usize = 1000;

/// The files that a vacuum of a table removes.
#[derive(Debug, Clone)]
pub struct VacuumPlan {
    table: Table,
    options: VacuumOptions,
    /// Number of the newest version when it was planned.
    pub newest: u64,
    /// The oldest version to keep.
    pub oldest: u64,
    /// The files to remove, in this order.
    pub removals: Vec<Removal>,
}

/// Result of a vacuum.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct VacuumDone {
    /// The files that were removed, in this order.
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
        let manifest_store = table.manifests();
        let manifests = numbered_files(table, &manifest_store.directory())?;
        let newest = table.latest_number()?;
        let first = manifest_store.kept()?.oldest;
        let (pinned, dead_pins) = pinned(table, options.half_written_before)?;
        let kept = oldest_of_newest(table, first, newest, options.keep_versions)?;

        let there = manifests.partition_point(|(number, _)| *number < first);
        let by_age = oldest_kept(&manifests[there..], newest, kept, options.before).min(oldest);
        let oldest = pinned.map_or(by_age, |pinned| by_age.min(pinned.max(first)));
        let reason = if oldest < by_age {
            "a reader has pinned it"
        } else if oldest == newest {
            "it is the newest"
        } else if oldest == kept {
            "as many versions are to be kept"
        } else {
            "it was replaced too lately"
        };

        let from = if tidetable_sstable::failpoint!(VacuumRetained) { newest } else { oldest };
        let named = named_ssts(table, from, newest)?;
        let checkpoints = numbered_files(table, &manifest_store.checkpoint_directory())?;
        // Listed after reading versions: SSTs committed since are newer than any file to remove.
        let ssts = files_with_ending(table, &table.ssts().directory(), ".sst")?;
        let leftovers = leftovers_of(table, dead_pins)?;

        let found = TableFiles { manifests, checkpoints, ssts, leftovers };
        let removals = decide(found, oldest, &named, options);
        let plan = Self { table: table.clone(), options, newest, oldest, removals };
        plan.log(reason);
        Ok(plan)
    }

    /// Logs the plan; `reason` says why its oldest version is kept.
    fn log(&self, reason: &str) {
        tracing::debug!(
            table = self.table.name(),
            oldest = self.oldest,
            newest = self.newest,
            reason,
            files = self.removals.len(),
            bytes = self.bytes(),
            "vacuum_planned"
        );
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

        plan.log_removed();
        Ok(VacuumDone { removals: plan.removals, version })
    }

    /// Logs the removed files, an event for each kind.
    fn log_removed(&self) {
        for removals in self.removals.chunk_by(|a, b| a.kind == b.kind) {
            tracing::debug!(
                table = self.table.name(),
                reason = removals[0].kind.reason(),
                files = removals.len(),
                bytes = removals.iter().map(|removal| removal.bytes).sum::<u64>(),
                "vacuum_removed"
            );
        }
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

/// The file at a path inside the store; `None` if it vanished since it was listed.
fn found_file(blobs: &dyn Blobs, path: String) -> Result<Option<FoundFile>> {
    let stat = blobs.stat(&path)?;
    Ok(stat.map(|Stat { bytes, modified, .. }| FoundFile { path, bytes, modified }))
}

/// The files of `directory` with this `ending`, each by its name without it.
fn files_with_ending(table: &Table, directory: &str, ending: &str) -> Result<Vec<(String, FoundFile)>> {
    let mut files = Vec::new();
    for (name, Stat { bytes, modified, .. }) in table.blobs().list_stats(directory)? {
        if let Some(stem) = name.strip_suffix(ending) {
            files.push((stem.to_owned(), FoundFile { path: format!("{directory}/{name}"), bytes, modified }));
        }
    }

    Ok(files)
}

/// The manifests or checkpoints of `directory` by version number, ascending.
fn numbered_files(table: &Table, directory: &str) -> Result<Vec<(u64, FoundFile)>> {
    let files = files_with_ending(table, directory, ".json")?.into_iter();
    let mut numbered: Vec<_> = files.filter_map(|(name, file)| Some((name.parse().ok()?, file))).collect();
    numbered.sort_unstable_by_key(|(number, _)| *number);
    Ok(numbered)
}

/// Ids of the SSTs that the versions from `from` to `newest` name.
fn named_ssts(table: &Table, from: u64, newest: u64) -> Result<HashSet<String>> {
    let mut named = HashSet::new();
    if newest == 0 {
        return Ok(named);
    }

    let mut before: Option<Version> = None;
    table.manifests().walk(from, newest, |version| {
        name_ssts(before.as_ref(), version, &mut named);
        before = Some(version.clone());
        Ok(())
    })?;
    Ok(named)
}

/// What killed writers and readers left in the directories of a table: unfinished files, and `dead_pins`, by path.
fn leftovers_of(table: &Table, dead_pins: Vec<String>) -> Result<Vec<FoundFile>> {
    let blobs = table.blobs();
    let (manifests, ssts) = (table.manifests(), table.ssts());
    let mut paths = dead_pins;
    for directory in
        [manifests.directory(), manifests.checkpoint_directory(), ssts.directory(), ssts.quarantine_directory()]
    {
        paths.extend(blobs.leftovers(&directory)?);
    }

    let found = paths.into_iter().map(|path| found_file(blobs.as_ref(), path));
    found.filter_map(Result::transpose).collect()
}

/// The oldest of the newest `count` versions from `first` on, not counting those that change nothing. For a count of
/// one it is the newest version in any case.
fn oldest_of_newest(table: &Table, first: u64, newest: u64, count: u64) -> Result<u64> {
    if count < 2 {
        return Ok(newest);
    }

    let (mut number, mut left) = (newest, count);
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

/// Adds the SSTs of `version` to `named`, except of windows shared with `before`.
fn name_ssts(before: Option<&Version>, version: &Version, named: &mut HashSet<String>) {
    for (index, window) in version.windows.iter().enumerate() {
        let is_shared = before.is_some_and(|before| {
            let place = before.windows.binary_search_by_key(&window.start, |window| window.start);
            place.is_ok_and(|place| version.windows.shares(index, &before.windows, place))
        });
        if !is_shared {
            named.extend(window.ssts.iter().map(|sst| sst.id.clone()));
        }
    }
}

/// Unfinished files of killed writers outside tables, last written before `before` (microseconds since the epoch).
///
/// # Errors
/// If the store cannot be listed.
pub fn leftovers(store: &Store, before: i64) -> Result<Vec<Removal>> {
    let blobs = store.blobs();
    let mut directories: Vec<String> = ["exports", "runs", "rejected"].map(str::to_owned).into();
    // Parts are directories; listing a file returns nothing.
    let parts = blobs.list("exports")?;
    directories.extend(parts.into_iter().filter(|name| !name.contains('.')).map(|name| format!("exports/{name}")));

    let mut leftovers = Vec::new();
    for directory in &directories {
        for path in blobs.leftovers(directory)? {
            leftovers.extend(found_file(blobs.as_ref(), path)?);
        }
    }
    for staging in blobs.leftovers("")? {
        leftovers.extend(staging_leftovers(blobs.as_ref(), staging)?);
    }
    Ok(decide::leftovers(leftovers, before).collect())
}

/// The files to remove of a staging directory, and itself last. All are as new as the newest of them, since one
/// may still be written. Foreign files stay.
fn staging_leftovers(blobs: &dyn Blobs, staging: String) -> Result<Vec<FoundFile>> {
    let parts = blobs.list(&staging)?.into_iter().filter(|name| name.starts_with(PART));
    let mut paths: Vec<String> = parts.map(|name| format!("{staging}/{name}")).collect();
    paths.extend(blobs.leftovers(&staging)?);
    paths.push(staging);

    let found = paths.into_iter().map(|path| found_file(blobs, path));
    let mut found: Vec<FoundFile> = found.filter_map(Result::transpose).collect::<Result<_>>()?;
    let newest = found.iter().map(|file| file.modified).max().flatten();
    found.iter_mut().for_each(|file| file.modified = newest);
    Ok(found)
}
