//! Windows that a run leaves as they are, in words.

use std::collections::{BTreeMap, HashSet};

use tidetable_job::several;
use tidetable_record::OwedRecord;
use tidetable_store::Version;

use super::days::ranges;
use crate::options::without::{options_for, some};

/// Where the guide tells how to make a missing file of the rows that a table holds.
const FROM_THE_TABLE: &str =
    "(docs/guide/inputs.md, \"Rows of files that are gone\", tells how the table itself gives it)";

/// Notes on windows of `table` that stay as they are, one for each set of missing inputs; `to_remove` are the inputs to
/// remove so that all of them can be rebuilt, and `rows` the most rows that go with them.
pub fn owed_notes(table: &str, owed: &[OwedRecord], to_remove: &[String], rows: u64) -> Vec<String> {
    let mut by_cause: Vec<(&OwedRecord, Vec<&OwedRecord>)> = Vec::new();
    for window in owed {
        let cause = (&window.gone, window.lost);
        match by_cause.iter_mut().find(|(first, _)| (&first.gone, first.lost) == cause) {
            Some((_, windows)) => windows.push(window),
            None => by_cause.push((window, vec![window])),
        }
    }
    by_cause.into_iter().map(|(_, windows)| note(table, &windows, to_remove, rows)).collect()
}

/// The note on windows of `table` that grown inputs owe, although only new rows were appended to them: those of `overtaken`.
/// Cells do not tell which input they come from, so a window that cannot be rebuilt does not tell which of two inputs is later.
pub(crate) fn overtaken_note(table: &str, owed: &[OwedRecord], overtaken: &[String]) -> Option<String> {
    let owes = |window: &OwedRecord, path: &String| window.inputs.iter().any(|input| input.path == *path);
    let inputs: Vec<String> =
        overtaken.iter().filter(|path| owed.iter().any(|window| owes(window, path))).cloned().collect();
    if inputs.is_empty() {
        return None;
    }

    let windows = owed.iter().filter(|window| overtaken.iter().any(|path| owes(window, path)));
    let names: Vec<&str> = windows.map(|window| window.window.as_str()).collect();
    let window = if names.len() == 1 { "window" } else { "windows" };
    Some(format!(
        "{table}: rows appended to {} differ from cells of {window} {} that may come from a later file: which of them counts is \
         known only when all files of the window are read, so its rows there are owed",
        some(&inputs),
        ranges(&names)
    ))
}

/// The most rows of `version` that go with the inputs `paths`: those that were not rejected.
pub fn rows_of(version: &Version, paths: &[String]) -> u64 {
    let paths: HashSet<&String> = paths.iter().collect();
    let inputs = version.inputs.iter().filter(|input| paths.contains(&input.path));
    inputs.map(|input| input.read.saturating_sub(input.rejected)).sum()
}

/// `rows` in words, for the offer of an option that deletes them.
pub fn up_to(rows: u64) -> String {
    match rows {
        1 => "1 row".to_owned(),
        rows => format!("up to {rows} rows"),
    }
}

/// The note on `windows`, which have the same cause.
fn note(table: &str, windows: &[&OwedRecord], to_remove: &[String], rows: u64) -> String {
    let names: Vec<&str> = windows.iter().map(|window| window.window.as_str()).collect();
    let ranges = ranges(&names);
    let (window, stays, them) = match names.len() {
        1 => ("window", "stays as it is", "it"),
        _ => ("windows", "stay as they are", "them"),
    };
    let is_lost = windows.iter().any(|window| window.lost);
    let gone = windows.first().map_or(&[][..], |window| window.gone.as_slice());

    if gone.is_empty() {
        let why = if is_lost { "lost cells with a damaged SST" } else { "could not be rebuilt before" };
        return format!("{table}: {window} {ranges} {why}: the next run rebuilds {them}");
    }
    if gone.iter().all(|name| is_table_window(name)) {
        let missing = some(gone);
        return format!(
            "{table}: {window} {ranges} cannot be rebuilt and {stays}, because {missing} lost cells or cannot be read; the run \
             after that is mended rebuilds {them}"
        );
    }

    let (is, it) = if gone.len() == 1 { ("is", "it") } else { ("are", "them") };
    let (missing, rows, remove) = (some(gone), up_to(rows), without(to_remove));
    if is_lost {
        return format!(
            "{table}: {window} {ranges} lost cells with a damaged SST and cannot be rebuilt, because {missing} {is} missing or empty; \
             days of {them} are not published until then. Put {it} back, restore a backup of before, or remove {rows} for good with {remove}, and run again"
        );
    }

    let owing = owing(windows);
    format!(
        "{table}: {window} {ranges} cannot be rebuilt and {stays}, because {missing} {is} missing or empty; owed there: {owing}. Put {it} \
         back {FROM_THE_TABLE}, or remove {rows} for good with {remove}, and run again"
    )
}

/// Whether the input of a derived table is a window of a table, such as `SENSOR@2020-01-31`, and not a file.
fn is_table_window(name: &str) -> bool {
    name.contains('@') && !name.contains(['/', '.'])
}

/// What inputs owe in some windows, such as `3 rows of in/02.csv`.
fn owing(windows: &[&OwedRecord]) -> String {
    let mut rows: BTreeMap<&str, u64> = BTreeMap::new();
    for input in windows.iter().flat_map(|window| &window.inputs) {
        *rows.entry(&input.path).or_default() += input.rows;
    }

    let rows = rows.into_iter().map(|(path, rows)| match rows {
        0 => format!("the change of {path}"),
        rows => format!("{} of {path}", several(rows, "row")),
    });
    some(&rows.collect::<Vec<_>>())
}

/// The options that remove `paths`.
fn without(paths: &[String]) -> String {
    options_for(paths).unwrap_or_else(|| format!("--without FILE for each of the {} missing inputs", paths.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owed(gone: &[&str], lost: bool) -> OwedRecord {
        let gone = gone.iter().map(|path| (*path).to_owned()).collect();
        OwedRecord { window: "2020-01-01".to_owned(), gone, lost, ..OwedRecord::default() }
    }

    #[test]
    fn a_note_says_why_and_what_to_do() {
        let note = |gone: &[&str], lost| {
            let to_remove: Vec<String> = gone.iter().map(|path| (*path).to_owned()).collect();
            owed_notes("T", &[owed(gone, lost)], &to_remove, 7).concat()
        };
        assert!(note(&["in/a.csv"], false).contains("because in/a.csv is missing or empty; owed there"));
        let lost = note(&["in/a.csv", "in/b.csv"], true);
        assert!(lost.contains("remove up to 7 rows for good with"), "{lost}");
        assert!(lost.contains("lost cells") && lost.contains("--without in/a.csv --without in/b.csv"), "{lost}");
        assert!(note(&[], true).ends_with("lost cells with a damaged SST: the next run rebuilds it"));
        // A window of another table is no file that could be put back or given up.
        let derived = note(&["SENSOR@2020-01-01"], false);
        assert!(derived.contains("lost cells or cannot be read") && !derived.contains("--without"), "{derived}");
    }
}
