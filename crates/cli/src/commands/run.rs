//! `tidetable run`: runs a job and tells what it made.

use std::io::Write;

use chrono::NaiveDate;
use serde_json::{Value, json};
use tidetable_runner::{
    IfLocked, InputState, Job, Only, Outcome, PartState, Project, RunOptions, RunRecord, RunReport, Runs, Severity,
    Stop, UlidIds, open_store, plan_job, run as run_job,
};
use tidetable_store::{Ids, LargestRow, RejectedRow, ulid_text};

use super::project;
use crate::args::{Global, OnlyDays, Output, Retry, Run, RunDays, RunHow};
use crate::error::CliError;
use crate::output::{Rows, stdout};
use crate::progress::{Watcher, bytes, count};
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
    let options = options(&args.days, &how, &ids)?;
    let Some(name) = &args.job else { return run_all(global, &project, &options, args.dry_run, &ids) };
    let job = Job::load(&project, name)?;
    if args.dry_run {
        return super::plan::show(global, &plan_job(&project, &job, &options, &ids)?);
    }
    run_one(global, &project, &job, &options, &ids)?;
    Ok(())
}

/// Tries again what a run left.
pub fn retry(global: &Global, args: &Retry) -> Result<(), CliError> {
    let project = project(global)?;
    let store = open_store(&project)?;
    let record = Runs::of(store.blobs().as_ref()).load(&args.run)?;
    let record = record.ok_or_else(|| CliError::NoRun { run: args.run.clone() })?;
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
    // A run that stopped on its way has tried only some of what it would have.
    let parts = if record.outcome.is_open() { record.asked.parts.clone() } else { Some(parts) };
    if parts.as_ref().is_some_and(Vec::is_empty) {
        return Err(CliError::NothingLeft { run: args.run.clone() });
    }
    let (from, to) = (record.asked.from, record.asked.to);
    let days = (from.is_some() || to.is_some()).then(|| from.unwrap_or(NaiveDate::MIN)..=to.unwrap_or(NaiveDate::MAX));
    let asked = RunDays {
        day: None,
        from: None,
        to: None,
        only: None,
        force: record.asked.force,
        rebuild: record.asked.rebuild,
        without: record.asked.without.clone(),
        adopt: false,
        now: Some(record.now),
    };
    let reread = record.asked.reread.clone();
    let options = RunOptions { days, parts, reread, ..options(&asked, &how, &ids)? };
    run_one(global, &project, &job, &options, &ids)?;
    Ok(())
}

/// Runs every job of the project, each after those it depends on. One that fails keeps those that come after it from
/// running, and no others.
fn run_all(
    global: &Global,
    project: &Project,
    options: &RunOptions,
    dry_run: bool,
    ids: &UlidIds,
) -> Result<(), CliError> {
    let jobs = super::jobs::in_order(project)?;
    let mut failed: Vec<(String, u8)> = Vec::new();
    for (job, after) in &jobs {
        if let Some(before) = after.iter().find(|before| failed.iter().any(|(name, _)| name == *before)) {
            crate::tell_line(global, &format!("{} is not run: {before}, which it depends on, failed", job.name));
            failed.push((job.name.clone(), 1));
            continue;
        }
        let options = RunOptions { run: ulid_text(ids.next()), ..options.clone() };
        let done = match dry_run {
            true => plan_job(project, job, &options, ids)
                .map_err(CliError::from)
                .and_then(|plan| super::plan::show(global, &plan)),
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
    let watcher = Watcher::new(global.log);
    let report = run_job(project, job, options, ids, &watcher);
    watcher.finish();
    let Some(report) = report? else {
        crate::tell_line(global, &format!("skipped: {} is being run already", job.name));
        return Ok(None);
    };
    let shown = match show(global, project, job, &report) {
        // Whoever read the summary has read enough; how the run ended is told by the exit code all the same.
        Err(error) if error.is_closed_pipe() => Ok(()),
        shown => shown,
    };
    let record = &report.record;
    let parts = |state| record.exports.iter().filter(|part| part.state == state).count() as u64;
    match record.outcome {
        Outcome::Partial => {
            let missed = count(parts(PartState::Failed) + parts(PartState::Checks), "day");
            Err(CliError::Partial { missed, run: record.run.clone() })
        }
        Outcome::Checks => {
            let broken = |check: &&tidetable_runner::CheckRecord| !check.passed && check.severity == Severity::Error;
            Err(CliError::Checks { failed: count(record.checks.iter().filter(broken).count() as u64, "check") })
        }
        _ => shown.map(|()| Some(report.record)),
    }
}

/// What the command line asks of a run.
pub fn options(args: &RunDays, how: &How, ids: &UlidIds) -> Result<RunOptions, CliError> {
    let only = |only: &OnlyDays| match only {
        OnlyDays::Failed => Only::Failed,
        OnlyDays::Missing => Only::Missing,
    };
    Ok(RunOptions {
        days: days(args)?,
        only: args.only.as_ref().map(|states| states.iter().map(only).collect()),
        parts: None,
        force: args.force,
        now: args.now.unwrap_or_else(clock),
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

fn clock() -> i64 {
    chrono::Utc::now().timestamp_micros()
}

fn days(args: &RunDays) -> Result<Option<std::ops::RangeInclusive<NaiveDate>>, CliError> {
    let range = match (args.day, args.from, args.to) {
        (Some(day), _, _) => day..=day,
        (None, None, None) => return Ok(None),
        (None, from, to) => from.unwrap_or(NaiveDate::MIN)..=to.unwrap_or(NaiveDate::MAX),
    };
    if range.is_empty() {
        return Err(CliError::Usage("--from is after --to: no day lies between them"));
    }
    Ok(Some(range))
}

fn show(global: &Global, project: &Project, job: &Job, report: &RunReport) -> Result<(), CliError> {
    let mut out = stdout();
    match global.output {
        Output::Json => writeln!(out, "{}", serde_json::to_string(&report.record)?)?,
        other @ (Output::Csv | Output::Parquet | Output::Arrow) => summary(&report.record).write(other, &mut out)?,
        Output::Table => {
            summary(&report.record).write(Output::Table, &mut out)?;
            exports(&report.record, &mut out)?;
            checks(&report.record, &mut out)?;
            rejected(report, &mut out)?;
            next_steps(project, job, &report.record, &mut out)?;
        }
    }
    out.flush()?;
    Ok(())
}

/// A line for each table, and what each stage took.
fn summary(record: &RunRecord) -> Rows {
    let mut rows = Rows::new(&["what", "value"]);
    let mut line = |what: &str, value: Value| rows.push(vec![json!(what), value]);
    for load in &record.loads {
        let stats = &load.stats;
        line("table", json!(load.table));
        let state = if load.version == load.before {
            format!("{} (nothing new)", load.version)
        } else {
            format!("{} (was {})", load.version, load.before)
        };
        line("version", json!(state));
        for state in
            [InputState::New, InputState::Changed, InputState::ReadAgain, InputState::Unchanged, InputState::Gone]
        {
            let inputs = load.inputs.iter().filter(|input| input.state == state).count();
            if inputs > 0 {
                line(&format!("inputs {}", state.name()), json!(inputs));
            }
        }
        line("rows read", json!(stats.rows_read));
        if stats.rows_filtered > 0 {
            line("rows filtered", json!(stats.rows_filtered));
        }
        line("rows rejected", json!(stats.rows_rejected));
        line("rows written", json!(stats.rows_written));
        line("cells written", json!(stats.cells));
        if stats.overwritten > 0 {
            line("cells written over", json!(stats.overwritten));
        }
        if stats.large_rows > 0 {
            line("rows over 100 MB", json!(stats.large_rows));
        }
        if let Some(LargestRow { key, bytes: size }) = &stats.largest_row {
            line("largest row", json!(format!("{key} ({})", bytes(*size))));
        }
        if stats.large_cells > 0 {
            line("cells over 10 MB", json!(stats.large_cells));
        }
        line("bytes in", json!(bytes(stats.bytes_in)));
        line("bytes out", json!(bytes(stats.bytes_out)));
        if stats.cells > 0 {
            line("bytes a cell", json!(format!("{:.3}", stats.bytes_out as f64 / stats.cells as f64)));
        }
    }
    let totals = record.totals();
    for (stage, seconds) in &record.seconds {
        line(&format!("seconds {stage}"), json!(format!("{seconds:.3}")));
        if stage == "load" && totals.cells > 0 {
            // Tasks of several cores add up, so these may be more than the whole.
            let steps = [
                ("waiting for inputs", totals.read),
                ("parsing", totals.parse),
                ("sorting", totals.sort),
                ("encoding", totals.encode),
                ("writing", totals.write),
            ];
            for (step, time) in steps {
                line(&format!("  {step}"), json!(format!("{:.3}", time.as_secs_f64())));
            }
        }
    }
    rows
}

fn exports(record: &RunRecord, out: &mut impl Write) -> Result<(), CliError> {
    let mut names: Vec<&str> = record.exports.iter().map(|part| part.export.as_str()).collect();
    names.dedup();
    for name in names {
        let parts = || record.exports.iter().filter(|part| part.export == name && part.state == PartState::Published);
        if let (Some(first), Some(last)) = (parts().next(), parts().next_back()) {
            let days = count(parts().count() as u64, "day");
            writeln!(out, "published {name}: {days}, exports/{} to exports/{}", first.part, last.part)?;
        }
    }
    Ok(())
}

/// Checks that did not hold, and days that were not published.
fn checks(record: &RunRecord, out: &mut impl Write) -> Result<(), CliError> {
    for check in record.checks.iter().filter(|check| !check.passed) {
        let severity = match check.severity {
            Severity::Error => "check",
            Severity::Warn => "warning: check",
        };
        let (name, on, label, rule) = (&check.check, &check.on, &check.label, &check.rule);
        writeln!(out, "{severity} {name} failed for {on} of {label}: {rule}: {}", check.measured)?;
    }
    for part in record.exports.iter().filter(|part| part.state == PartState::Failed) {
        writeln!(out, "not published: {}: {}", part.part, part.error.as_deref().unwrap_or_default())?;
    }
    Ok(())
}

fn rejected(report: &RunReport, out: &mut impl Write) -> Result<(), CliError> {
    for load in &report.record.loads {
        if let Some(path) = &load.rejected {
            let rows = count(load.stats.rows_rejected, "row");
            writeln!(out, "rejected {rows} of the query of {}, all in {path}", load.table)?;
        }
    }
    let Some(path) = &report.record.rejected else { return Ok(()) };
    writeln!(out, "rejected {}, all in {path}:", count(report.record.rows_rejected, "row"))?;
    let several = report.record.loads.len() > 1;
    for RejectedRow { file, table, line, column, reason, raw } in &report.rejected {
        let table = table.as_ref().filter(|_| several).map(|table| format!(" not for {table}:")).unwrap_or_default();
        let column = column.as_ref().map(|column| format!(" {column}:")).unwrap_or_default();
        writeln!(out, "  {file}:{line}:{table}{column} {reason}: {}", raw.escape_debug())?;
    }
    Ok(())
}

fn next_steps(project: &Project, job: &Job, record: &RunRecord, out: &mut impl Write) -> Result<(), CliError> {
    let just = project.dir.join("justfile").is_file();
    let (sql, tidetable) = if just { ("just sql", "just tidetable") } else { ("tidetable sql", "tidetable") };
    if record.loads.iter().all(|load| load.version == load.before) && record.exports.is_empty() {
        writeln!(out, "0 new rows: everything is as the last run left it.")?;
    }
    let Some(table) = job.tables.first().map(|table| &table.spec.name) else { return Ok(()) };
    writeln!(out, "\nTry next:")?;
    writeln!(out, "  {sql} -c 'select * from {} limit 5'", quoted(table))?;
    writeln!(out, "  {tidetable} read {table} --limit 1")?;
    if let Some(part) =
        record.exports.iter().rfind(|part| matches!(part.state, PartState::Published | PartState::Unchanged))
    {
        writeln!(out, "  {sql} -c 'select * from exports.{} limit 5'", quoted(&part.part))?;
    }
    Ok(())
}

/// A name as SQL takes it.
fn quoted(name: &str) -> String {
    let plain = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if plain && !name.starts_with(|c: char| c.is_ascii_digit()) { name.to_owned() } else { format!("\"{name}\"") }
}
