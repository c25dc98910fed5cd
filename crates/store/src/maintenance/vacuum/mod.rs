//! Vacuum: removing what no version that is kept names.
//!
//! [`decide`] says what may go, from listings and manifests alone; a [`VacuumPlan`] holds it, and can be shown;
//! [`VacuumPlan::run`] removes it. Readers are not asked: age protects them, since a version is removed so long after
//! another took its place, and a file that no version names so long after it was written. A writer that slept longer
//! than that is refused: before an SST goes, a version is committed that says which may be gone (see `commit`).

pub(crate) mod decide;
pub(crate) mod options;

use std::collections::HashSet;

use tidetable_sstable::tools::failpoints::{self, Bug};

use crate::error::Result;
use crate::ids::Ids;
use crate::storage::blobs::Stat;
use crate::storage::staging::PART;
use crate::store::Store;
use crate::table::Table;
use crate::version::{Version, VersionEdit};
use decide::{Found, FoundFile, decide, oldest_kept};
pub use decide::{Removal, RemovalKind};
pub use options::VacuumOptions;

/// What a vacuum of a table removes.
#[derive(Debug, Clone)]
pub struct VacuumPlan {
    table: Table,
    options: VacuumOptions,
    /// The newest version.
    pub newest: u64,
    /// The oldest version that stays.
    pub oldest: u64,
    /// What goes, in the order it goes.
    pub removals: Vec<Removal>,
}

/// What a vacuum did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct VacuumDone {
    /// What is gone.
    pub removals: Vec<Removal>,
    /// The version it committed, if SSTs were removed.
    pub version: Option<u64>,
}

impl VacuumPlan {
    /// Works out what `options` let go of `table`, and removes nothing.
    ///
    /// # Errors
    /// If the store cannot be listed, or one of the versions that stay cannot be read: then nothing is known to be
    /// unused.
    pub fn new(table: &Table, options: VacuumOptions) -> Result<Self> {
        Self::keeping(table, options, u64::MAX)
    }

    /// The same, but `oldest` stays too, and what comes after it.
    fn keeping(table: &Table, options: VacuumOptions, oldest: u64) -> Result<Self> {
        let stat = |path: String| -> Result<Option<FoundFile>> {
            let found = table.blobs().stat(&path)?;
            Ok(found.map(|Stat { bytes, modified, .. }| FoundFile { path, bytes, modified }))
        };
        let numbered = |numbers: Vec<u64>, path: &dyn Fn(u64) -> String| -> Result<Vec<(u64, FoundFile)>> {
            let files = numbers.into_iter().map(|number| Ok((number, stat(path(number))?)));
            // What is gone meanwhile was another vacuum's.
            Ok(files.collect::<Result<Vec<_>>>()?.into_iter().filter_map(|(at, file)| Some((at, file?))).collect())
        };
        let manifests = numbered(table.numbers(&table.manifest_folder())?, &|number| table.manifest_path(number))?;
        let newest = table.latest_number()?;
        let first = table.kept()?.oldest;
        let line = manifests.partition_point(|(number, _)| *number < first);
        let (pinned, dead_pins) = table.pinned(options.half_written_before)?;
        let kept = oldest_of_newest(table, first, newest, options.keep_versions)?;
        let oldest = oldest_kept(&manifests[line..], newest, kept, options.before).min(oldest);
        let oldest = pinned.map_or(oldest, |pinned| oldest.min(pinned.max(first)));
        let mut named = HashSet::new();
        if newest > 0 {
            let mut before: Option<Version> = None;
            let first = if failpoints::is(Bug::VacuumRetained) { newest } else { oldest };
            table.walk(first, newest, |version| {
                name_ssts(before.as_ref(), version, &mut named);
                before = Some(version.clone());
                Ok(())
            })?;
        }
        let checkpoints =
            numbered(table.numbers(&table.checkpoint_folder())?, &|number| table.checkpoint_path(number))?;
        // Listed after the versions were read: what was committed since is newer than all that may go.
        let names = table.blobs().list(&table.sst_folder())?;
        let ssts = names.iter().filter_map(|name| name.strip_suffix(".sst"));
        let ssts = ssts.map(|id| Ok(stat(table.sst_path(id))?.map(|file| (id.to_owned(), file))));
        let ssts: Vec<Option<(String, FoundFile)>> = ssts.collect::<Result<_>>()?;
        let mut leftovers = Vec::new();
        for path in dead_pins {
            leftovers.extend(stat(path)?);
        }
        let folders =
            [table.manifest_folder(), table.checkpoint_folder(), table.sst_folder(), table.quarantine_folder()];
        for folder in folders {
            for path in table.blobs().leftovers(&folder)? {
                leftovers.extend(stat(path)?);
            }
        }
        let found = Found { manifests, checkpoints, ssts: ssts.into_iter().flatten().collect(), leftovers };
        let removals = decide(found, oldest, &named, options);
        Ok(Self { table: table.clone(), options, newest, oldest, removals })
    }

    /// Whether nothing goes.
    pub fn is_empty(&self) -> bool {
        self.removals.is_empty()
    }

    /// Bytes that become free.
    pub fn bytes(&self) -> u64 {
        self.removals.iter().map(|removal| removal.bytes).sum()
    }

    /// Removes what it names, but for what is in use by then. On a full disk it gives up the store's reserve, which is the
    /// caller's to make again.
    ///
    /// # Errors
    /// If a file cannot be removed: then the rest stays for the next vacuum. Or if the version that says which files
    /// may be gone cannot be committed: then nothing was removed.
    pub fn run(self, ids: &dyn Ids) -> Result<VacuumDone> {
        let store = Store::new(self.table.blobs().clone());
        // No version knows of these, so they go before anything has to be written: the disk may be full.
        for removal in self.removals.iter().filter(|removal| removal.kind == RemovalKind::Leftover) {
            self.table.blobs().delete(&removal.path)?;
        }
        let (plan, version) = store.with_room(|| self.announce(ids))?;
        for removal in &plan.removals {
            plan.table.blobs().delete(&removal.path)?;
        }
        Ok(VacuumDone { removals: plan.removals, version })
    }

    /// Says in the store what is about to go: what goes of the plan then, and the version that says so.
    fn announce(&self, ids: &dyn Ids) -> Result<(Self, Option<u64>)> {
        let table = &self.table;
        let (mut plan, mut version) = (self.clone(), None);
        if plan.removals.iter().any(|removal| removal.kind.is_sst())
            && !failpoints::is(Bug::VacuumSaysNothing)
            && let Some(latest) = table.latest()?
        {
            let (base, now) = (latest.number, latest.now);
            let edit = VersionEdit { vacuumed: Some(plan.options.before), base, ..VersionEdit::default() };
            version = Some(table.commit(latest, &edit, ids, now)?.number);
            // Judged again: whoever commits from here on knows. What was not announced stays.
            let announced: HashSet<&str> = self.removals.iter().map(|removal| removal.path.as_str()).collect();
            plan = Self::keeping(table, plan.options, plan.oldest)?;
            plan.removals.retain(|removal| announced.contains(removal.path.as_str()));
            let gone = self.removals.iter().filter(|removal| removal.kind == RemovalKind::Leftover);
            plan.removals.extend(gone.cloned());
        }
        let takes_manifests = plan.removals.iter().any(|removal| removal.kind == RemovalKind::Manifest);
        if takes_manifests && !failpoints::is(Bug::VacuumWithoutCheckpoint) {
            table.keep_from(&table.version(plan.oldest)?)?;
        }
        Ok((plan, version))
    }
}

/// The oldest of the newest `count` versions of a line that begins with `first`, not counting those that change nothing. If
/// only one is to stay it is the newest, whatever that is.
fn oldest_of_newest(table: &Table, first: u64, newest: u64, count: u64) -> Result<u64> {
    let (mut number, mut left) = (newest, count);
    if count < 2 {
        return Ok(newest);
    }
    while number > first {
        let is_own = table.step(number)?.is_some_and(|(step, _)| step.changes_nothing());
        left -= u64::from(!is_own);
        if left == 0 {
            break;
        }
        number -= 1;
    }
    Ok(number)
}

/// Adds the SSTs that `version` names, but for windows it shares with the one `before`.
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

impl Store {
    /// What killed writers left half-written beside the tables, last written before `before`.
    ///
    /// # Errors
    /// If the store cannot be listed.
    pub fn leftovers(&self, before: i64) -> Result<Vec<Removal>> {
        let mut folders: Vec<String> = ["exports", "runs", "rejected"].map(str::to_owned).into();
        // Parts are folders of their own; to list a file finds nothing.
        let parts = self.blobs().list("exports")?;
        folders.extend(parts.into_iter().filter(|name| !name.contains('.')).map(|name| format!("exports/{name}")));
        let stat = |path: String| -> Result<Option<FoundFile>> {
            Ok(self.blobs().stat(&path)?.map(|Stat { bytes, modified, .. }| FoundFile { path, bytes, modified }))
        };
        let mut leftovers = Vec::new();
        for path in folders.iter().map(|folder| self.blobs().leftovers(folder)).collect::<Result<Vec<_>>>()?.concat() {
            leftovers.extend(stat(path)?);
        }
        for aside in self.blobs().leftovers("")? {
            leftovers.extend(self.left_aside(aside, stat)?);
        }
        Ok(decide::leftovers(leftovers, before).collect())
    }

    /// What is to be removed of a folder that was filled aside, itself last. It is as new as the newest file in it: one that
    /// is still written makes all of them so. What no writer of ours made stays.
    fn left_aside(&self, aside: String, stat: impl Fn(String) -> Result<Option<FoundFile>>) -> Result<Vec<FoundFile>> {
        let blobs = self.blobs();
        let inside = |name: &String| format!("{aside}/{name}");
        let mut paths: Vec<String> =
            blobs.list(&aside)?.iter().filter(|name| name.starts_with(PART)).map(inside).collect();
        paths.extend(blobs.leftovers(&aside)?);
        paths.push(aside);
        let mut found: Vec<FoundFile> =
            paths.into_iter().map(stat).filter_map(Result::transpose).collect::<Result<_>>()?;
        let newest = found.iter().map(|file| file.modified).max().flatten();
        found.iter_mut().for_each(|file| file.modified = newest);
        Ok(found)
    }
}
