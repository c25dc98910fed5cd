//! `tidetable rejects`: the rejected rows of a run, with reasons.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;

use serde_json::json;
use tidetable_ingest::RejectedRow;
use tidetable_job::Project;
use tidetable_runner::record::{InputState, RunRecord, Runs, rejected_rows};
use tidetable_source::{Format, is_url, shown_text};
use tidetable_store::Store;

use crate::args::{Global, Output, Rejects};
use crate::commands::{find_run, project_if_any, store};
use crate::diagnostics::print_message;
use crate::error::CliError;
use crate::objects;
use crate::objects::write_object;
use crate::output::values::count;
use crate::output::{FILES_OF_SQL, ResultRows, row, sentences};

/// Longest header; a longer first line is none.
const LONGEST_HEADER: u64 = 1 << 20;
/// Bytes of a row that are kept.
const KEPT: usize = 1 << 20;

/// Shows the rejected rows of a run: of one that is named all, else those whose input was not read again since.
pub fn rejects(global: &Global, args: &Rejects) -> Result<(), CliError> {
    let store = store(global)?;
    let mut out = sentences(global.output);
    let found = find(&store, args)?;
    if found.read_again > 0 {
        let rows = count(found.read_again, "row");
        let shown = if args.run.is_some() { "shown too" } else { "not shown" };
        print_message(global, &format!("{shown}: {rows} of inputs that were read again since"));
    }

    let Some(record) = found.record else {
        let none = if found.read_again > 0 { "no row of" } else { "no run of" };
        let what = if found.read_again > 0 { "is still rejected" } else { "has rejected rows" };
        print_message(global, &format!("{none} {} {what}", args.job));
        return Ok(());
    };

    let mut rows = found.rows;
    if rows.is_empty() && record.all_rejected() > 0 {
        print_message(global, &format!("warning: the rejected rows of run {} were cleaned away", record.run));
    }
    if let Some(file) = &args.file {
        rows.retain(|row| row.file == *file);
    }

    match global.output {
        Output::Json => {
            for row in &rows {
                let mut stored = json!(row);
                (stored["run"], stored["job"]) = (json!(record.run), json!(record.job));
                write_object(&mut out, stored, objects::REJECTS)?;
            }
        }
        Output::Csv => raw(global, project_if_any(global)?.as_ref(), &rows, &mut out)?,
        Output::Parquet | Output::Arrow | Output::Arrows => return Err(CliError::Usage(FILES_OF_SQL)),
        output => table(output, &record, &rows, args.limit, &mut out)?,
    }

    out.flush()?;
    Ok(())
}

/// Rejected rows of a run.
#[derive(Default)]
struct Found {
    /// The run; `None` if no row is rejected.
    record: Option<RunRecord>,
    rows: Vec<RejectedRow>,
    /// Rows that this run and later ones rejected, and whose inputs were read again since.
    read_again: u64,
}

/// The rows of the given run, or of the last run of the job with rows that are still rejected.
fn find(store: &Store, args: &Rejects) -> Result<Found, CliError> {
    let blobs = store.blobs().as_ref();
    let runs = Runs::of(blobs);
    let wanted = match &args.run {
        None => None,
        Some(run) => {
            let record = if run == "last" { runs.last(&args.job)? } else { Some(find_run(store, run)?) };
            let record = record.filter(|record| record.job == args.job);
            Some(record.ok_or_else(|| CliError::NoRun { run: run.clone() })?)
        }
    };

    let mut jobs = BTreeSet::new();
    let mut found = Found::default();
    let mut read_since = BTreeSet::new();
    for record in runs.readable(None)? {
        if record.job != args.job {
            jobs.insert(record.job);
            continue;
        }

        let is_wanted = wanted.as_ref().is_none_or(|wanted| wanted.run == record.run);
        if is_wanted && (wanted.is_some() || record.all_rejected() > 0) {
            let mut rows = rejected_rows(blobs, &record)?;
            let all = rows.len();
            let is_current = |row: &RejectedRow| !read_since.contains(&row.file);
            found.read_again += rows.iter().filter(|row| !is_current(row)).count() as u64;
            if wanted.is_none() {
                rows.retain(is_current);
            }
            if wanted.is_some() || all == 0 || !rows.is_empty() {
                return Ok(Found { record: Some(record), rows, ..found });
            }
        }

        read_since.extend(read_again(&record));
        add_former_names(&record, &mut read_since);
        jobs.insert(record.job);
    }

    if wanted.is_some() || jobs.contains(&args.job) {
        return Ok(found);
    }
    let known = jobs.into_iter().collect::<Vec<_>>().join(", ");
    Err(CliError::NoJob { job: args.job.clone(), known })
}

/// Adds the names that inputs of `read_since` had before this run.
fn add_former_names(record: &RunRecord, read_since: &mut BTreeSet<String>) {
    for input in record.loads.iter().flat_map(|load| &load.inputs) {
        let is_renamed = matches!(input.state, InputState::Renamed | InputState::Grown);
        if let Some(before) = input.same_as.as_ref().filter(|_| is_renamed && read_since.contains(&input.path)) {
            read_since.insert(before.clone());
        }
    }
}

/// The inputs that a run read as a whole or removed: rows that were rejected of them before are rejected no more, or by
/// this run.
fn read_again(record: &RunRecord) -> impl Iterator<Item = String> {
    let committed = record.loads.iter().filter(|load| load.version != load.before);
    let inputs = committed.flat_map(|load| &load.inputs);
    let replaced = inputs.filter(|input| {
        matches!(
            input.state,
            InputState::New | InputState::Changed | InputState::ReadAgain | InputState::TakenOut | InputState::LeftOut
        )
    });
    replaced.map(|input| input.path.clone())
}

fn table(
    output: Output,
    record: &RunRecord,
    rows: &[RejectedRow],
    limit: usize,
    out: &mut impl Write,
) -> Result<(), CliError> {
    let mut shown = ResultRows::new(&["file", "line", "table", "column", "reason", "raw"]).below(&["reason", "raw"]);
    let limit = if limit == 0 { usize::MAX } else { limit };
    for RejectedRow { file, table, line, column, reason, raw } in rows.iter().take(limit) {
        let raw = if output == Output::Table { shown_text(raw) } else { raw.clone() };
        shown.push(row![file, line, table, column, reason, raw]);
    }
    shown.write(output, out)?;

    let mut reasons: BTreeMap<(String, &str), u64> = BTreeMap::new();
    for row in rows {
        *reasons.entry((without_values(&row.reason), row.column.as_deref().unwrap_or_default())).or_default() += 1;
    }

    writeln!(out, "run {}: {}", record.run, count(rows.len() as u64, "rejected row"))?;
    for ((reason, column), number) in reasons {
        let column = if column.is_empty() { String::new() } else { format!("{column}: ") };
        writeln!(out, "  {}: {column}{reason}", count(number, "row"))?;
    }

    if rows.len() > limit {
        writeln!(out, "and {} more: --limit 0 shows all", count((rows.len() - limit) as u64, "row"))?;
    }
    Ok(())
}

/// A reason without the values that vary by row: text in double quotes.
fn without_values(reason: &str) -> String {
    reason.split('"').enumerate().map(|(at, part)| if at % 2 == 0 { part } else { "\"..\"" }).collect()
}

/// The rows as in their inputs, below the header of the inputs.
fn raw(global: &Global, project: Option<&Project>, rows: &[RejectedRow], out: &mut impl Write) -> Result<(), CliError> {
    let files: BTreeSet<&str> = rows.iter().map(|row| row.file.as_str()).collect();
    let headers: BTreeSet<String> = files.iter().filter_map(|file| header(project?, file)).collect();
    if headers.len() > 1 {
        return Err(CliError::Usage(
            "these rows are of inputs with different headers: take those of one with --file FILE",
        ));
    }
    if headers.is_empty() && !rows.is_empty() {
        print_message(global, &no_header(project, &files));
    }

    for header in headers {
        writeln!(out, "{header}")?;
    }

    // A row that two tables rejected is one row of its file.
    let mut seen = BTreeSet::new();
    let mut cut = 0;
    for row in rows.iter().filter(|row| seen.insert((row.file.as_str(), row.line))) {
        cut += u64::from(row.raw.len() >= KEPT - 3);
        writeln!(out, "{}", row.raw)?;
    }

    if cut > 0 {
        print_message(global, &format!("warning: {} cut: of a row 1 MiB is kept", count(cut, "row")));
    }
    Ok(())
}

/// Why the rows of `files` are written without a header.
fn no_header(project: Option<&Project>, files: &BTreeSet<&str>) -> String {
    let why = match project {
        None => {
            "there is no project here, and the names of inputs are relative to one: add -C DIR with the folder of tidetable.toml"
        }
        Some(_) if files.iter().any(|file| is_url(file)) => "their inputs are in a bucket: take it from one of them",
        Some(project) if files.iter().any(|file| Path::new(&project.resolve(file)).exists()) => {
            "their inputs have none in plain text"
        }
        Some(_) => "their inputs are not there",
    };
    format!("warning: no header is written: {why}")
}

/// The first line of a local text input that has a header.
fn header(project: &Project, file: &str) -> Option<String> {
    let is_plain =
        !Format::is_compressed_name(file) && Format::of_name(file).is_none_or(|format| format == Format::Csv);
    let path = project.resolve(file);
    let file = std::fs::File::open(path).ok().filter(|_| is_plain)?;
    let mut line = String::new();
    BufReader::new(file).take(LONGEST_HEADER).read_line(&mut line).ok()?;
    let line = line.trim_start_matches('\u{feff}').trim_end_matches(['\r', '\n']);
    (!line.is_empty()).then(|| line.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_counted_without_their_values() {
        assert_eq!(without_values("\"soon\" is no time"), "\"..\" is no time");
        assert_eq!(without_values("it is null"), "it is null");
    }
}
