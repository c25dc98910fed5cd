//! Running a job: load every table, check, commit, derive tables from tables, compact what is due, publish, and write
//! down what was done.

mod derived;
mod error;
mod load;
mod publish;
mod record;
mod rejects;

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use chrono::NaiveDate;
use tidetable_source::Storage;
use tidetable_store::{CompactionExtent, CompactionPlan, Ids, LocalBlobs, RejectedRow, Store, StoreError};

pub use error::RunError;
pub use publish::records_of;
pub use record::{ExportRecord, InputRecord, LoadRecord, Outcome, RunRecord};

use crate::compact::compact;
use crate::job::{From, Job};
use crate::observe::{Event, Observer};
use crate::project::Project;
use derived::check_query_rejected;
use load::{LoadStage, Pending, check_rejected};
use publish::PublishStage;
use rejects::RejectLog;

/// Format of run records.
const FORMAT: u32 = 1;

/// What a run is asked to do.
#[derive(Debug, Clone)]
pub struct RunOptions {
    /// Only these days; all if `None`.
    pub days: Option<RangeInclusive<NaiveDate>>,
    /// Logical time, microseconds since the epoch.
    pub now: i64,
    /// Name of the run.
    pub run: String,
    /// Build tables anew from all their inputs.
    pub rebuild: bool,
    /// Inputs that are gone and may be left out of windows that are built anew.
    pub without: Vec<String>,
    /// Bytes of cells to hold before they are sorted and written.
    pub memory: u64,
}

/// What a run did: its record, and a few of the rows it rejected.
#[derive(Debug)]
pub struct RunReport {
    /// As written to `runs/`.
    pub record: RunRecord,
    /// The first rejected rows.
    pub rejected: Vec<RejectedRow>,
}

/// The store of a project.
///
/// # Errors
/// If its root is not a folder of this machine.
pub fn open_store(project: &Project) -> Result<Store, RunError> {
    if project.root_is_url() {
        return Err(RunError::RemoteRoot { root: project.root.clone() });
    }
    Ok(Store::new(Arc::new(LocalBlobs::new(PathBuf::from(&project.root)))))
}

/// The runtime that queries and remote reads run on.
///
/// # Errors
/// If its threads cannot be started.
pub fn runtime() -> Result<tokio::runtime::Runtime, RunError> {
    tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(RunError::Runtime)
}

/// Runs `job`. A failed run is recorded too.
///
/// # Errors
/// What stopped it. Tables are committed together, after all of them were loaded and checked.
pub fn run(
    project: &Project,
    job: &Job,
    options: &RunOptions,
    ids: &dyn Ids,
    observer: &dyn Observer,
) -> Result<RunReport, RunError> {
    let store = open_store(project)?;
    let runtime = runtime()?;
    let rejects = RejectLog::new(store.blobs().as_ref(), &options.run, None);
    let mut record = RunRecord {
        format: FORMAT,
        run: options.run.clone(),
        job: job.name.clone(),
        now: options.now,
        ..RunRecord::default()
    };
    let stages = Run { project, job, options, ids, observer, store: &store, runtime: runtime.handle() };
    let done = stages.run(rejects, &mut record);
    if let Err(error) = &done {
        record.outcome = Outcome::Failed;
        record.error = Some(error.to_string());
    }
    let saved = record.save(store.blobs().as_ref());
    // The first error is the one to tell.
    let rejected = done?;
    saved?;
    Ok(RunReport { record, rejected })
}

struct Run<'a> {
    project: &'a Project,
    job: &'a Job,
    options: &'a RunOptions,
    ids: &'a dyn Ids,
    observer: &'a dyn Observer,
    store: &'a Store,
    runtime: &'a tokio::runtime::Handle,
}

impl Run<'_> {
    /// Returns the first rejected rows.
    fn run(&self, rejects: RejectLog<'_>, record: &mut RunRecord) -> Result<Vec<RejectedRow>, RunError> {
        let clock = Instant::now();
        let loaded = self.load(&rejects);
        record.seconds.insert("load".to_owned(), clock.elapsed().as_secs_f64());
        // Rejected rows are on disk before anything is committed without them.
        let kept = rejects.finish();
        if let Ok(Some(kept)) = &kept {
            record.rejected = Some(kept.path.clone());
            record.rows_rejected = kept.rows;
        }
        let pending = loaded?;
        record.loads = pending.iter().map(|load| load.record.clone()).collect();
        let allowed = record.loads.iter().try_for_each(|load| check_rejected(self.job, &self.options.run, load));
        let rejected = match (allowed, kept) {
            (Ok(()), Ok(kept)) => kept.map(|kept| kept.first).unwrap_or_default(),
            (allowed, kept) => {
                pending.iter().for_each(Pending::discard);
                allowed?;
                return Err(kept.err().map_or(RunError::RejectLog, RunError::from));
            }
        };
        let clock = Instant::now();
        record.loads.clear();
        for load in pending {
            record.loads.push(load.commit(self.ids, self.options.now)?);
        }
        record.seconds.insert("commit".to_owned(), clock.elapsed().as_secs_f64());
        self.derive(record)?;
        self.compact(record)?;
        let clock = Instant::now();
        let stage = PublishStage {
            job: self.job,
            store: self.store,
            options: self.options,
            observer: self.observer,
            runtime: self.runtime,
        };
        for export in &self.job.exports {
            record.exports.extend(stage.publish(export)?);
        }
        record.seconds.insert("publish".to_owned(), clock.elapsed().as_secs_f64());
        Ok(rejected)
    }

    /// Brings the tables that are made from others up to date, in the order of the job file. Each is
    /// committed before the next, which may read it.
    fn derive(&self, record: &mut RunRecord) -> Result<(), RunError> {
        let derived = self.job.tables.iter().filter_map(|table| match &table.from {
            From::Query { sql, shape } => Some((table, sql.as_str(), shape)),
            From::Source(_) => None,
        });
        let mut derived = derived.peekable();
        if derived.peek().is_none() {
            return Ok(());
        }
        let clock = Instant::now();
        for (table, sql, shape) in derived {
            let rejects = RejectLog::new(self.store.blobs().as_ref(), &self.options.run, Some(&table.spec.name));
            let on_reject = |row: &RejectedRow| rejects.keep(row);
            let storage = Storage::new(self.project.dir.clone(), Some(self.runtime.clone()));
            let stage = self.stage(&storage, &on_reject);
            let loaded = stage.load_derived(table, (sql, shape), self.runtime);
            let kept = rejects.finish();
            let pending = loaded?;
            let checked = pending.iter().try_for_each(|load| check_query_rejected(&self.options.run, &load.record));
            match (checked, kept) {
                (Ok(()), Ok(kept)) => {
                    for mut load in pending {
                        load.record.rejected = kept.as_ref().map(|kept| kept.path.clone());
                        record.loads.push(load.commit(self.ids, self.options.now)?);
                    }
                }
                (checked, kept) => {
                    pending.iter().for_each(Pending::discard);
                    checked?;
                    kept?;
                }
            }
        }
        record.seconds.insert("derive".to_owned(), clock.elapsed().as_secs_f64());
        Ok(())
    }

    /// Compacts the tables that were loaded, where that is due. It changes no answer; if another is faster, it is
    /// left to the next run.
    fn compact(&self, record: &mut RunRecord) -> Result<(), RunError> {
        let clock = Instant::now();
        for load in record.loads.iter().filter(|load| load.version != load.before) {
            let snapshot = self.store.snapshot(&load.table)?;
            let plan = CompactionPlan::of_extent(&snapshot, self.options.now, CompactionExtent::Due)?;
            if plan.is_empty() {
                continue;
            }
            self.observer.event(Event::Stage { name: format!("compact {}", load.table), total: 0 });
            match compact(self.store, plan, CompactionExtent::Due, self.ids) {
                Ok(done) => record.compactions.push(done),
                Err(error @ StoreError::Conflict { .. }) => self.observer.event(Event::Note(error.to_string())),
                Err(error) => return Err(error.into()),
            }
        }
        if !record.compactions.is_empty() {
            record.seconds.insert("compact".to_owned(), clock.elapsed().as_secs_f64());
        }
        Ok(())
    }

    fn stage<'b>(&'b self, storage: &'b Storage, on_reject: &'b (dyn Fn(&RejectedRow) + Sync)) -> LoadStage<'b> {
        LoadStage {
            job: self.job,
            store: self.store,
            storage,
            options: self.options,
            ids: self.ids,
            observer: self.observer,
            on_reject,
        }
    }

    fn load(&self, rejects: &RejectLog<'_>) -> Result<Vec<Pending>, RunError> {
        let storage = Storage::new(self.project.dir.clone(), Some(self.runtime.clone()));
        let on_reject = |row: &RejectedRow| rejects.keep(row);
        let stage = self.stage(&storage, &on_reject);
        let pending = stage.load()?;
        let left_out = |path: &String| {
            self.options.rebuild
                || pending
                    .iter()
                    .flat_map(|load| &load.record.inputs)
                    .any(|input| input.path == *path && input.state == "left out")
        };
        for path in self.options.without.iter().filter(|path| !left_out(path)) {
            self.observer.event(Event::Note(format!("--without {path} changed nothing: no such input is gone")));
        }
        for input in pending.iter().flat_map(|load| &load.record.inputs) {
            if let Some(note) = note(input) {
                self.observer.event(Event::Note(note));
            }
        }
        Ok(pending)
    }
}

/// What a user must know about an input that is neither new nor as it was.
fn note(input: &InputRecord) -> Option<String> {
    match (input.state, &input.same_as) {
        ("same content", Some(other)) => {
            Some(format!("{} has the same content as {other}: it is not loaded again", input.path))
        }
        ("gone", _) => Some(format!("{} is gone: its cells stay in the table", input.path)),
        ("changed", _) => Some(format!("{} changed: the windows it touches are built anew", input.path)),
        _ => None,
    }
}
