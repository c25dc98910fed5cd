//! `tidetable run`: runs a job and tells what it made.

use std::io::Write;

use chrono::NaiveDate;
use serde_json::{Value, json};
use tidetable_runner::{Job, Project, RunOptions, RunRecord, RunReport, UlidIds, run as run_job};
use tidetable_store::{Ids, LargestRow, RejectedRow, ulid_text};

use super::project;
use crate::args::{Global, Output, Run};
use crate::error::CliError;
use crate::output::{Rows, stdout};
use crate::progress::{Watcher, bytes, count};

/// Runs the job.
pub fn run(global: &Global, args: &Run) -> Result<(), CliError> {
    let project = project(global)?;
    let job = Job::load(&project, &args.job)?;
    let ids = UlidIds::default();
    let options = RunOptions {
        days: days(args)?,
        now: args.now.unwrap_or_else(|| chrono::Utc::now().timestamp_micros()),
        run: ulid_text(ids.next()),
        rebuild: args.rebuild,
        without: args.without.clone(),
        memory: args.memory,
    };
    let watcher = Watcher::new(global.log);
    let report = run_job(&project, &job, &options, &ids, &watcher);
    watcher.finish();
    show(global, &project, &job, &report?)
}

fn days(args: &Run) -> Result<Option<std::ops::RangeInclusive<NaiveDate>>, CliError> {
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
        Output::Csv => summary(&report.record).write(Output::Csv, &mut out)?,
        Output::Table => {
            summary(&report.record).write(Output::Table, &mut out)?;
            exports(&report.record, &mut out)?;
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
        for (name, state) in [("new", "new"), ("changed", "changed"), ("unchanged", "unchanged"), ("gone", "gone")] {
            let inputs = load.inputs.iter().filter(|input| input.state == state).count();
            if inputs > 0 {
                line(&format!("inputs {name}"), json!(inputs));
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
        let parts = || record.exports.iter().filter(|part| part.export == name && part.state == "published");
        if let (Some(first), Some(last)) = (parts().next(), parts().next_back()) {
            let days = count(parts().count() as u64, "day");
            writeln!(out, "published {name}: {days}, exports/{} to exports/{}", first.part, last.part)?;
        }
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
    if let Some(part) = record.exports.iter().rfind(|part| part.state != "empty") {
        writeln!(out, "  {sql} -c 'select * from exports.{} limit 5'", quoted(&part.part))?;
    }
    Ok(())
}

/// A name as SQL takes it.
fn quoted(name: &str) -> String {
    let plain = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if plain && !name.starts_with(|c: char| c.is_ascii_digit()) { name.to_owned() } else { format!("\"{name}\"") }
}
