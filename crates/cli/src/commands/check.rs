//! `tidetable check`: validates a job file, its SQL and its layouts, without writing; with `--data` evaluates its
//! checks on the existing data.

use std::collections::BTreeSet;
use std::io::Write;

use chrono::NaiveDate;
use tidetable_job::{Job, NameConflict, Project, Source, name_conflict};
use tidetable_layout::error::{Advice, LostReason};
use tidetable_layout::time::{MINUTE, SECOND};
use tidetable_runner::plan::ranges;
use tidetable_runner::record::{CheckRecord, Severity};
use tidetable_runner::report::{BucketCheck, SKEW, check_bucket};
use tidetable_runner::run::{
    DataChecks, check_columns, check_data, check_owner, check_queries, check_stores, probe_params, tables_read,
    type_notes, undeclared,
};
use tidetable_runner::{ReadableTables, RunError, UlidIds, open_store, runtime};
use tidetable_sql::check_query;
use tidetable_store::{Ids, ulid_text};

use super::cluster::{self, scheduler_of};
use super::{clock, note_if_root_is_new, project};
use crate::args::{Check, Global, Output};
use crate::diagnostics::print_error;
use crate::error::CliError;
use crate::objects;
use crate::output::values::{count, listed};
use crate::output::{ResultRows, row, sentences};

/// Most columns that are named; the rest is counted.
const SHOWN: usize = 8;
/// Maximum number of tables of a Bigtable instance.
const MAX_TABLES: usize = 1000;

/// Checks a job, or all of them: then every mistake is reported, and the exit code is that of the first.
pub fn check(global: &Global, args: &Check) -> Result<(), CliError> {
    let project = project(global)?;
    if let Some(elsewhere) = scheduler_of(None, &project) {
        cluster::check(&elsewhere)?;
    }
    if !args.data && !project.root_is_url() {
        note_if_root_is_new(global)?;
    }
    if project.root_is_url() && !args.data {
        check_root(global, &project)?;
    }

    // Invalid ones are reported when they are checked themselves.
    let names = if args.data { Vec::new() } else { project.jobs() };
    let jobs: Vec<Job> = names.iter().filter_map(|name| Job::load(&project, name).ok()).collect();
    if let Some(name) = &args.job {
        let tables = check_or_measure(global, args, &project, name, &jobs)?;
        return check_count(global, tables.len());
    }

    let mut failed: Vec<u8> = Vec::new();
    let mut tables = BTreeSet::new();
    for name in project.jobs() {
        match check_or_measure(global, args, &project, &name, &jobs) {
            Ok(found) => tables.extend(found),
            Err(error) if error.is_closed_pipe() => return Err(error),
            Err(error) => {
                failed.push(error.exit_code());
                print_error(global, error);
            }
        }
    }

    check_count(global, tables.len())?;
    // Reports cycles and unknown jobs.
    if failed.is_empty() {
        crate::commands::run::jobs::in_order(&project)?;
    }
    match failed.first() {
        None => Ok(()),
        Some(code) => Err(CliError::Several { failed: count(failed.len() as u64, "job"), code: *code }),
    }
}

/// Checks that the bucket of the root can be one.
fn check_root(global: &Global, project: &Project) -> Result<(), CliError> {
    let id = ulid_text(UlidIds::default().next());
    let BucketCheck { ahead } = check_bucket(open_store(project)?.blobs().as_ref(), &id, clock)?;

    let mut rows = ResultRows::of(objects::FINDINGS);
    let seconds = ahead.map(|ahead| ahead / SECOND);
    let clocks = match seconds {
        Some(0) => "its clock agrees".to_owned(),
        Some(ahead) if ahead > 0 => format!("its clock is {ahead} s ahead"),
        Some(behind) => format!("its clock is {} s behind", -behind),
        None => "it does not tell the time".to_owned(),
    };

    rows.push(row!["root", project.root, format!("reached, and writes conditionally; {clocks}")]);
    if ahead.is_some_and(|ahead| ahead.abs() > SKEW) {
        let finding = format!(
            "{clocks}: more than {} min, by which `status`, `vacuum` and `clean` tell old from new; set the clock of this machine",
            SKEW / MINUTE
        );
        rows.push(row!["warning", "clock", finding]);
    }

    let mut out = sentences(global.output);
    rows.write(global.output, &mut out)?;
    Ok(out.flush()?)
}

/// Checks a job, or with `--data` what it has published. Returns the tables that it found.
fn check_or_measure(
    global: &Global,
    args: &Check,
    project: &Project,
    name: &str,
    jobs: &[Job],
) -> Result<BTreeSet<String>, CliError> {
    match args.data {
        true => measure(global, project, name, args.day).map(|()| BTreeSet::new()),
        false => check_one(global, project, name, jobs),
    }
}

/// Warns of more tables than Bigtable allows.
fn check_count(global: &Global, tables: usize) -> Result<(), CliError> {
    if tables <= MAX_TABLES {
        return Ok(());
    }
    let mut rows = ResultRows::of(objects::FINDINGS);
    let finding = format!(
        "{tables} tables in the store and the jobs: an instance of Bigtable holds {MAX_TABLES} at most; put what is read \
         together into one table"
    );
    rows.push(row!["warning", "tables", finding]);
    rows.print(global.output)
}

/// Evaluates the checks of a job on the existing data.
fn measure(global: &Global, project: &Project, name: &str, day: Option<NaiveDate>) -> Result<(), CliError> {
    let job = Job::load(project, name)?;
    let days = day.map(|day| day..=day);
    let run = ulid_text(UlidIds::default().next());
    let DataChecks { found, failing } = check_data(project, &job, days.as_ref(), &run, clock())?;

    let mut out = sentences(global.output);
    let rows = match global.output {
        Output::Table if !global.verbose && day.is_none() => by_rule(&found),
        _ => measured(&found),
    };
    rows.write(global.output, &mut out)?;

    if global.output == Output::Table {
        for row in failing.iter().take(SHOWN) {
            writeln!(out, "{} of {} {}, {}: {}", row.check, row.on, row.label, row.rule, row.row)?;
        }
        if !failing.is_empty() {
            writeln!(out, "{} in runs.failing_rows of {run}", count(failing.len() as u64, "row"))?;
        }
    }
    out.flush()?;

    match found.iter().filter(|check| !check.passed && check.severity == Severity::Error).count() {
        0 => Ok(()),
        failed => Err(CliError::DataChecks { failed: count(failed as u64, "check") }),
    }
}

/// A row for each rule in each part and day.
fn measured(found: &[CheckRecord]) -> ResultRows {
    let mut rows = ResultRows::of(objects::MEASURED);
    for check in found {
        let severity = severity(check);
        rows.push(row![check.check, check.on, check.label, check.rule, severity, check.measured, check.passed]);
    }
    rows
}

/// A row for each rule: how many of its parts and days failed, and which.
fn by_rule(found: &[CheckRecord]) -> ResultRows {
    let mut rules: Vec<(&CheckRecord, Vec<&CheckRecord>)> = Vec::new();
    for check in found {
        let known = rules
            .iter_mut()
            .find(|(first, _)| (&first.check, &first.on, &first.rule) == (&check.check, &check.on, &check.rule));
        match known {
            Some((_, all)) => all.push(check),
            None => rules.push((check, vec![check])),
        }
    }

    let mut rows = ResultRows::new(&["check", "on", "rule", "severity", "checked", "failed", "where", "worst"]);
    for (first, all) in rules {
        let failed: Vec<&CheckRecord> = all.iter().copied().filter(|check| !check.passed).collect();
        let labels: Vec<&str> = failed.iter().map(|check| check.label.as_str()).collect();
        let worst = failed.iter().map(|check| check.measured).max_by_key(|measured| measured.abs());
        let CheckRecord { check, on, rule, .. } = first;
        rows.push(row![check, on, rule, severity(first), all.len(), labels.len(), ranges(&labels), worst]);
    }
    rows
}

fn severity(check: &CheckRecord) -> &'static str {
    if check.severity == Severity::Error { "error" } else { "warn" }
}

/// Checks one job together with the others. Returns the tables of the store and of the job.
fn check_one(global: &Global, project: &Project, name: &str, jobs: &[Job]) -> Result<BTreeSet<String>, CliError> {
    let job = Job::load(project, name)?;
    if let (Some(push), false) = (job.pushes.first(), cfg!(feature = "bigtable")) {
        return Err(RunError::NoPusher { push: push.name.clone() }.into());
    }
    let store = open_store(project)?;
    let stored = store.tables()?;
    let all = stored.into_iter().chain(job.tables.iter().map(|table| table.spec.name.clone())).collect();

    let mut tables = ReadableTables::of(&store, &job)?;
    let others: Vec<&Job> = jobs.iter().filter(|other| other.name != job.name).collect();
    let unmade = tables.add_unmade(&store, &others)?;
    let runtime = runtime()?;
    check_stores(project, &job, runtime.handle())?;
    check_owner(project, &job, &store, runtime.handle())?;

    let (mut types, mut first) = (Vec::new(), Vec::new());
    for export in &job.exports {
        let checked = runtime.block_on(check_query(&tables.tables, &export.sql, &probe_params(export)));
        let checked = checked.map_err(|source| match tables.blame(&export.sql) {
            Some(damaged) => damaged.into(),
            None => CliError::Export { export: export.name.clone(), source: Box::new(source) },
        })?;
        for table in tables_read(export, checked.reads)? {
            if let Some(maker) = unmade.get(&table) {
                let finding =
                    format!("reads {table}, which job {maker} has not made yet: `tidetable run {maker}` first");
                first.push((export.name.clone(), finding));
            }
        }
        check_columns(export, &checked.schema)?;
        types.extend(type_notes(export, &checked.schema).into_iter().map(|note| (export.name.clone(), note)));
    }

    for check in &job.checks {
        let params = job.export(&check.on).map(probe_params).unwrap_or_default();
        for query in check_queries(check, job.export(&check.on)) {
            let checked = runtime.block_on(check_query(&tables.tables, &query, &params));
            checked.map_err(|source| CliError::Check { check: check.name.clone(), source: Box::new(source) })?;
        }
    }

    for other in others {
        if let Some(NameConflict { name, other: theirs, both }) = name_conflict(&job, other) {
            return Err(RunError::NameConflict { name, both, other: theirs, job: other.name.clone() }.into());
        }
    }

    let mut out = sentences(global.output);
    let mut rows = findings(&job);
    for (export, note) in types {
        rows.push(row!["export", export, note]);
    }
    for (export, finding) in first {
        rows.push(row!["warning", export, finding]);
    }
    for table in undeclared(&job, &store)? {
        rows.push(row![
            "warning",
            table,
            format!(
                "made by this job, which no longer declares it: no run adds to it; `tidetable drop {table}` removes it"
            )
        ]);
    }
    rows.write(global.output, &mut out)?;
    if global.output == Output::Table {
        writeln!(out, "{} is right", job.shown_path.display())?;
    }
    out.flush()?;
    Ok(all)
}

/// What the tables of a job read back and do not keep, and what it publishes and checks.
fn findings(job: &Job) -> ResultRows {
    let mut rows = ResultRows::of(objects::FINDINGS);
    let mut not_stored = Vec::new();
    for table in &job.tables {
        let name = &table.spec.name;
        let read_back: Vec<String> =
            table.layout.records_schema().fields().iter().map(|field| field.name().clone()).collect();
        let finding = format!("reads back {}", listed(&read_back));
        rows.push(row!["table", name, finding]);

        let mut absent = Vec::new();
        for warning in table.layout.warnings() {
            match &warning.advice {
                Advice::Lost { column, why: LostReason::Absent } => absent.push(column.clone()),
                advice => rows.push(row!["warning", name, advice.to_string()]),
            }
        }
        if !absent.is_empty() {
            not_stored.push(format!("{} of {name}", listed(&absent)));
        }
    }

    // One line: tables with a part of a wide source omit most of its columns.
    if !not_stored.is_empty() {
        let finding = format!("no key, qualifier or value holds {}", not_stored.join("; "));
        rows.push(row!["warning", "columns", finding]);
    }

    for finding in job.sources.iter().flat_map(Source::idle_settings) {
        rows.push(row!["warning", "sources", finding]);
    }

    for export in &job.exports {
        rows.push(row!["export", export.name, format!("as {}", export.name_template.as_str())]);
    }
    for check in &job.checks {
        let rules: Vec<String> = check.rules.iter().map(ToString::to_string).collect();
        rows.push(row!["check", check.name, format!("{}: {}", check.on, rules.join("; "))]);
    }
    rows
}
