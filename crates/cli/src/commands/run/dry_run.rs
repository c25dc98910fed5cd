//! The plan of a run as rows.

use std::collections::BTreeMap;
use std::io::Write;

use serde_json::{Value, json};
use tidetable_runner::Plan;
use tidetable_runner::plan::{PlannedInput, owed_notes};
use tidetable_runner::record::InputState;

use crate::args::{Global, Output};
use crate::diagnostics::print_message;
use crate::error::CliError;
use crate::objects;
use crate::output::values::bytes;
use crate::output::{ResultRows, row, sentences};

/// Writes a plan to standard output.
pub fn show(global: &Global, plan: &Plan) -> Result<(), CliError> {
    let mut out = sentences(global.output);
    rows(plan, global).write(global.output, &mut out)?;
    plan.notes.iter().for_each(|note| print_message(global, note));
    for table in &plan.tables {
        let rows = table.rows_to_remove;
        owed_notes(&table.table, &table.owed, &table.to_remove, rows)
            .iter()
            .for_each(|note| print_message(global, note));
    }
    if global.output == Output::Table && plan.is_empty() {
        let owes = plan.tables.iter().any(|table| !table.owed.is_empty());
        let why = match owes {
            true => "a run ends with exit code 4 until the owed windows are settled",
            false => "everything is as the last run left it",
        };
        writeln!(out, "{}: nothing to do: {why}", plan.job)?;
    }
    out.flush()?;
    Ok(())
}

/// A row for each table, changed input, part to publish, and table to push.
fn rows(plan: &Plan, global: &Global) -> ResultRows {
    let output = global.output;
    let mut rows = ResultRows::of(objects::PLAN).below(&["why"]).minor(&["bytes", "of"]);
    for table in &plan.tables {
        let why = table.reason.map_or("up to date", |reason| reason.name());
        let days = if table.reason.is_some() { table.days.to_string() } else { String::new() };
        rows.push(row!["table", table.table, plan.job, why, days, size(table.bytes, output)]);
        let (gone, others): (Vec<_>, Vec<_>) = match output {
            Output::Table => {
                // Of inputs that were rotated away the last run has told, and the next has nothing to do with them.
                let is_past = |input: &PlannedInput| input.state == InputState::Gone && input.is_told;
                let listed = table.inputs.iter().filter(|input| global.verbose || !is_past(input));
                listed.partition(|input| input.state == InputState::Gone)
            }
            _ => (Vec::new(), table.inputs.iter().collect()),
        };
        let gone = gone.into_iter().map(|input| (input.path.as_str(), input.bytes));
        for (what, bytes) in by_folder(gone) {
            rows.push(row!["input", what, table.table, InputState::Gone.name(), "", size(bytes, output)]);
        }
        for input in others {
            let touches = !matches!(input.state, InputState::SameContent | InputState::Gone | InputState::Empty);
            let days = if touches { input.days.to_string() } else { String::new() };
            rows.push(row!["input", input.path, table.table, input.state.name(), days, size(input.bytes, output)]);
        }
    }

    for table in &plan.tables {
        for owed in &table.owed {
            let why = format!("stays as it is: {} gone", owed.gone.join(", "));
            rows.push(row!["owed", owed.window, table.table, why, "", ()]);
        }
    }

    for export in &plan.exports {
        for part in &export.parts {
            rows.push(row!["publish", part.part, export.export, part.reason, part.label, ()]);
        }
        for part in &export.sealed {
            let why = "stays as it is, --force publishes it";
            rows.push(row!["sealed", part.part, export.export, why, part.label, ()]);
        }
        for part in &export.owed {
            let why = "unchanged: one of its windows lost cells";
            rows.push(row!["owed", part.part, export.export, why, part.label, ()]);
        }
        if export.unknown {
            let why = "days of inputs not yet read";
            rows.push(row!["publish", export.export, plan.job, why, "unknown until read", ()]);
        }
    }

    for checks in &plan.checks {
        for day in &checks.days {
            rows.push(row!["check", checks.table, plan.job, "its checks failed", day, ()]);
        }
    }
    for push in &plan.pushes {
        rows.push(row!["push", push.target, push.table, push.reason, "", ()]);
    }
    rows
}

/// Paths with their sizes, those of a folder as one: `in/ (22 files)`.
fn by_folder<'a>(paths: impl Iterator<Item = (&'a str, u64)>) -> Vec<(String, u64)> {
    let mut folders: BTreeMap<&str, Vec<(&str, u64)>> = BTreeMap::new();
    for (path, bytes) in paths {
        let folder = path.rfind('/').map_or("", |slash| &path[..=slash]);
        folders.entry(folder).or_default().push((path, bytes));
    }

    let row = |(folder, paths): (&str, Vec<(&str, u64)>)| {
        let bytes = paths.iter().map(|(_, bytes)| bytes).sum();
        match paths.as_slice() {
            [(path, _)] => ((*path).to_owned(), bytes),
            _ => (format!("{folder} ({} files)", paths.len()).trim_start().to_owned(), bytes),
        }
    };
    folders.into_iter().map(row).collect()
}

/// A size in bytes: a number for programs, text with a unit for people, null for 0.
fn size(number: u64, output: Output) -> Value {
    match output {
        _ if number == 0 => Value::Null,
        Output::Json | Output::Csv => json!(number),
        _ => json!(bytes(number)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_a_folder_are_one_row() {
        let paths = [("in/a.csv", 1), ("in/b.csv", 2), ("late/c.csv", 4), ("x.csv", 8), ("y.csv", 16)];
        let rows = [("(2 files)", 24), ("in/ (2 files)", 3), ("late/c.csv", 4)];
        assert_eq!(by_folder(paths.into_iter()), rows.map(|(what, bytes)| (what.to_owned(), bytes)));
    }
}
