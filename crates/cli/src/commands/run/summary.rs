//! The summary of a finished run.

use std::collections::BTreeSet;
use std::io::{IsTerminal, Write};
use std::path::Path;

use chrono::NaiveDate;
use serde_json::{Value, json};
use tidetable_ingest::{EmptyRow, RejectedRow};
use tidetable_job::{Job, Per, Project};
use tidetable_runner::RunReport;
use tidetable_runner::plan::ranges;
use tidetable_runner::record::{
    CheckRecord, ExportRecord, InputState, LoadRecord, Outcome, PartState, RunRecord, RunRequest, Severity,
};
use tidetable_source::shown_text;
use tidetable_store::LargestRow;

use crate::args::{Global, Output};
use crate::error::CliError;
use crate::objects;
use crate::objects::write_object;
use crate::output::values::{bytes, count};
use crate::output::{ResultRows, row, sentences};
use crate::terminal::hints;

/// Writes the summary to standard output in the given format.
pub(crate) fn show(global: &Global, project: &Project, job: &Job, report: &RunReport) -> Result<(), CliError> {
    let mut out = sentences(global.output);
    let record = &report.record;
    match global.output {
        Output::Json => write_object(&mut out, serde_json::to_value(record)?, objects::RUN)?,
        Output::Table if global.quiet => {}
        Output::Table => {
            of_record(global, Some(job), record, &mut out)?;
            rejected(report, &mut out)?;
            let is_same = record.loads.iter().all(|load| load.version == load.before && load.owed.is_empty());
            if is_same && record.exports.is_empty() {
                writeln!(out, "{}", nothing_done(&record.asked))?;
            }
            if std::io::stdout().is_terminal() && is_first_success(record) {
                next_steps(project, job, record, &mut out)?;
            }
        }
        other => counts(record).write(other, &mut out)?,
    }

    out.flush()?;
    Ok(())
}

/// The line of a run that had nothing to do.
fn nothing_done(asked: &RunRequest) -> String {
    let days = match (asked.from, asked.to) {
        (None, None) => return "0 new rows: everything is as the last run left it.".to_owned(),
        (Some(from), Some(to)) if from == to => format!("of {from}"),
        (Some(from), Some(to)) => format!("from {from} to {to}"),
        (Some(from), None) => format!("from {from} on"),
        (None, Some(to)) => format!("up to {to}"),
    };
    match asked.force {
        true => format!("0 new rows, and the tables have no records {days}: nothing is published."),
        false => format!("0 new rows, and nothing {days} to publish: it is as the last run left it, or there is none."),
    }
}

/// Whether a run made the tables that it loaded: what can be done with them is said once.
fn is_first_success(record: &RunRecord) -> bool {
    let are_new = record.loads.iter().all(|load| load.before == 0 && load.version > 0);
    record.outcome == Outcome::Ok && !record.loads.is_empty() && are_new
}

/// The summary as text: a line for each table, or all figures with `--verbose`. `job` is the job, if
/// its file can be read.
pub fn of_record(global: &Global, job: Option<&Job>, record: &RunRecord, out: &mut impl Write) -> Result<(), CliError> {
    if global.verbose {
        figures(record).write(Output::Table, out)?;
    } else if !record.loads.is_empty() {
        tables(record).write(Output::Table, out)?;
        large(record, out)?;
    }

    exports(job, record, out)?;
    checks(record, out)?;
    for damage in &record.damage {
        let why = match damage.undone.split(' ').next() {
            Some("load") => "because the end of the file is missing",
            Some("commit") => "because the catalog did not take it; the files are published",
            _ => "because a file of the store is damaged",
        };
        writeln!(out, "left undone: {}, {why}", damage.undone)?;
    }

    if !(record.attempts.is_empty() || global.verbose) {
        let mut names: Vec<String> =
            record.attempts.iter().map(|attempt| format!("{} {}", attempt.stage, attempt.name)).collect();
        names.dedup();
        writeln!(out, "{}: {}", count(record.attempts.len() as u64, "new attempt"), names.join(", "))?;
    }

    for executor in &record.executors {
        let units = count(executor.units.values().sum(), "unit");
        let (rows, took) = (count(executor.rows, "row"), shown_seconds(executor.seconds));
        writeln!(out, "{}: {units}, {rows}, {} read, in {took} s", executor.executor, bytes(executor.bytes))?;
    }

    let mut stages: Vec<(&String, &f64)> = record.seconds.iter().collect();
    stages.sort_by_key(|(stage, _)| STAGES.iter().position(|known| known == stage));
    let took: Vec<String> =
        stages.into_iter().map(|(stage, seconds)| format!("{stage} {}", shown_seconds(*seconds))).collect();
    if let (Some(finished), false) = (record.finished, global.verbose || took.is_empty()) {
        let all = (finished - record.started) as f64 / 1e6;
        writeln!(out, "took {} s: {}", shown_seconds(all), took.join(", "))?;
    }
    Ok(())
}

/// The stages of a run in order.
const STAGES: [&str; 6] = ["plan", "load", "commit", "derive", "publish", "compact"];

/// A column of the summary: its name, whether it is shown if 0 for every table, and its value.
type Shown = (&'static str, bool, fn(&LoadRecord) -> Value);

const COLUMNS: [Shown; 12] = [
    ("table", true, |load| json!(load.table)),
    ("version", true, |load| json!(version(load))),
    ("inputs", true, |load| json!(inputs(load))),
    ("rows read", true, |load| json!(load.stats.rows_read)),
    ("filtered", false, |load| json!(load.stats.rows_filtered)),
    ("owed", false, |load| json!(load.stats.rows_owed)),
    ("settled", false, |load| json!(load.stats.rows_settled)),
    ("empty", false, |load| json!(load.stats.rows_empty)),
    ("rejected", true, |load| json!(load.stats.rows_rejected)),
    ("written over", false, |load| json!(load.stats.written_over())),
    ("cells", true, |load| json!(load.stats.cells)),
    ("size", true, |load| json!(bytes(load.stats.bytes_out))),
];

/// A line for each table.
fn tables(record: &RunRecord) -> ResultRows {
    let columns =
        COLUMNS.iter().filter(|(_, always, of)| *always || record.loads.iter().any(|load| of(load) != json!(0)));
    let columns: Vec<&Shown> = columns.collect();
    let mut rows = ResultRows::new(&columns.iter().map(|(name, ..)| *name).collect::<Vec<_>>())
        .below(&["inputs"])
        .minor(&["version", "size", "cells", "written over"]);
    for load in &record.loads {
        rows.push(columns.iter().map(|(.., of)| of(load)).collect());
    }
    rows
}

/// The version of a table, and the one before if it changed.
fn version(load: &LoadRecord) -> String {
    let LoadRecord { before, version, .. } = load;
    if version == before { version.to_string() } else { format!("{version} (was {before})") }
}

/// Warns of rows and cells above Bigtable's recommendations.
fn large(record: &RunRecord, out: &mut impl Write) -> Result<(), CliError> {
    for LoadRecord { table, stats, .. } in &record.loads {
        if let (Some(LargestRow { key, bytes: size }), rows) = (&stats.largest_row, stats.large_rows) {
            writeln!(out, "{table}: {} over 100 MB, the largest {key} ({})", count(rows, "row"), bytes(*size))?;
        }
        if stats.large_cells > 0 {
            writeln!(out, "{table}: {} over 10 MB", count(stats.large_cells, "cell"))?;
        }
    }
    Ok(())
}

/// The inputs of a table by state, such as `2 new, 40 unchanged`.
fn inputs(load: &LoadRecord) -> String {
    let counts = STATES.iter().map(|state| (load.count(*state), state.name()));
    let counts: Vec<String> =
        counts.filter(|(number, _)| *number > 0).map(|(number, name)| format!("{number} {name}")).collect();
    if counts.is_empty() { "none".to_owned() } else { counts.join(", ") }
}

/// All states of inputs, those that change the table first.
const STATES: [InputState; 10] = [
    InputState::New,
    InputState::Changed,
    InputState::Grown,
    InputState::ReadAgain,
    InputState::TakenOut,
    InputState::LeftOut,
    InputState::SameContent,
    InputState::Gone,
    InputState::Empty,
    InputState::Unchanged,
];

/// A row for each table, as JSON.
fn counts(record: &RunRecord) -> ResultRows {
    let mut rows = ResultRows::new(&[
        "table",
        "version_before",
        "version",
        "inputs",
        "inputs_unchanged",
        "rows_read",
        "rows_accepted",
        "rows_filtered",
        "rows_rejected",
        "rows_written",
        "cells",
        "overwritten",
        "bytes_in",
        "bytes_out",
        "rows_owed",
        "rows_settled",
    ]);

    for load in &record.loads {
        let stats = &load.stats;
        let mut row = row![load.table];
        let numbers = [
            load.before,
            load.version,
            load.count_all(),
            load.count(InputState::Unchanged),
            stats.rows_read,
            stats.rows_accepted,
            stats.rows_filtered,
            stats.rows_rejected,
            stats.rows_written,
            stats.cells,
            stats.overwritten,
            stats.bytes_in,
            stats.bytes_out,
            stats.rows_owed,
            stats.rows_settled,
        ];
        row.extend(numbers.iter().map(|number| json!(number)));
        rows.push(row);
    }
    rows
}

/// All figures of each table, and the duration of each stage.
fn figures(record: &RunRecord) -> ResultRows {
    let mut rows = ResultRows::new(&["what", "value"]);
    for load in &record.loads {
        let stats = &load.stats;
        rows.fact("table", json!(load.table));

        let state = if load.version == load.before {
            format!("{} (nothing new)", load.version)
        } else {
            format!("{} (was {})", load.version, load.before)
        };
        rows.fact("version", json!(state));

        for state in STATES {
            let inputs = load.count(state);
            if inputs > 0 {
                rows.fact(&format!("inputs {}", state.name()), json!(inputs));
            }
        }
        for input in load.inputs.iter().filter(|input| input.state != InputState::New) {
            rows.fact(&format!("  {}", input.state.name()), json!(input.path));
        }

        rows.fact("rows read", json!(stats.rows_read));
        if stats.rows_filtered > 0 {
            rows.fact("rows filtered", json!(stats.rows_filtered));
        }
        if stats.rows_owed > 0 {
            rows.fact("rows owed", json!(stats.rows_owed));
        }
        if stats.rows_settled > 0 {
            rows.fact("rows settled", json!(stats.rows_settled));
        }

        rows.fact("rows rejected", json!(stats.rows_rejected));
        if let Some(EmptyRow { file, line: at }) = &stats.first_empty {
            rows.fact("rows without a value", json!(format!("{} (first: {file}, line {at})", stats.rows_empty)));
        }
        if stats.repeated_times > 0 {
            rows.fact("local times that occur twice", json!(stats.repeated_times));
        }
        if stats.cut_times > 0 {
            rows.fact("times cut to microseconds", json!(stats.cut_times));
        }
        if stats.nan_values > 0 {
            rows.fact("NaN taken as null", json!(stats.nan_values));
        }

        rows.fact("rows written", json!(stats.rows_written));
        rows.fact("cells written", json!(stats.cells));
        if stats.written_over() > 0 {
            rows.fact("cells written over", json!(stats.written_over()));
        }
        if stats.large_rows > 0 {
            rows.fact("rows over 100 MB", json!(stats.large_rows));
        }
        if let Some(LargestRow { key, bytes: size }) = &stats.largest_row {
            rows.fact("largest row", json!(format!("{key} ({})", bytes(*size))));
        }
        if stats.large_cells > 0 {
            rows.fact("cells over 10 MB", json!(stats.large_cells));
        }

        rows.fact("bytes in", json!(bytes(stats.bytes_in)));
        rows.fact("bytes out", json!(bytes(stats.bytes_out)));
        if stats.cells > 0 {
            rows.fact("bytes a cell", json!(format!("{:.3}", stats.bytes_out as f64 / stats.cells as f64)));
        }
    }

    if !record.attempts.is_empty() {
        rows.fact("new attempts", json!(record.attempts.len()));
    }

    let totals = record.totals();
    for (stage, seconds) in &record.seconds {
        rows.fact(&format!("seconds {stage}"), json!(format!("{seconds:.3}")));
        if stage == "load" && totals.cells > 0 {
            // Sums over cores, so these may exceed the total.
            let steps = [
                ("waiting for inputs", totals.read),
                ("parsing", totals.parse),
                ("sorting", totals.sort),
                ("encoding", totals.encode),
                ("writing", totals.write),
            ];
            for (step, time) in steps {
                rows.fact(&format!("  {step}"), json!(format!("{:.3}", time.as_secs_f64())));
            }
        }
    }
    rows
}

/// Counts parts, of one export with the noun for their period: `3 days`, `1 month`, `6 parts of 3 exports`.
pub(crate) fn parts(job: &Job, record: &RunRecord, of: impl Fn(PartState) -> bool) -> String {
    let parts: Vec<&str> =
        record.exports.iter().filter(|part| of(part.state)).map(|part| part.export.as_str()).collect();
    let exports: BTreeSet<&str> = parts.iter().copied().collect();
    match exports.first() {
        Some(only) if exports.len() == 1 => count(parts.len() as u64, noun(Some(job), only)),
        _ => format!("{} of {}", count(parts.len() as u64, "part"), count(exports.len() as u64, "export")),
    }
}

/// The noun for a part of an export.
fn noun(job: Option<&Job>, export: &str) -> &'static str {
    match job.and_then(|job| job.export(export)).map(|export| export.per) {
        Some(Per::Day) => "day",
        Some(Per::Hour) => "hour",
        Some(Per::Month) => "month",
        Some(Per::Query) => "table",
        None => "part",
    }
}

fn shown_seconds(seconds: f64) -> String {
    format!("{seconds:.2}")
}

/// A line for each export and what was done to its parts.
fn exports(job: Option<&Job>, record: &RunRecord, out: &mut impl Write) -> Result<(), CliError> {
    let mut names: Vec<&str> = record.exports.iter().map(|part| part.export.as_str()).collect();
    names.dedup();
    for name in names {
        for (state, done) in [
            (PartState::Published, "published"),
            (PartState::Withdrawn, "withdrew"),
            (PartState::Unchanged, "unchanged"),
        ] {
            // Who asks for parts again wants to know that they were made.
            let asked_again = record.asked.force || record.asked.rebuild || record.asked.parts.is_some();
            if state == PartState::Unchanged && !asked_again {
                continue;
            }
            let parts = record.exports.iter().filter(|part| part.export == name && part.state == state);
            let parts: Vec<&ExportRecord> = parts.collect();
            if let (Some(first), Some(last)) = (parts.first(), parts.last()) {
                let number = parts.len() as u64;
                let until = if number > 1 { format!(" to exports/{}", last.part) } else { String::new() };
                let (days, apart) = (count(number, noun(job, name)), days_apart(&parts));
                writeln!(out, "{done} {name}: {days}, exports/{}{until}{apart}", first.part)?;
            }
        }
    }
    Ok(())
}

/// The days of `parts` in brackets, if they are days that do not follow each other: `first to last` would name others, too.
fn days_apart(parts: &[&ExportRecord]) -> String {
    let labels: Vec<&str> = parts.iter().map(|part| part.label.as_str()).collect();
    let are_days = labels.iter().all(|label| label.parse::<NaiveDate>().is_ok());
    let ranges = ranges(&labels);
    if are_days && ranges.contains(", ") { format!(" ({ranges})") } else { String::new() }
}

/// Failed checks and unpublished days.
fn checks(record: &RunRecord, out: &mut impl Write) -> Result<(), CliError> {
    let failed = record.checks.iter().filter(|check| !check.passed);
    for checks in grouped(failed, |a, b| (&a.check, &a.on, &a.rule) == (&b.check, &b.on, &b.rule)) {
        let Some(CheckRecord { check, on, rule, severity, .. }) = checks.first() else { continue };
        let severity = match severity {
            Severity::Error => "check",
            Severity::Warn => "warning: check",
        };
        if checks.len() > EACH {
            let labels: Vec<&str> = checks.iter().map(|check| check.label.as_str()).collect();
            let number = labels.len();
            writeln!(out, "{severity} {check} failed for {number} parts of {on}: {rule}: {}", ranges(&labels))?;
            continue;
        }
        for CheckRecord { label, measured, .. } in checks {
            writeln!(out, "{severity} {check} failed for {on} of {label}: {rule}: {measured}")?;
        }
    }

    let failed = record.exports.iter().filter(|part| part.state == PartState::Failed);
    for parts in grouped(failed, |a, b| a.export == b.export && cause(a) == cause(b)) {
        if let (Some(ExportRecord { export, error, .. }), true) = (parts.first(), parts.len() > EACH) {
            let labels: Vec<&str> = parts.iter().map(|part| part.label.as_str()).collect();
            let (number, error) = (labels.len(), error.as_deref().unwrap_or_default());
            writeln!(out, "not published: {number} parts of {export}, {}: {error}", ranges(&labels))?;
            continue;
        }
        for part in parts {
            writeln!(out, "not published: {}: {}", part.part, part.error.as_deref().unwrap_or_default())?;
        }
    }
    Ok(())
}

/// The error of a part without its name, which is that of many parts on a full disk.
fn cause(part: &ExportRecord) -> String {
    part.error.as_deref().unwrap_or_default().replace(&part.part, "..")
}

/// Most failures of one kind that get a line each.
const EACH: usize = 5;

/// Items in groups of those that are alike, in order of their first.
fn grouped<'a, T>(items: impl Iterator<Item = &'a T>, are_alike: impl Fn(&&'a T, &&'a T) -> bool) -> Vec<Vec<&'a T>> {
    let mut groups: Vec<Vec<&T>> = Vec::new();
    for item in items {
        match groups.iter_mut().find(|group| group.first().is_some_and(|first| are_alike(first, &item))) {
            Some(group) => group.push(item),
            None => groups.push(vec![item]),
        }
    }
    groups
}

fn rejected(report: &RunReport, out: &mut impl Write) -> Result<(), CliError> {
    for load in &report.record.loads {
        if let Some(path) = &load.rejected {
            let rows = count(load.stats.rows_rejected, "row");
            writeln!(out, "rejected {rows} of the query of {}, all in {path}", load.table)?;
        }
    }
    let Some(path) = &report.record.rejected else { return Ok(()) };
    let (rows, job) = (count(report.record.rows_rejected, "row"), &report.record.job);
    writeln!(out, "rejected {rows}, which `tidetable rejects {job}` shows (in {path} of the root):")?;
    let several = report.record.loads.len() > 1;
    for RejectedRow { file, table, line, column, reason, raw } in &report.rejected {
        let table = table.as_ref().filter(|_| several).map(|table| format!(" not for {table}:")).unwrap_or_default();
        let column = column.as_ref().map(|column| format!(" {column}:")).unwrap_or_default();
        writeln!(out, "  {file}:{line}:{table}{column} {reason}: {}", shown_text(raw).escape_debug())?;
    }
    Ok(())
}

/// Commands that look at what was loaded: by `just` where it built this command, and in the root that was given.
fn next_steps(project: &Project, job: &Job, record: &RunRecord, out: &mut impl Write) -> Result<(), CliError> {
    let folder = std::env::current_exe().ok().and_then(|path| path.parent().map(Path::to_owned));
    let just = project.dir.join("justfile").is_file() && folder.is_some_and(|folder| folder.ends_with("debug"));
    // Those of the command itself get its place where they are written.
    let place = if just { hints::place() } else { "" };
    let (sql, tidetable) = if just { ("just sql", "just tidetable") } else { ("tidetable sql", "tidetable") };

    let Some(table) = job.tables.first().map(|table| &table.spec.name) else { return Ok(()) };
    writeln!(out, "\nTry next:")?;
    writeln!(out, "  {sql} {place}-c 'select * from {} limit 5'", quoted(table))?;
    writeln!(out, "  {tidetable} {place}read {table} --limit 1")?;
    if let Some(part) =
        record.exports.iter().rfind(|part| matches!(part.state, PartState::Published | PartState::Unchanged))
    {
        writeln!(out, "  {sql} {place}-c 'select * from exports.{} limit 5'", quoted(&part.part))?;
    }
    Ok(())
}

/// Quotes a name for SQL.
pub(crate) fn quoted(name: &str) -> String {
    let plain = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if plain && !name.starts_with(|c: char| c.is_ascii_digit()) { name.to_owned() } else { format!("\"{name}\"") }
}
