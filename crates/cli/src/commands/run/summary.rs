//! What `tidetable run` shows of a run that has ended.

use std::io::Write;

use serde_json::{Value, json};
use tidetable_runner::{InputState, Job, PartState, Project, RunRecord, RunReport, Severity};
use tidetable_store::{LargestRow, RejectedRow};

use crate::args::{Global, Output};
use crate::error::CliError;
use crate::output::{Rows, stdout};
use crate::progress::{bytes, count};

/// Writes what a run did to standard output, in the form that was asked for.
pub(super) fn show(global: &Global, project: &Project, job: &Job, report: &RunReport) -> Result<(), CliError> {
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
    if !record.attempts.is_empty() {
        line("new attempts", json!(record.attempts.len()));
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
