//! `tidetable run`: runs a job, or all of them, and `tidetable retry`.

pub(crate) mod catch_up;
pub(crate) mod summary;

use chrono::NaiveDate;
use chrono_tz::Tz;
use tidetable_runner::{
    CheckRecord, IfLocked, Job, JobError, Only, Outcome, PartState, Project, RunOptions, RunRecord, Severity, Stop,
    TableReason, UlidIds, open_store, plan_job, refused, run as run_job,
};
use tidetable_store::{Ids, LEAST_MEMORY, ulid_text};

use super::{find_run, project};
use crate::args::{Day, Global, OnlyDays, Retry, Run, RunDays, RunHow, selected_of};
use crate::error::CliError;
use crate::log;
use crate::progress::{Watcher, count};
use crate::signals::stop_on_signals;

/// Bytes of a load that only plans.
const DEFAULT_MEMORY: u64 = 384 << 20;

/// How a run does what it does.
#[derive(Debug, Clone)]
pub struct How {
    jobs: usize,
    fail_fast: bool,
    if_locked: IfLocked,
    memory: u64,
    stop: Stop,
}

impl Default for How {
    fn default() -> Self {
        let jobs = std::thread::available_parallelism().map_or(1, usize::from);
        Self { jobs, fail_fast: false, if_locked: IfLocked::Fail, memory: DEFAULT_MEMORY, stop: Stop::default() }
    }
}

impl How {
    pub fn new(args: &RunHow) -> Result<Self, CliError> {
        let usual = Self::default();
        Ok(Self {
            jobs: args.jobs.unwrap_or(usual.jobs).max(1),
            fail_fast: args.fail_fast,
            if_locked: args.if_locked,
            memory: args.memory,
            stop: stop_on_signals()?,
        })
    }
}

/// Runs the job, or all of them.
pub fn run(global: &Global, args: &Run) -> Result<(), CliError> {
    let project = project(global)?;
    let ids = UlidIds::default();
    let how = How::new(&args.how)?;
    // A job file with mistakes says nothing of its zone.
    let unread = options(&args.days, Tz::UTC, &how, &ids)?;
    let Some(name) = &args.job else {
        // The same for all of them.
        let now = args.days.now.unwrap_or_else(clock);
        let options = |job: &Job| Ok(RunOptions { now, ..options(&args.days, job.timezone, &how, &ids)? });
        return run_all(global, &project, (&unread, &options), args.dry_run, &ids);
    };
    let job = if args.dry_run { Job::load(&project, name) } else { load(global, &project, name, &unread) }?;
    let options = options(&args.days, job.timezone, &how, &ids)?;
    if args.catch_up {
        return catch_up::catch_up(global, &project, &job, &options, args.dry_run, &ids);
    }
    if args.dry_run {
        return crate::commands::plan::show(global, &plan_job(&project, &job, &options, &ids)?);
    }
    run_one(global, &project, &job, &options, &ids)?;
    Ok(())
}

/// What the command line asks of the run of a job.
pub type OptionsOf<'a> = &'a dyn Fn(&Job) -> Result<RunOptions, CliError>;

/// Loads a job that is to be run. If it has mistakes that is told to whom its hooks name.
fn load(global: &Global, project: &Project, name: &str, options: &RunOptions) -> Result<Job, JobError> {
    Job::load(project, name).inspect_err(|error| {
        let watcher = Watcher::new(global, &options.stop);
        refused(project, name, options, error, &watcher);
        watcher.finish();
    })
}

/// Tries again what a run left.
pub fn retry(global: &Global, args: &Retry) -> Result<(), CliError> {
    let project = project(global)?;
    let store = open_store(&project)?;
    let record = find_run(&store, &args.run)?;
    let job = Job::load(&project, &record.job)?;
    let ids = UlidIds::default();
    let how = How::new(&args.how)?;
    let missed = |state| matches!(state, PartState::Failed | PartState::Checks);
    let parts: Vec<(String, String)> = record
        .exports
        .iter()
        .filter(|part| missed(part.state))
        .map(|part| (part.export.clone(), part.label.clone()))
        .collect();
    // Days of tables whose checks failed are checked again by any run of the job.
    if !record.outcome.is_open() && parts.is_empty() && !record.checks.iter().any(is_broken) {
        return Err(CliError::NothingLeft { run: record.run.clone() });
    }
    // A run that stopped on its way has tried only some of what it would have.
    let parts = if record.outcome.is_open() { record.asked.parts.clone() } else { Some(parts) };
    let (from, to) = (record.asked.from, record.asked.to);
    let days = (from.is_some() || to.is_some()).then(|| from.unwrap_or(NaiveDate::MIN)..=to.unwrap_or(NaiveDate::MAX));
    let asked = RunDays {
        day: None,
        from: None,
        to: None,
        only: None,
        select: selected_of(&record.asked.select),
        force: record.asked.force,
        rebuild: record.asked.rebuild,
        without: record.asked.without.clone(),
        adopt: false,
        now: Some(record.now),
    };
    let reread = record.asked.reread.clone();
    let options = RunOptions { days, parts, reread, ..options(&asked, job.timezone, &how, &ids)? };
    run_one(global, &project, &job, &options, &ids)?;
    Ok(())
}

/// Runs every job of the project, each after those it depends on, or shows the plan of each. One that fails keeps those that
/// come after it from running, and no others.
pub fn run_all(
    global: &Global,
    project: &Project,
    (unread, options): (&RunOptions, OptionsOf<'_>),
    dry_run: bool,
    ids: &UlidIds,
) -> Result<(), CliError> {
    let jobs = crate::commands::reports::jobs::in_order(project).inspect_err(|_| {
        if !dry_run {
            project.jobs().iter().for_each(|name| drop(load(global, project, name, unread)));
        }
    })?;
    let mut failed: Vec<(String, u8)> = Vec::new();
    let mut unmade: Vec<&str> = Vec::new();
    for (job, after) in &jobs {
        if let Some(before) = after.iter().find(|before| failed.iter().any(|(name, _)| name == *before)) {
            crate::tell_line(global, &format!("{} is not run: {before}, which it depends on, failed", job.name));
            failed.push((job.name.clone(), 1));
            continue;
        }
        let options = options(job)?;
        let done = match dry_run {
            true => match plan_job(project, job, &options, ids) {
                Ok(plan) => {
                    if plan.tables.iter().any(|table| table.reason == Some(TableReason::Missing)) {
                        unmade.push(&job.name);
                    }
                    crate::commands::plan::show(global, &plan)
                }
                // What it reads is not there before those have run.
                Err(_) if after.iter().any(|before| unmade.contains(&before.as_str())) => {
                    unmade.push(&job.name);
                    let text = format!("{}: what it does is known once {} has run", job.name, after.join(", "));
                    crate::tell_line(global, &text);
                    Ok(())
                }
                Err(error) => Err(error.into()),
            },
            false => run_one(global, project, job, &options, ids).map(drop),
        };
        if let Err(error) = done {
            let code = error.exit_code();
            if options.stop.asked().is_some() || error.is_closed_pipe() {
                return Err(error);
            }
            crate::tell(global, error);
            failed.push((job.name.clone(), code));
        }
    }
    match failed.first() {
        None => Ok(()),
        Some((_, code)) => Err(CliError::Several { failed: count(failed.len() as u64, "job"), code: *code }),
    }
}

/// Runs a job and shows what it did: its record, `None` if another run goes on and was left alone.
pub fn run_one(
    global: &Global,
    project: &Project,
    job: &Job,
    options: &RunOptions,
    ids: &UlidIds,
) -> Result<Option<RunRecord>, CliError> {
    log::about_run(&options.run);
    let watcher = Watcher::new(global, &options.stop);
    let report = run_job(project, job, options, ids, &watcher);
    watcher.finish();
    let Some(report) = report? else {
        crate::tell_line(global, &format!("skipped: {} is being run already", job.name));
        return Ok(None);
    };
    let shown = match summary::show(global, project, job, &report) {
        // Whoever read the summary has read enough; how the run ended is told by the exit code all the same.
        Err(error) if error.is_closed_pipe() => Ok(()),
        shown => shown,
    };
    let record = &report.record;
    match record.outcome {
        Outcome::Partial => {
            let missed = summary::parts(job, record, |state| matches!(state, PartState::Failed | PartState::Checks));
            Err(CliError::Partial { missed, run: record.run.clone() })
        }
        Outcome::Checks => {
            let broken = record.checks.iter().filter(|check| is_broken(check)).count();
            Err(CliError::Checks { failed: count(broken as u64, "check") })
        }
        _ => shown.map(|()| Some(report.record)),
    }
}

/// Whether a check failed that keeps what it looked at from being published.
fn is_broken(check: &CheckRecord) -> bool {
    !check.passed && check.severity == Severity::Error
}

/// What the command line asks of a run of a job whose days are those of a zone.
pub fn options(args: &RunDays, zone: Tz, how: &How, ids: &UlidIds) -> Result<RunOptions, CliError> {
    let only = |only: &OnlyDays| match only {
        OnlyDays::Failed => Only::Failed,
        OnlyDays::Missing => Only::Missing,
    };
    if how.memory < LEAST_MEMORY {
        return Err(CliError::Usage(
            "--memory is too little to load with, which would write a file for each piece: write 16MiB or more",
        ));
    }
    let now = args.now.unwrap_or_else(clock);
    Ok(RunOptions {
        days: days(args, zone, now)?,
        only: args.only.as_ref().map(|states| states.iter().map(only).collect()),
        parts: None,
        select: args.select.clone(),
        force: args.force,
        now,
        clock,
        run: ulid_text(ids.next()),
        rebuild: args.rebuild,
        adopt: args.adopt,
        without: args.without.clone(),
        reread: Vec::new(),
        memory: how.memory,
        jobs: how.jobs,
        fail_fast: how.fail_fast,
        if_locked: how.if_locked,
        stop: how.stop.clone(),
        looks_only: false,
    })
}

pub(crate) fn clock() -> i64 {
    chrono::Utc::now().timestamp_micros()
}

fn days(args: &RunDays, zone: Tz, now: i64) -> Result<Option<std::ops::RangeInclusive<NaiveDate>>, CliError> {
    let at = |day: Option<Day>| day.and_then(|day| day.at(zone, now));
    let range = match (at(args.day), at(args.from), at(args.to)) {
        (Some(day), _, _) => day..=day,
        (None, None, None) => return Ok(None),
        (None, from, to) => from.unwrap_or(NaiveDate::MIN)..=to.unwrap_or(NaiveDate::MAX),
    };
    if range.is_empty() {
        return Err(CliError::Usage("--from is after --to: no day lies between them"));
    }
    Ok(Some(range))
}
