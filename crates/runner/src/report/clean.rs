//! Removal of old run records, and of files outside tables that nothing refers to. A plan selects them; only
//! [`CleanPlan::run`] removes.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fs::OpenOptions;

use tidetable_blobs::{BlobError, Blobs};
use tidetable_export::{ExportError, expired_files, forget_expired, stranded};
use tidetable_job::{Job, Project};
use tidetable_record::{Outcome, PartState, RunRecord, Runs, holder};
use tidetable_store::published::Published;
use tidetable_store::{Store, StoreError};

use crate::fault::error::RunError;
use crate::report::MIN_AGE;

/// Options of a clean-up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CleanOptions {
    /// Remove only what is older than this, microseconds since the epoch.
    pub before: i64,
    /// The clock, microseconds since the epoch: half-written files and exports are kept for an hour at least.
    pub clock: i64,
    /// Number of newest records of each job that are kept whatever their age.
    pub keep: usize,
}

/// A file to remove.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cleaned {
    /// Path inside the store.
    pub path: String,
    /// What was left, and so why it is removed.
    pub kind: CleanedKind,
    /// Length of the file, bytes.
    pub bytes: u64,
}

/// A kind of removed file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum CleanedKind {
    /// The record of a run.
    Record,
    /// Rejected rows of a run whose record is removed or gone.
    Rejects,
    /// Rows that broke checks, of a run whose record is removed or gone.
    Failing,
    /// The lock of a job that the project no longer has.
    Lock,
    /// The list of gone and copied inputs of such a job.
    Seen,
    /// A half-written file of a killed run.
    HalfWritten,
    /// A published part that no list names.
    Part,
    /// A file of a table with a log that was replaced or withdrawn, after its retention.
    Replaced,
}

impl CleanedKind {
    /// Its name in messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Record => "run record",
            Self::Rejects => "file of rejected rows",
            Self::Failing => "file of failing rows",
            Self::Lock => "lock",
            Self::Seen => "list of gone inputs",
            Self::HalfWritten => "half-written file",
            Self::Part => "unlisted part",
            Self::Replaced => "replaced file",
        }
    }
}

/// The files to remove, in that order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CleanPlan {
    /// A record precedes the files it refers to.
    pub removals: Vec<Cleaned>,
    /// Unreferenced files that are kept, and why.
    pub notes: Vec<String>,
    /// Exports with published parts and without a list, and how many parts.
    lost_lists: BTreeMap<String, u64>,
    /// Directories of tables that a catalog has: runs take snapshots out there first.
    cataloged: BTreeSet<String>,
    /// The time, microseconds since the epoch.
    clock: i64,
}

impl CleanPlan {
    /// Selects what to remove from `store`. The jobs that exist are known from `project` only.
    ///
    /// # Errors
    /// If the store cannot be listed, or a list of an export cannot be read.
    pub fn new(store: &Store, project: Option<&Project>, options: CleanOptions) -> Result<Self, RunError> {
        let blobs = store.blobs().as_ref();
        let mut plan = Self { clock: options.clock, ..Self::default() };
        let names = Runs::of(blobs).names()?;
        let removed = plan.records(store, options)?;
        plan.rows(store, &names, &removed, options.before)?;
        if let Some(project) = project {
            plan.files_of_lost_jobs(store, project, options.before)?;
        }

        // They hold nothing: their age only tells whether they are still being written.
        let settled = options.clock.saturating_sub(MIN_AGE);
        for left in tidetable_upkeep::leftovers(store, settled)? {
            plan.removals.push(Cleaned { path: left.path, kind: CleanedKind::HalfWritten, bytes: left.bytes });
        }

        plan.parts(store, project, options.before.min(settled))?;
        for list in Published::readable(blobs)?.0 {
            plan.replaced(blobs, &list, options.clock)?;
        }

        Ok(plan)
    }

    /// Selects the records that are not kept, the oldest first. Gives the names of their runs.
    fn records(&mut self, store: &Store, options: CleanOptions) -> Result<HashSet<String>, RunError> {
        let mut records: Vec<RunRecord> = Vec::new();
        for record in Runs::of(store.blobs().as_ref()).newest_first(None)? {
            match record {
                Ok(record) => records.push(record),
                // Its job is unknown, so only its age decides. Records of newer builds are kept.
                Err(StoreError::Unreadable { path, .. }) => {
                    self.select(store, path, CleanedKind::Record, options.before)?
                }
                Err(_) => {}
            }
        }

        let kept = kept(&records, options);
        let mut removed = HashSet::new();
        for record in records.iter().rev().filter(|record| !kept.contains(record.run.as_str())) {
            self.select(store, format!("runs/{}.json", record.run), CleanedKind::Record, i64::MAX)?;
            removed.insert(record.run.clone());
        }
        Ok(removed)
    }

    /// Selects rejected and failing rows: those of the runs in `removed`, whose records are removed, and those last written
    /// before `before` of runs that are not in `known`, so that they have no record.
    fn rows(
        &mut self,
        store: &Store,
        known: &[String],
        removed: &HashSet<String>,
        before: i64,
    ) -> Result<(), RunError> {
        let known: HashSet<&str> = known.iter().map(String::as_str).collect();

        for (folder, kind) in [("rejected", CleanedKind::Rejects), ("failing", CleanedKind::Failing)] {
            for file in store.blobs().list(folder)?.iter().filter(|file| file.ends_with(".jsonl")) {
                let run = file.split('.').next().unwrap_or_default();
                match (removed.contains(run), known.contains(run)) {
                    (true, _) => self.select(store, format!("{folder}/{file}"), kind, i64::MAX)?,
                    (false, false) => self.select(store, format!("{folder}/{file}"), kind, before)?,
                    (false, true) => {}
                }
            }
        }
        Ok(())
    }

    /// Selects locks and lists of gone inputs of jobs that the project no longer has, last written before `before`.
    fn files_of_lost_jobs(&mut self, store: &Store, project: &Project, before: i64) -> Result<(), RunError> {
        let jobs = project.jobs();

        for (folder, ending, kind) in [("locks", ".lock", CleanedKind::Lock), ("seen", ".json", CleanedKind::Seen)] {
            for file in store.blobs().list(folder)? {
                let is_lost = file.strip_suffix(ending).is_some_and(|job| !jobs.iter().any(|known| known == job));
                if is_lost {
                    self.select(store, format!("{folder}/{file}"), kind, before)?;
                }
            }
        }
        Ok(())
    }

    /// Exports whose list is missing although published parts exist: the number of parts, by export.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub(crate) fn lost_lists(store: &Store, project: Option<&Project>) -> Result<BTreeMap<String, u64>, RunError> {
        let mut plan = Self::default();
        plan.parts(store, project, i64::MIN)?;
        Ok(plan.lost_lists)
    }

    /// Published parts that no list names, of exports that have a list or that no job declares.
    fn parts(&mut self, store: &Store, project: Option<&Project>, before: i64) -> Result<(), RunError> {
        let blobs = store.blobs().as_ref();
        let (lists, damaged) = Published::readable(blobs)?;
        let damaged: Vec<String> = damaged
            .into_iter()
            .map(|error| match error {
                StoreError::Unreadable { path, .. } | StoreError::Newer { path, .. } => Ok(path),
                error => Err(error),
            })
            .collect::<Result<_, _>>()?;

        let named: HashSet<&str> =
            lists.iter().flat_map(|list| list.parts.values().map(|part| part.folder.as_str())).collect();
        let declared = project.map(declared);

        for folder in blobs.list("exports")?.into_iter().filter(|name| !name.ends_with(".json")) {
            let is_file = blobs.directory().is_some_and(|root| !root.join("exports").join(&folder).is_dir());
            if named.contains(folder.as_str()) || is_file {
                continue;
            }

            let Some(part) = stranded(store, &folder)? else { continue };
            // Its parts are unknown.
            if damaged.contains(&format!("exports/{}.json", part.export)) {
                continue;
            }

            let listed = lists.iter().any(|list| list.name == part.export);
            // Without its list an export can still be adopted: `run --adopt`.
            let given_up = matches!(&declared, Some(Some(exports)) if !exports.contains(&part.export));
            if listed || given_up {
                for path in part.paths {
                    self.select(store, path, CleanedKind::Part, before)?;
                }
            } else {
                *self.lost_lists.entry(part.export).or_default() += 1;
            }
        }

        for path in &damaged {
            self.notes.push(format!("{path} cannot be read, so all parts of that export stay: see `tidetable doctor`"));
        }
        for (export, parts) in &self.lost_lists {
            self.notes.push(format!(
                "exports/{export}.json is gone, so {parts} published parts of {export} stay: `tidetable run --adopt` takes them back"
            ));
        }
        Ok(())
    }

    /// Files of the tables of a list that no reader within the retention needs.
    fn replaced(&mut self, blobs: &dyn Blobs, list: &Published, clock: i64) -> Result<(), RunError> {
        if list.cataloged.is_some() {
            let folders = list.parts.values().filter_map(|part| part.folder.split('/').next());
            self.cataloged.extend(folders.map(str::to_owned));
        }

        match expired_files(blobs, list, clock) {
            Ok(expired) => {
                let stats = blobs.stat_all(&expired)?;
                for (path, found) in expired.into_iter().zip(stats) {
                    let bytes = found.map_or(0, |found| found.bytes);
                    self.removals.push(Cleaned { path, kind: CleanedKind::Replaced, bytes });
                }
            }
            Err(ExportError::Log { path, .. }) => self.notes.push(format!(
                "{path} does not tell its files, so replaced files of {} stay: see `tidetable doctor`",
                list.name
            )),
            // A file in place of a directory is a finding of `doctor`.
            Err(ExportError::Store(StoreError::Blob(BlobError::NotADirectory { .. }))) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    /// Adds a file that was last written before `before`.
    fn select(&mut self, store: &Store, path: String, kind: CleanedKind, before: i64) -> Result<(), RunError> {
        let found = store.blobs().stat(&path)?;
        if let Some(found) = found.filter(|found| before == i64::MAX || found.modified.is_some_and(|at| at < before)) {
            self.removals.push(Cleaned { path, kind, bytes: found.bytes });
        }
        Ok(())
    }

    /// Removes the selected files. If interrupted, the remaining files are complete.
    ///
    /// # Errors
    /// If a file cannot be removed: then the rest stays for the next time.
    pub fn run(&self, store: &Store) -> Result<(), RunError> {
        let blobs = store.blobs();
        self.forget_expired(blobs.as_ref())?;
        let Some(root) = blobs.directory() else { return self.run_in_bucket(blobs.as_ref()) };

        for Cleaned { path, kind, .. } in &self.removals {
            if *kind == CleanedKind::Lock {
                // A run that holds the lock is active.
                let Ok(file) = OpenOptions::new().read(true).open(root.join(path)) else { continue };
                if file.try_lock().is_ok() {
                    blobs.delete(path)?;
                }
                continue;
            }

            blobs.delete(path)?;
            if let (CleanedKind::Part | CleanedKind::Replaced, Some((folder, _))) = (kind, path.rsplit_once('/')) {
                // Fails, as it should, if the directory is not empty.
                let _ = std::fs::remove_dir(root.join(folder));
            }
        }
        Ok(())
    }

    /// Takes the versions that only name replaced files out of the logs of their tables, before these are removed.
    fn forget_expired(&self, blobs: &dyn Blobs) -> Result<(), RunError> {
        let replaced = self.removals.iter().filter(|removal| removal.kind == CleanedKind::Replaced);
        let folders: BTreeSet<&str> = replaced.filter_map(|removal| removal.path.split('/').nth(1)).collect();
        for folder in folders.into_iter().filter(|folder| !self.cataloged.contains(*folder)) {
            forget_expired(blobs, folder, self.clock)?;
        }
        Ok(())
    }
}

/// Objects removed in one call: a request of S3 takes as many.
const BATCH: usize = 1000;

impl CleanPlan {
    fn run_in_bucket(&self, blobs: &dyn Blobs) -> Result<(), RunError> {
        for removals in self.removals.chunk_by(|a, b| a.kind == b.kind) {
            for batch in removals.chunks(BATCH) {
                let mut paths: Vec<String> = batch.iter().map(|cleaned| cleaned.path.clone()).collect();
                // A run that holds the lease may be active.
                paths.retain(|path| {
                    let job = path.strip_prefix("locks/").and_then(|name| name.strip_suffix(".lock"));
                    job.is_none_or(|job| holder(blobs, job).is_ok_and(|holder| holder.is_none()))
                });
                blobs.delete_all(&paths)?;
            }
        }
        Ok(())
    }
}

/// The exports of all jobs; `None` if a job file cannot be read.
pub(crate) fn declared(project: &Project) -> Option<BTreeSet<String>> {
    let mut exports = BTreeSet::new();
    for name in project.jobs() {
        exports.extend(Job::load(project, &name).ok()?.exports.into_iter().map(|export| export.name));
    }
    Some(exports)
}

/// The runs whose records are kept: young ones, the newest of each job, its last good one, and the last that
/// tried a part and failed, as `status` reports it. `records` are the newest first.
fn kept(records: &[RunRecord], options: CleanOptions) -> HashSet<&str> {
    let mut kept = HashSet::new();
    let mut by_job: BTreeMap<&str, (usize, bool)> = BTreeMap::new();
    let mut tried: HashSet<(&str, &str, &str)> = HashSet::new();
    for record in records {
        let (seen, good) = by_job.entry(&record.job).or_default();
        let young = record.finished.unwrap_or(record.started) >= options.before;
        let first_good = record.outcome == Outcome::Ok && !std::mem::replace(good, true);
        let mut missed = false;
        for part in &record.exports {
            let newest = tried.insert((record.job.as_str(), part.export.as_str(), part.label.as_str()));
            missed |= newest && matches!(part.state, PartState::Failed | PartState::Checks);
        }
        if young || *seen < options.keep.max(1) || first_good || missed {
            kept.insert(record.run.as_str());
        }
        *seen += 1;
    }
    kept
}

#[cfg(test)]
mod tests {
    use tidetable_record::ExportRecord;

    use super::*;

    #[test]
    fn what_tells_how_a_job_stands_is_kept() {
        let part = |state| ExportRecord {
            export: "E".to_owned(),
            label: "2020-02-29".to_owned(),
            part: String::new(),
            reason: String::new(),
            state,
            rows: 0,
            bytes: 0,
            error: None,
        };
        let record = |run: &str, job: &str, outcome, exports| RunRecord {
            run: run.to_owned(),
            job: job.to_owned(),
            outcome,
            exports,
            finished: Some(10),
            ..RunRecord::default()
        };
        let records = [
            record("7", "a", Outcome::Failed, vec![]),
            record("6", "b", Outcome::Ok, vec![]),
            record("5", "a", Outcome::Partial, vec![part(PartState::Failed)]),
            record("4", "a", Outcome::Partial, vec![part(PartState::Failed)]),
            record("3", "a", Outcome::Ok, vec![part(PartState::Published)]),
            record("2", "a", Outcome::Ok, vec![]),
            record("1", "b", Outcome::Failed, vec![]),
        ];
        let kept = |before, keep| {
            let mut kept: Vec<&str> = kept(&records, CleanOptions { before, clock: 0, keep }).into_iter().collect();
            kept.sort_unstable();
            kept.concat()
        };
        assert_eq!(kept(11, 0), "3567", "the last, the last good one, and the last that tried a failed part");
        assert_eq!(kept(11, 3), "134567");
        assert_eq!(kept(10, 1), "1234567", "none is older");
    }
}
