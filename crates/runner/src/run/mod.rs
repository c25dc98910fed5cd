//! Runs a job: plans, loads and checks every table, commits, derives tables, publishes,
//! compacts what is due, and writes the run record.

pub(crate) mod ahead;
pub(crate) mod check_data;
pub(crate) mod compare;
pub(crate) mod context;
pub(crate) mod damage;
pub(crate) mod open_lineage;
pub(crate) mod parts;
pub(crate) mod post_run;
pub(crate) mod publish;
pub(crate) mod reject_log;
pub(crate) mod retry;
pub(crate) mod select;
pub(crate) mod stages;
#[cfg(test)]
pub(crate) mod tests;

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Mutex;
use std::time::Instant;

use tidetable_blobs::Blobs;
use tidetable_ingest::RejectedRow;
use tidetable_job::{Job, JobError, Project, Reporting, several, shell_word};
use tidetable_layout::time::HOUR;
use tidetable_record::{FORMAT, InputRecord, Outcome, RunRecord, Runs, Seen};
use tidetable_source::panics::catch;
use tidetable_source::{Storage, without_passwords};
use tidetable_store::{Ids, Store, StoreError};
use ulid::Ulid;

pub use crate::checks::checker::check_queries;
pub use crate::fault::error::{NoSecret, RunError};
pub use crate::fault::push_failure::PushFailure;
pub use crate::fault::stop::{Stop, Stopped};
use crate::lock::lease::LeaseTimes;
pub use crate::lock::{IfLocked, NamedLock, lock_named, machine};
pub(crate) use crate::lock::{Lock, LockRequest, take};
pub use crate::options::pusher::Pusher;
pub use crate::options::run_options::{Only, RunOptions, Selected};
pub use crate::secrets::{check_stores, source_storage};
pub use crate::units::params::probe_params;
pub use check_data::{DataChecks, check_data};
pub use publish::{check_columns, sealed_before, tables_read, type_notes};
pub use stages::owner::{check_owner, undeclared};
pub use stages::without::{check_without_of_all, input_names, without_of_job};

use crate::backup::refuse_half_restored;
use crate::fault::threads::joined;
use crate::marks::Marks;
use crate::observe::{Event, Observer, Silent};
use crate::plan::{Plan, TablePlan};
use crate::report::check_bucket;
use crate::root::open_root;
use crate::secrets;
use crate::units::tally::Tally;
use crate::units::wire::JobReference;
use ahead::Ahead;
use context::{Run, took};
use damage::{explained, kept_note};
use open_lineage::OpenLineage;
use post_run::{PostRun, RunLineage};

/// Microseconds that a logical time may be ahead of the clock before a warning.
const AHEAD: i64 = HOUR;

/// Age of the runs that are asked first, milliseconds.
const RECENT: u64 = 30 * 24 * 60 * 60 * 1000;

/// The record of a run, and some of the rows it rejected.
#[derive(Debug)]
pub struct RunReport {
    /// As written to `runs/`.
    pub record: RunRecord,
    /// The first rejected rows.
    pub rejected: Vec<RejectedRow>,
}

/// Opens the store of a project.
///
/// # Errors
/// If its root is in a bucket whose settings are missing or wrong, or a restore into it is unfinished.
pub fn open_store(project: &Project) -> Result<Store, RunError> {
    let blobs = open_root(project)?;
    if blobs.directory().is_some() {
        refuse_half_restored(blobs.as_ref(), &project.root)?;
    }
    Ok(Store::new(blobs))
}

/// Stack of a thread that executes queries, bytes: their expressions and plans may be a thousand operators deep. It is address
/// space, of which the system provides what is used.
const QUERY_STACK_BYTES: usize = 64 << 20;

/// The runtime for queries and remote reads.
///
/// # Errors
/// If its threads cannot be started.
pub fn runtime() -> Result<tokio::runtime::Runtime, RunError> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.enable_all().thread_stack_size(QUERY_STACK_BYTES).build().map_err(RunError::Runtime)
}

/// The plan of [`run`] with the same options. Writes nothing.
///
/// # Errors
/// What would stop the run before it begins.
pub fn plan_job(project: &Project, job: &Job, options: &RunOptions, ids: &dyn Ids) -> Result<Plan, RunError> {
    let options = &RunOptions { plan_only: true, ..options.clone() };
    let (store, runtime) = (open_store(project)?, runtime()?);
    Marks::of(project).check(&store, job, options)?;
    let storage = secrets::storage(project, job, runtime.handle(), options)?;
    let whole_job = Run {
        project,
        job,
        options,
        ids,
        observer: &Silent,
        store: &store,
        storage: &storage,
        runtime: runtime.handle(),
        seen: &Seen::default(),
        reads: Mutex::default(),
        failures: Mutex::default(),
        root: &project.root,
        reference: None,
        tally: Tally::default(),
    };

    let selected = whole_job.selected()?;
    let run = Run { job: selected.as_ref().unwrap_or(job), ..whole_job };
    run.check_versions()?;
    let mut stage = run.stage(&|_| {});
    let mut notes = Vec::new();
    let sources = loop {
        match stage.plan() {
            Ok(sources) => break sources,
            Err(error) => {
                let dump = run.leaves_dump(&error, &mut stage.left).ok_or(error)?;
                notes.push(format!("the dump of `{}` is not loaded: {}", dump.source, dump.error));
            }
        }
    };
    let (mut plan, _) = run.plan(&sources)?;
    plan.notes.append(&mut notes);

    let seen = Seen::load(store.blobs().as_ref(), &job.name);
    for TablePlan { table, inputs, .. } in &mut plan.tables {
        for input in inputs {
            input.is_told = seen.knows(table, &InputRecord::new(&input.path, input.state));
        }
    }
    Ok(plan)
}

/// Runs `job`. A failed run is recorded too. `None`: another run of the job holds the lock, and the options
/// say to skip.
///
/// # Errors
/// What stopped it. Tables are committed together, after all of them are loaded and checked. A part that could not
/// be published is no error: the record lists it.
pub fn run(
    project: &Project,
    job: &Job,
    options: &RunOptions,
    ids: &dyn Ids,
    observer: &dyn Observer,
) -> Result<Option<RunReport>, RunError> {
    let mut record = first_record(job, options);
    let mut lock = None;
    let begun = match at_boundary(|| begin(project, job, options, &mut record, &mut lock)) {
        Ok(Some(begun)) => begun,
        Ok(None) => return Ok(None),
        Err(error) => {
            let error = match open_store(project) {
                Ok(store) => explained(&store, error),
                Err(_) => error,
            };
            record_failure(&mut record, &error, options);
            not_begun(project, job, options, observer, record, lock, &error);
            return Err(error);
        }
    };

    let Begun { store, runtime, storage, first, unfinished } = begun;
    let options = &RunOptions { run: record.run.clone(), ..options.clone() };
    let reference = options.carrier.as_ref().map(|_| JobReference::of(project, job));
    let whole_job = Run {
        project,
        job,
        options,
        ids,
        observer,
        store: &store,
        storage: &storage,
        runtime: runtime.handle(),
        seen: &first.seen,
        reads: Mutex::default(),
        failures: Mutex::new(first.failures),
        root: &project.root,
        reference: reference.as_ref(),
        tally: Tally::default(),
    };
    whole_job.note_begin(&mut record, unfinished.as_ref());

    let lineage = catch(|| OpenLineage::begin(project, job, &record)).unwrap_or_default();
    let mut read = BTreeSet::new();
    let done = at_boundary(|| {
        let selected = whole_job.selected()?;
        let stages = Run { job: selected.as_ref().unwrap_or(job), ..whole_job };
        let done = at_boundary(|| stages.run(&mut record)).map_err(|error| explained(&store, error));
        record.executors = stages.tally.records();
        read = stages.tables_of_others();
        done
    });
    record_end(&mut record, done.as_ref().err(), options, observer);

    let saved = save_end(project, job, &store, &first.seen, &record, observer);
    let is_recorded = saved.is_ok();
    // The first error is the one to report.
    let done = match (done, saved) {
        (Ok(_), Err(error)) => {
            let error = explained(&store, error.into());
            record.outcome = Outcome::Failed;
            record.error = Some(error_text(&error));
            Err(error)
        }
        (done, _) => done,
    };
    if let Some(lock) = lock.as_mut().filter(|_| !is_recorded) {
        lock.tell_failure(&record);
    }

    let exit_code = done.as_ref().map_or_else(RunError::exit_code, |_| record.outcome.exit_code());
    let lineage = lineage.map(|events| RunLineage { events, read });
    let blobs = store.blobs().as_ref();
    let post_run = PostRun { project, job, options, observer, blobs, exit_code, is_recorded };
    if let Err(panicked) = catch(|| post_run.follow(&mut record, lineage)) {
        observer.event(Event::Note(format!("warning: what follows the run stopped at a fault: {panicked}")));
    }
    Ok(Some(RunReport { rejected: done?, record }))
}

/// The record of a run before its first stage.
fn first_record(job: &Job, options: &RunOptions) -> RunRecord {
    RunRecord {
        format: FORMAT,
        run: options.run.clone(),
        job: job.name.clone(),
        now: options.now,
        started: (options.clock)(),
        outcome: Outcome::Running,
        asked: options.asked(),
        ..RunRecord::default()
    }
}

/// Records how the stages of a run ended. If they failed, notes what they did before.
fn record_end(record: &mut RunRecord, error: Option<&RunError>, options: &RunOptions, observer: &dyn Observer) {
    let Some(error) = error else {
        record.outcome = record.outcome_of_parts();
        record.finished = Some((options.clock)());
        return;
    };

    record_failure(record, error, options);
    if let Some(note) = kept_note(record).filter(|_| record.outcome == Outcome::Failed) {
        observer.event(Event::Note(note.clone()));
        record.notes.push(note);
    }
}

/// Saves the record of a run that has ended, and what the next run has to know of this one.
fn save_end(
    project: &Project,
    job: &Job,
    store: &Store,
    seen: &Seen,
    record: &RunRecord,
    observer: &dyn Observer,
) -> Result<(), StoreError> {
    let blobs = store.blobs().as_ref();
    let tables = job.tables.iter().map(|table| table.spec.name.as_str());
    // If it cannot be stored, the next run repeats the notes.
    let _ = seen.save(blobs, &job.name, tables, &record.loads);

    record.save(blobs)?;
    if let Err(error) = Marks::of(project).write(store, job, record) {
        let note = format!("note: the project cannot be written ({error}): a loss of its root will not be noticed");
        observer.event(Event::Note(note));
    }
    Ok(())
}

/// The state of a run that has begun.
struct Begun {
    store: Store,
    runtime: tokio::runtime::Runtime,
    storage: Storage,
    /// What was read before the first stage.
    first: Ahead,
    /// The run that it continues: one that failed, was interrupted or recorded no end.
    unfinished: Option<RunRecord>,
}

/// The warning of rows that the run `unfinished` rejected and committed tables without: their inputs are not read again, and no hook
/// was told of them. Otherwise the next run rejects them itself.
fn untold_rejects_note(unfinished: &RunRecord) -> Option<String> {
    let RunRecord { run, job, loads, .. } = unfinished;
    let rejected = unfinished.all_rejected();
    if rejected == 0 || loads.iter().all(|load| load.version == load.before) {
        return None;
    }
    let rows = several(rejected, "row");
    Some(format!("warning: run {run} did not finish, and rejected {rows} before: tidetable rejects {job} --run {run}"))
}

/// The note that `record` continues the run `killed`, with what that was asked to do and this is not.
fn continues_note(killed: &RunRecord, record: &RunRecord) -> String {
    let RunRecord { run, job, .. } = killed;
    let (before, now) = (&killed.asked, &record.asked);
    let mut left = Vec::new();
    if before.rebuild && !now.rebuild {
        left.push("--rebuild".to_owned());
    }
    if before.force && !now.force {
        left.push("--force".to_owned());
    }
    let without = before.without.iter().filter(|path| !now.without.contains(path));
    left.extend(without.map(|path| format!("--without {}", shell_word(path))));

    let mut note = format!("run {run} did not finish: this one continues it");
    if !left.is_empty() || before.reread.iter().any(|path| !now.reread.contains(path)) {
        let what = if left.is_empty() { "the inputs that it was to read again".to_owned() } else { left.join(" ") };
        note.push_str(&format!(
            ", but does not repeat what it was asked for: {what}. If its work is still wanted, run `tidetable retry {run}`, or {job} \
             with those options"
        ));
    }
    note
}

/// Takes the lock, names the run and writes its first record. `None`: another run holds the lock, and the options say
/// to skip.
fn begin(
    project: &Project,
    job: &Job,
    options: &RunOptions,
    record: &mut RunRecord,
    lock: &mut Option<Lock>,
) -> Result<Option<Begun>, RunError> {
    let store = open_store(project)?;
    let marks = Marks::of(project);
    // Before anything is written there: the lock would be.
    if store.blobs().bucket().is_none() {
        marks.check(&store, job, options)?;
    }
    let runtime = runtime()?;
    let storage = secrets::storage(project, job, runtime.handle(), options)?;

    let times = LeaseTimes::of(project);
    let request = LockRequest { job: &job.name, run: &record.run, if_locked: options.if_locked, times };
    let Some(taken) = take(store.blobs(), request, &options.stop)? else { return Ok(None) };
    let lock = lock.insert(taken);
    let mut store = lock.over(store);

    let capabilities = store.blobs().capabilities();
    if capabilities.round_trips {
        store = store.following_own_commits();
    }

    // Before reading anything that may be damaged.
    lock.tell(&record.run);

    let runs = Runs::of(store.blobs().as_ref());
    let since = recent(&record.run).filter(|_| capabilities.round_trips);
    let (newest, last) = runs.newest_and_last(&job.name, since.as_deref())?;

    let is_first = newest.is_none();
    if capabilities.round_trips && is_first {
        marks.check(&store, job, options)?;
    }

    if let Some(newest) = newest {
        record.run = name_after(&newest, &record.run);
    }
    lock.tell(&record.run);

    // Under the lock no other run of the job is active, so a record without an end is one of a killed run.
    let unfinished = last.filter(|last| last.outcome.is_open());
    record.continues = unfinished.as_ref().map(|last| last.run.clone());

    let blobs = store.blobs().as_ref();
    let first = Ahead::begin(&store, job, record, || match is_first && capabilities.compares {
        true => check_fit(project, blobs, record, options),
        false => Ok(()),
    })?;
    // The newest versions are known by now, without more requests.
    if capabilities.round_trips && !is_first {
        marks.check(&store, job, options)?;
    }
    Ok(Some(Begun { store, runtime, storage, first, unfinished }))
}

/// Whether a bucket without runs can be the root of `project`.
fn check_fit(project: &Project, blobs: &dyn Blobs, record: &RunRecord, options: &RunOptions) -> Result<(), RunError> {
    std::thread::scope(|scope| {
        let restored = scope.spawn(|| refuse_half_restored(blobs, &project.root));
        let checked = check_bucket(blobs, &record.run, options.clock);
        joined(restored)?;
        checked.map(|_| ())
    })
}

/// Does a part of a run; a panic of a library is its failure, so that it is recorded and told as any other.
fn at_boundary<T>(work: impl FnOnce() -> Result<T, RunError>) -> Result<T, RunError> {
    catch(work).unwrap_or_else(|panicked| Err(panicked.into()))
}

/// The text of an error for records, hooks and pages.
fn error_text(error: &RunError) -> String {
    without_passwords(&error.to_string()).into_owned()
}

/// Records that a run ended by `error`.
fn record_failure(record: &mut RunRecord, error: &RunError, options: &RunOptions) {
    record.outcome = if options.stop.asked().is_some() { Outcome::Interrupted } else { Outcome::Failed };
    record.error = Some(error_text(error));
    record.finished = Some((options.clock)());
}

/// Runs the hook `error` and sends the heartbeat for a run that could not begin; it has no record.
fn not_begun(
    project: &Project,
    job: &Job,
    options: &RunOptions,
    observer: &dyn Observer,
    mut record: RunRecord,
    lock: Option<Lock>,
    error: &RunError,
) {
    let exit_code = error.exit_code();
    if let Some(mut lock) = lock {
        lock.tell_failure(&record);
        // It may have been recorded as one that is running.
        if let Ok(blobs) = open_root(project)
            && matches!(blobs.stat(&record.path()), Ok(Some(_)))
        {
            let _ = record.save(blobs.as_ref());
        }
    }

    if matches!(exit_code, 2 | 75) {
        let (hooks, metrics) = (job.hooks.clone(), job.metrics.clone());
        let reporting = Reporting { job: job.name.clone(), hooks, metrics };
        post_run::report_refusal(project, &reporting, &record, exit_code, observer);
        return;
    }

    let Ok(blobs) = open_root(project) else { return };
    let after = PostRun { project, job, options, observer, blobs: blobs.as_ref(), exit_code, is_recorded: false };
    after.follow(&mut record, None);
}

/// Reports a run refused for mistakes in its job file, by what of its reporting can still be read.
pub fn report_refusal(project: &Project, asked: &str, options: &RunOptions, error: &JobError, observer: &dyn Observer) {
    let Ok(path) = project.locate(asked) else { return };
    let Ok(text) = std::fs::read(&path) else { return };

    let is_folder = path.file_name().is_some_and(|name| name == "job.toml");
    let named = if is_folder { path.parent().and_then(Path::file_name) } else { path.file_stem() };
    let file_name = named.unwrap_or_default().to_string_lossy();
    let Some(reporting) = Reporting::alone(&String::from_utf8_lossy(&text), &file_name) else { return };

    let at = (options.clock)();
    let record = RunRecord {
        format: FORMAT,
        run: options.run.clone(),
        job: reporting.job.clone(),
        now: options.now,
        started: at,
        finished: Some(at),
        outcome: Outcome::Failed,
        error: Some(with_first_mistake(error)),
        ..RunRecord::default()
    };
    post_run::report_refusal(project, &reporting, &record, 2, observer);
}

/// An error of a job file with its first mistake: a hook has no terminal for the excerpts.
fn with_first_mistake(error: &JobError) -> String {
    let JobError::File(file) = error else { return error.to_string() };
    match file.problems().first() {
        Some(problem) => {
            let (line, _) = problem.line_column(file.text());
            format!("{error}: line {line}: {problem}")
        }
        None => error.to_string(),
    }
}

/// `own`, or the name that follows `newest` if that is later: names ascend in the order of recording, even if the clock
/// went back.
fn name_after(newest: &str, own: &str) -> String {
    match (Ulid::from_string(newest), Ulid::from_string(own)) {
        (Ok(newest), Ok(ulid)) if ulid <= newest => {
            Ulid::from_parts(newest.timestamp_ms().saturating_add(1), ulid.random()).to_string()
        }
        _ => own.to_owned(),
    }
}

/// The name before those of the runs of the last month before `run`; most of what is asked of runs is told by them.
fn recent(run: &str) -> Option<String> {
    let run = Ulid::from_string(run).ok()?;
    Some(Ulid::from_parts(run.timestamp_ms().saturating_sub(RECENT), 0).to_string())
}

/// The warning for a logical time in the future.
fn future_note(now: i64) -> String {
    let time = chrono::DateTime::from_timestamp_micros(now).map(|time| time.to_rfc3339());
    format!(
        "warning: the logical time of this run, {}, is in the future: it counts as no scheduled run, and cells that expire \
         by then count as expired",
        time.unwrap_or_default()
    )
}

impl Run<'_> {
    /// Notes what the run `unfinished` before this one left, and a logical time in the future.
    fn note_begin(&self, record: &mut RunRecord, unfinished: Option<&RunRecord>) {
        if let Some(killed) = unfinished.filter(|last| last.outcome == Outcome::Running) {
            self.observer.event(Event::Note(continues_note(killed, record)));
        }
        if let Some(note) = unfinished.and_then(untold_rejects_note) {
            self.note(record, note);
        }
        if record.now > record.started.saturating_add(AHEAD) {
            let note = future_note(record.now);
            self.note(record, note);
        }
    }

    /// Brings tables and exports up to date. Returns the first rejected rows.
    fn run(&self, record: &mut RunRecord) -> Result<Vec<RejectedRow>, RunError> {
        let (plan, compared, rejected) = self.load(record)?;
        self.derive(record)?;

        let clock = Instant::now();
        self.publish(&plan, compared, record)?;
        took(record, "publish", clock);

        if !self.job.pushes.is_empty() {
            let clock = Instant::now();
            self.push(record)?;
            took(record, "push", clock);
        }

        // Last: publishing reads a day from its own files, before compaction joins them into months.
        self.compact(record)?;
        // Without room now, a later run does it.
        let _ = self.store.keep_reserve();
        Ok(rejected)
    }
}
