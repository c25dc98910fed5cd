//! Running a job: look and plan, load every table, check, commit, derive tables from tables, publish,
//! compact what is due, and write down what was done.

mod after;
mod columns;
mod derived;
mod error;
mod hooks;
mod load;
mod lock;
mod look;
mod measure;
mod metrics;
mod options;
mod params;
mod parts;
mod publish;
mod rejects;
mod secrets;
mod stop;

use std::collections::{BTreeSet, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use chrono::NaiveDate;
use tidetable_record::{FORMAT, Holder, InputRecord, InputState, Outcome, PartState, RunRecord, Runs};
use tidetable_source::Storage;
use tidetable_sql::{Session, SessionOptions};
use tidetable_store::{CompactionExtent, CompactionPlan, Ids, LocalBlobs, RejectedRow, Store, StoreError};

pub use error::{NoSecret, RunError};
pub use lock::IfLocked;
pub use measure::check_queries;
pub use options::{Only, RunOptions};
pub use params::probe_params;
pub use publish::tables_read;
pub use stop::{Stop, Stopped};

use crate::compact::compact;
use crate::day::day_bounds;
use crate::job::{Export, From, Job};
use crate::observe::{Event, Observer, Silent};
use crate::plan::Plan;
use crate::project::Project;
use after::After;
use columns::OtherColumns;
use derived::check_query_rejected;
use load::{LoadStage, Pending, PlannedSource, check_rejected};
use measure::{Checker, DayOf};
use parts::Wanted;
use publish::PublishStage;
use rejects::RejectLog;

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
    let storage = &secrets::storage(project, job, runtime.handle())?;
    let run = Run { job, options, ids, observer: &Silent, store: &store, storage, runtime: runtime.handle() };
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
    let storage = &secrets::storage(project, job, runtime.handle())?;
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
    let rejects = RejectLog::new(blobs, &options.run, None);
    let stages = Run { job, options, ids, observer, store: &store, storage, runtime: runtime.handle() };
    let done = stages.run(rejects, &mut record);
    record.outcome = match &done {
        Ok(_) => record.outcome_of_parts(),
        Err(_) if options.stop.asked().is_some() => Outcome::Interrupted,
        Err(_) => Outcome::Failed,
    };
    record.error = done.as_ref().err().map(ToString::to_string);
    record.finished = Some((options.clock)());
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
}

impl Run<'_> {
    /// Returns the first rejected rows.
    fn run(&self, rejects: RejectLog<'_>, record: &mut RunRecord) -> Result<Vec<RejectedRow>, RunError> {
        let clock = Instant::now();
        let on_reject = |row: &RejectedRow| rejects.keep(row);
        let stage = self.stage(&on_reject);
        let sources = stage.plan()?;
        let plan = self.plan(&sources)?;
        self.observer.event(Event::Plan(plan.clone()));
        record.seconds.insert("plan".to_owned(), clock.elapsed().as_secs_f64());
        let clock = Instant::now();
        let loaded = self.load(&stage, sources, record);
        record.seconds.insert("load".to_owned(), clock.elapsed().as_secs_f64());
        // Rejected rows are on disk before anything is committed without them.
        let kept = rejects.finish();
        if let Ok(Some(kept)) = &kept {
            record.rejected = Some(kept.path.clone());
            record.rows_rejected = kept.rows;
        }
        let pending = loaded?;
        record.loads = pending.iter().map(|load| load.record.clone()).collect();
        let allowed = pending.iter().try_for_each(|load| check_rejected(self.job, &self.options.run, load));
        let allowed = allowed.and_then(|()| self.options.stop.check());
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
        let clock = Instant::now();
        self.publish(&plan, record)?;
        record.seconds.insert("publish".to_owned(), clock.elapsed().as_secs_f64());
        // Afterwards: a day is read from its own files, and not from those of a month that days were joined into.
        self.compact(record)?;
        Ok(rejected)
    }

    /// Publishes what is stale now that the tables have changed.
    fn publish(&self, plan: &Plan, record: &mut RunRecord) -> Result<(), RunError> {
        let checker = Checker::new(self.job);
        let mut read: HashSet<String> = HashSet::new();
        for export in &self.job.exports {
            self.options.stop.check()?;
            let wanted = Wanted::new(self.options, self.failed_before(export)?);
            let reads = self.reads(export)?;
            let looked = self.publish_stage().look(export, &reads, &wanted)?;
            read.extend(reads);
            let planned = plan.exports.iter().find(|planned| planned.export == export.name);
            if let Some(planned) = planned.filter(|planned| !planned.unknown) {
                let named: HashSet<&str> = planned.parts.iter().map(|part| part.label.as_str()).collect();
                let labels = looked.parts.iter().map(|part| part.label.as_str());
                let others: Vec<&str> = labels.filter(|label| !named.contains(label)).collect();
                if !others.is_empty() {
                    let days = crate::plan::ranges(&others);
                    self.note(record, format!("{}: inputs had rows of other days than planned: {days}", export.name));
                }
            }
            let (parts, checks) = self.publish_stage().publish(looked, &checker)?;
            record.exports.extend(parts);
            record.checks.extend(checks);
            let failed = |part: &&tidetable_record::ExportRecord| part.state == PartState::Failed;
            if self.options.fail_fast && record.exports.iter().any(|part| failed(&part)) {
                break;
            }
        }
        self.check_unread(&checker, &read, record)?;
        // A check of a table speaks once, however many exports read the table.
        let mut seen = HashSet::new();
        record.checks.retain(|check| {
            seen.insert((check.check.clone(), check.on.clone(), check.label.clone(), check.rule.clone()))
        });
        Ok(())
    }

    /// Measures the checks of tables that no export reads, in the days that the run changed.
    fn check_unread(
        &self,
        checker: &Checker<'_>,
        read: &HashSet<String>,
        record: &mut RunRecord,
    ) -> Result<(), RunError> {
        let checked = |table: &String| self.job.checks.iter().any(|check| check.on == *table) && !read.contains(table);
        let mut found = Vec::new();
        for load in record.loads.iter().filter(|load| load.version != load.before && checked(&load.table)) {
            let failed = |source| RunError::Check { table: load.table.clone(), source: Box::new(source) };
            let session = Session::open(self.store, &SessionOptions::default()).map_err(failed)?;
            let snapshot = self.store.snapshot(&load.table)?;
            let changed = snapshot.version().windows.iter().flat_map(|window| &window.days);
            let changed = changed.filter(|(_, version)| **version > load.before).map(|(day, _)| *day);
            let days: BTreeSet<NaiveDate> = changed.flat_map(|day| look::local_days(self.job, day)).collect();
            let in_range = |day: &&NaiveDate| self.options.days.as_ref().is_none_or(|days| days.contains(day));
            for day in days.iter().filter(in_range) {
                self.options.stop.check()?;
                let restricted = session.restricted(day_bounds(self.job.timezone, *day));
                let label = day.to_string();
                let day = DayOf { session: &restricted, label: &label, params: &[] };
                found.extend(self.runtime.block_on(checker.table(&day, &load.table)).map_err(failed)?);
            }
        }
        record.checks.extend(found);
        Ok(())
    }

    fn publish_stage(&self) -> PublishStage<'_> {
        PublishStage {
            job: self.job,
            store: self.store,
            options: self.options,
            observer: self.observer,
            runtime: self.runtime,
        }
    }

    /// The labels of an export that could not be published when they were last tried.
    fn failed_before(&self, export: &Export) -> Result<HashSet<String>, RunError> {
        let mut failed = HashSet::new();
        if self.options.only.is_none() {
            return Ok(failed);
        }
        let mut seen = HashSet::new();
        for record in Runs::of(self.store.blobs().as_ref()).newest_first(Some(&self.job.name))? {
            for part in record?.exports.into_iter().filter(|part| part.export == export.name) {
                let missed = matches!(part.state, PartState::Failed | PartState::Checks);
                if seen.insert(part.label.clone()) && missed {
                    failed.insert(part.label);
                }
            }
        }
        Ok(failed)
    }

    /// Tells a person, now and in the record.
    fn note(&self, record: &mut RunRecord, note: String) {
        self.observer.event(Event::Note(note.clone()));
        record.notes.push(note);
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
            self.options.stop.check()?;
            let rejects = RejectLog::new(self.store.blobs().as_ref(), &self.options.run, Some(&table.spec.name));
            let on_reject = |row: &RejectedRow| rejects.keep(row);
            let stage = self.stage(&on_reject);
            let loaded = stage.load_derived(table, (sql, shape), self.runtime);
            let kept = rejects.finish();
            let pending = loaded?;
            let checked = pending.iter().try_for_each(|load| check_query_rejected(&self.options.run, load));
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
            self.options.stop.check()?;
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

    fn stage<'b>(&'b self, on_reject: &'b (dyn Fn(&RejectedRow) + Sync)) -> LoadStage<'b> {
        LoadStage {
            job: self.job,
            store: self.store,
            storage: self.storage,
            options: self.options,
            ids: self.ids,
            observer: self.observer,
            on_reject,
            others: OtherColumns::default(),
        }
    }

    fn load(
        &self,
        stage: &LoadStage<'_>,
        sources: Vec<PlannedSource<'_>>,
        record: &mut RunRecord,
    ) -> Result<Vec<Pending>, RunError> {
        let pending = stage.load(sources);
        // Also where this is why the load failed.
        stage.others.notes().into_iter().for_each(|note| self.note(record, note));
        let pending = pending?;
        let left_out = |path: &String| {
            self.options.rebuild
                || pending
                    .iter()
                    .flat_map(|load| &load.record.inputs)
                    .any(|input| input.path == *path && input.state == InputState::LeftOut)
        };
        for path in self.options.without.iter().filter(|path| !left_out(path)) {
            self.note(record, format!("--without {path} changed nothing: no such input is gone"));
        }
        for input in pending.iter().flat_map(|load| &load.record.inputs) {
            if let Some(note) = note(input) {
                self.note(record, note);
            }
        }
        Ok(pending)
    }
}

/// What a user must know about an input that is neither new nor as it was.
fn note(input: &InputRecord) -> Option<String> {
    match (input.state, &input.same_as) {
        (InputState::SameContent, Some(other)) => {
            Some(format!("{} has the same content as {other}: it is not loaded again", input.path))
        }
        (InputState::Gone, _) => Some(format!("{} is gone: its cells stay in the table", input.path)),
        (InputState::ReadAgain, _) => Some(format!("{} is read again, as it was asked for", input.path)),
        (InputState::Changed, _) => Some(format!("{} changed: the windows it touches are built anew", input.path)),
        _ => None,
    }
}
