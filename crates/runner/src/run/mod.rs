//! Running a job: look and plan, load every table, check, commit, derive tables from tables, publish,
//! compact what is due, and write down what was done.

mod after;
mod check_data;
mod columns;
mod derived;
mod error;
mod exports;
mod hooks;
mod load;
mod lock;
mod look;
mod measure;
mod metrics;
mod options;
mod params;
mod parts;
mod passing;
mod presence;
mod publish;
mod rejects;
mod retry;
mod secrets;
mod select;
mod stop;
mod tables;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use tidetable_record::{FORMAT, Holder, Outcome, RunRecord, Runs, Seen};
use tidetable_source::Storage;
use tidetable_store::{Ids, LocalBlobs, RejectedRow, Store};

pub use check_data::{DataChecks, check_data};
pub use error::{NoSecret, RunError};
pub use lock::IfLocked;
pub use measure::check_queries;
pub use options::{Only, RunOptions};
pub use params::probe_params;
pub use publish::{check_keys, tables_read};
pub use select::Selected;
pub use stop::{Stop, Stopped};

use crate::job::{Export, Job, Stage};
use crate::observe::{Event, Observer, Silent};
use crate::plan::Plan;
use crate::project::Project;
use after::After;
use columns::OtherColumns;
use load::LoadStage;
use retry::Retry;

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

/// What [`run`] would do with the same options. Writes nothing.
///
/// # Errors
/// What would stop the run before it began.
pub fn plan_job(project: &Project, job: &Job, options: &RunOptions, ids: &dyn Ids) -> Result<Plan, RunError> {
    let options = &RunOptions { looks_only: true, ..options.clone() };
    let (store, runtime) = (open_store(project)?, runtime()?);
    let storage = &secrets::storage(project, job, runtime.handle(), options.clock)?;
    let seen = &Seen::default();
    let (observer, runtime, reads) = (&Silent, runtime.handle(), Mutex::default());
    let whole = Run { job, options, ids, observer, store: &store, storage, runtime, seen, reads };
    let selected = whole.selected()?;
    let run = Run { job: selected.as_ref().unwrap_or(job), ..whole };
    let sources = run.stage(&|_| {}).plan()?;
    run.plan(&sources)
}

/// Runs `job`. A failed run is recorded too. `None`: another run of the job goes on, and was to be left alone.
///
/// # Errors
/// What stopped it. Tables are committed together, after all of them were loaded and checked. That a part could not
/// be published is no error: the record says so.
pub fn run(
    project: &Project,
    job: &Job,
    options: &RunOptions,
    ids: &dyn Ids,
    observer: &dyn Observer,
) -> Result<Option<RunReport>, RunError> {
    let store = open_store(project)?;
    let runtime = runtime()?;
    let storage = &secrets::storage(project, job, runtime.handle(), options.clock)?;
    let holder = Holder { run: options.run.clone(), process: std::process::id() };
    let lock = lock::take(Path::new(&project.root), &job.name, &holder, options.if_locked, &options.stop)?;
    let Some(_lock) = lock else { return Ok(None) };
    let blobs = store.blobs().as_ref();
    let last = Runs::of(blobs).last(&job.name)?;
    let mut record = RunRecord {
        format: FORMAT,
        run: options.run.clone(),
        job: job.name.clone(),
        now: options.now,
        started: (options.clock)(),
        outcome: Outcome::Running,
        asked: options.asked(),
        // Whoever holds the lock is the only one that runs.
        continues: last.filter(|last| last.outcome.is_open()).map(|last| last.run),
        ..RunRecord::default()
    };
    if let Some(before) = &record.continues {
        let note = format!("run {before} did not come to its end: this one goes on from what it left");
        observer.event(Event::Note(note));
    }
    record.save(blobs)?;
    let seen = &Seen::load(blobs, &job.name);
    let (runtime, reads) = (runtime.handle(), Mutex::default());
    let whole = Run { job, options, ids, observer, store: &store, storage, runtime, seen, reads };
    let done = whole.selected().and_then(|selected| {
        let stages = Run { job: selected.as_ref().unwrap_or(job), ..whole };
        stages.run(&mut record)
    });
    record.outcome = match &done {
        Ok(_) => record.outcome_of_parts(),
        Err(_) if options.stop.asked().is_some() => Outcome::Interrupted,
        Err(_) => Outcome::Failed,
    };
    record.error = done.as_ref().err().map(ToString::to_string);
    record.finished = Some((options.clock)());
    let tables = job.tables.iter().map(|table| table.spec.name.as_str());
    // If it cannot be remembered, the next run tells it again.
    let _ = seen.save(blobs, &job.name, tables, &record.loads);
    // The first error is the one to tell.
    let done = match (done, record.save(blobs)) {
        (Ok(_), Err(error)) => {
            record.outcome = Outcome::Failed;
            Err(error.into())
        }
        (done, _) => done,
    };
    let exit_code = done.as_ref().map_or_else(RunError::exit_code, |_| record.outcome.exit_code());
    After { project, job, options, observer, blobs, exit_code }.follow(&mut record);
    Ok(Some(RunReport { rejected: done?, record }))
}

struct Run<'a> {
    job: &'a Job,
    options: &'a RunOptions,
    ids: &'a dyn Ids,
    observer: &'a dyn Observer,
    store: &'a Store,
    storage: &'a Storage,
    runtime: &'a tokio::runtime::Handle,
    /// What the last run of the job found gone or copied.
    seen: &'a Seen,
    /// The tables that exports read, as far as it is known: finding out plans their queries.
    reads: Mutex<HashMap<String, Vec<String>>>,
}

impl Run<'_> {
    /// Returns the first rejected rows.
    fn run(&self, record: &mut RunRecord) -> Result<Vec<RejectedRow>, RunError> {
        let (plan, rejected) = self.load(record)?;
        self.derive(record)?;
        let clock = Instant::now();
        self.publish(&plan, record)?;
        took(record, "publish", clock);
        // Afterwards: a day is read from its own files, and not from those of a month that days were joined into.
        self.compact(record)?;
        // Where there is no room for it now, a later run makes it.
        let _ = self.store.keep_reserve();
        Ok(rejected)
    }

    /// Does `work`, a part of `stage` that is about `name`, and again as often as the job file says if it fails for a reason
    /// that may pass. What a failed attempt has committed stands, so `work` looks anew at what is left.
    fn attempts<T>(
        &self,
        (stage, name): (Stage, &str),
        record: &mut RunRecord,
        mut work: impl FnMut(&mut RunRecord) -> Result<T, RunError>,
    ) -> Result<T, RunError> {
        let mut retry = Retry::new(stage, self.job, self.options, self.observer);
        loop {
            match work(record) {
                Ok(done) => return Ok(done),
                Err(error) => retry.after(name, error, &mut record.attempts)?,
            }
        }
    }

    /// The tables that an export reads, some of which may not be there yet.
    fn reads(&self, export: &Export) -> Result<Vec<String>, RunError> {
        let known = || self.reads.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(reads) = known().get(&export.name) {
            return Ok(reads.clone());
        }
        let reads = self.find_reads(export)?;
        known().insert(export.name.clone(), reads.clone());
        Ok(reads)
    }

    /// Tells a person, now and in the record.
    fn note(&self, record: &mut RunRecord, note: String) {
        if !record.notes.contains(&note) {
            self.observer.event(Event::Note(note.clone()));
            record.notes.push(note);
        }
    }

    fn stage<'b>(&'b self, on_reject: &'b (dyn Fn(&RejectedRow) + Sync)) -> LoadStage<'b> {
        LoadStage {
            job: self.job,
            store: self.store,
            storage: self.storage,
            options: self.options,
            ids: self.ids,
            observer: self.observer,
            on_reject,
            seen: self.seen,
            others: OtherColumns::default(),
        }
    }
}

/// Adds what a part of the run took since `clock`.
fn took(record: &mut RunRecord, part: &str, clock: Instant) {
    *record.seconds.entry(part.to_owned()).or_default() += clock.elapsed().as_secs_f64();
}
