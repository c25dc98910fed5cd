//! Files that are not read, or that bring no rows: what the notes of a run say of them.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use tidetable_ingest::ReplacedCells;
use tidetable_job::{Job, Table, several};
use tidetable_layout::Window;
use tidetable_layout::time::{DAY, window_name};
use tidetable_record::{InputState, LoadRecord};
use tidetable_source::{ContentHash, Unread};
use tidetable_store::GcRule;

use crate::plan::ranges;
use crate::run::stages::load::{Pending, PlannedSource};

/// Days of a year.
const YEAR: i32 = 366;

/// Most folders with a note on files without rows.
const FOLDERS: usize = 5;

/// Notes on names that patterns of sources reach and that are not read.
pub(crate) fn unread_notes(sources: &[PlannedSource<'_>]) -> Vec<String> {
    let mut notes = Vec::new();
    for planned in sources {
        let mut unread = planned.unread.clone();
        Unread::retain_unread(&mut unread, sources.iter().map(|planned| &planned.source.spec));
        notes.extend(Unread::notes(&unread));
    }
    notes
}

/// Notes on keys of folders that no column reads, one for each source.
pub(crate) fn folder_notes(sources: &[PlannedSource<'_>]) -> Vec<String> {
    let mut notes = Vec::new();
    for planned in sources {
        let (name, keys) = (&planned.source.spec.name, &planned.undeclared_keys);
        let Some(first) = keys.values().next() else { continue };
        let keys = keys.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
        notes.push(format!(
            "source {name}: folders name values of {keys}, which are not read ({first}); declare them in `columns` to read \
             them"
        ));
    }
    notes
}

/// Notes on patterns without a file. Where a table holds inputs of the source, all of them are gone, which is a warning.
pub(crate) fn unmatched_notes(sources: &[PlannedSource<'_>]) -> Vec<String> {
    let mut notes = Vec::new();
    for PlannedSource { source, tables, unmatched, .. } in sources {
        let are_gone = tables.iter().any(|table| !table.plan.vanished.is_empty());
        for pattern in unmatched {
            let note = format!("source {}: no file matches \"{pattern}\"", source.spec.name);
            notes.push(match are_gone {
                true => format!("warning: {note}, and inputs are gone: put them back, or correct `files`"),
                false => note,
            });
        }
    }
    notes
}

/// A changed input before it changed.
pub(crate) struct Former {
    /// Its accepted rows: one that lost its rejected rows was corrected.
    rows: u64,
    /// The UTC days of its cells.
    days: BTreeSet<i32>,
    hash: ContentHash,
}

/// Changed inputs before they changed, by path.
pub(crate) fn former_inputs(sources: &[PlannedSource<'_>]) -> BTreeMap<String, Former> {
    let mut before: BTreeMap<String, Former> = BTreeMap::new();
    for (file, held) in sources.iter().flat_map(|planned| &planned.tables).flat_map(|table| &table.plan.changed) {
        let rows = held.read.saturating_sub(held.rejected);
        let former = before.entry(file.path.clone()).or_insert(Former { rows, days: BTreeSet::new(), hash: held.hash });
        former.days.extend(&held.days);
    }
    before
}

/// Warnings of changed inputs that lost rows: a file that has fewer looks like a correction, and so does a name that was used
/// again for other days.
pub(crate) fn lost_rows_notes(before: &BTreeMap<String, Former>, loads: &[Pending]) -> Vec<String> {
    let mut now: BTreeMap<&str, (u64, BTreeSet<i32>)> = BTreeMap::new();
    let mut contents = HashSet::new();
    for input in loads.iter().flat_map(Pending::inputs) {
        contents.insert(input.hash);
        let (rows, days) = now.entry(&input.path).or_default();
        *rows = (*rows).max(input.read);
        days.extend(&input.days);
    }

    let mut notes = Vec::new();
    for (path, (rows, days)) in now {
        let Some(former) = before.get(path).filter(|_| rows > 0) else { continue };
        let has_other_days = !days.is_empty() && former.days.is_disjoint(&days);
        if has_other_days && !former.days.is_empty() && !contents.contains(&former.hash) {
            let lost: Vec<String> = former.days.iter().copied().map(day_name).collect();
            notes.push(format!(
                "warning: {path} has rows of other days than it had: those of {} are removed. If its name was used again for \
                 other rows, as by a rotation of files, put the former ones back under a name of their own",
                ranges(&lost.iter().map(String::as_str).collect::<Vec<_>>())
            ));
        } else if rows < former.rows {
            notes.push(format!(
                "warning: {path} has {rows} of the {} rows that it had; if it was cut short, put the whole file back",
                former.rows
            ));
        }
    }
    notes
}

fn day_name(day: i32) -> String {
    window_name(Window::Day, i64::from(day) * DAY)
}

/// Warnings of rows that gave other values to cells of rows of the same load, where it read several files. A table of the newest
/// rows replaces them on purpose.
pub(crate) fn replaced_notes(job: &Job, loads: &[Pending]) -> Vec<String> {
    let mut notes = Vec::new();
    for load in loads {
        let (table, cells) = (&load.record.table, load.record.stats.overwritten_changed);
        let is_upsert = job.tables.iter().any(|known| known.spec.name == *table && known.spec.upsert);
        let files = load.inputs_read().filter(|input| input.read > input.rejected).count();
        if cells == 0 || files < 2 || is_upsert || is_corrected(load) {
            continue;
        }

        let (cells, were) = (several(cells, "cell"), if cells == 1 { "was" } else { "were" });
        let row = such_as_row(load.record.stats.changed_in_row.as_deref());
        // The second of two hours with the same local times replaces the first, in one file, too.
        let clocks = match load.record.stats.repeated_times {
            0 => String::new(),
            times => format!(
                " {} twice, because the clocks go back: rows at these replace each other, unless the column of the time has \
                 `ambiguous = \"by-order\"`.",
                occur(times)
            ),
        };
        notes.push(format!(
            "warning: {table}: {cells} {were} replaced by other values of later rows of the {files} files with the \
             same key and time{row}: of files that come together, the one with the last name wins.{clocks} If these are other \
             readings, name a column in `row_key` that tells them apart"
        ));
    }
    notes
}

/// Warnings of readings that a rule on versions hides as soon as they are loaded: a template prints several of them alike.
pub(crate) fn hidden_versions_notes(loads: &[Pending]) -> Vec<String> {
    let mut notes = Vec::new();
    for LoadRecord { table, stats, .. } in loads.iter().map(|load| &load.record) {
        let Some(row) = &stats.hidden_in_row else { continue };
        let (cells, are) =
            (several(stats.hidden_versions, "cell"), if stats.hidden_versions == 1 { "is" } else { "are" });
        notes.push(format!(
            "warning: {table}: {cells} {are} hidden by newer ones of the same row and column, as `gc` keeps no more versions: \
             readings at these times print alike in row key and qualifier. The first is in row {row}. Show the time more finely \
             there, such as {{ts:%H%M%S}}, or set `gc = \"never\"`, which shows all of them again"
        ));
    }
    notes
}

/// Warnings of cells that are older at `now`, microseconds since the epoch, than a family of their table keeps them.
pub(crate) fn expired_notes(job: &Job, loads: &[Pending], now: i64) -> Vec<String> {
    let mut notes = Vec::new();
    for load in loads {
        let name = &load.record.table;
        let rules = job.table(name).into_iter().flat_map(|table| &table.gc);
        let ages = rules.filter_map(|(family, rule)| Some((GcRule::parse(rule).ok()?.age_of_newest()?, family, rule)));
        let (Some((age, family, rule)), Some(oldest)) = (ages.min_by_key(|(age, ..)| *age), load.oldest()) else {
            continue;
        };
        let Ok(day) = i32::try_from(oldest.div_euclid(DAY)) else { continue };

        if oldest < now.saturating_sub(age) {
            let file = load.inputs_read().find(|input| input.days.contains(&day));
            let of_file = file.map_or(String::new(), |input| format!(" of {}", input.path));
            notes.push(format!(
                "warning: {name}: readings{of_file} of {} are older than family {family} keeps them (`gc = \"{rule}\"`): queries \
                 do not show them",
                day_name(day)
            ));
        }
    }
    notes
}

/// How many local times occur.
pub(crate) fn occur(times: u64) -> String {
    if times == 1 { "1 local time occurs".to_owned() } else { format!("{times} local times occur") }
}

/// The warning of gone inputs that were parts of exports of this store: their names, ascending. `None` without any.
pub(crate) fn withdrawn_note(withdrawn: &BTreeSet<&str>) -> Option<String> {
    let first = withdrawn.first()?;
    let (others, are) = match withdrawn.len() - 1 {
        0 => (String::new(), "is"),
        others => (format!(" and {} of exports", several(others as u64, "other file")), "are"),
    };
    Some(format!(
        "warning: {first}{others}, published before, {are} withdrawn: the rows stay in the tables of this job; run with --without and \
         the name to take them out"
    ))
}

/// Warnings of derived tables in which windows gave other values to cells of each other. Rows of an upsert do so by intention.
pub(crate) fn split_groups_notes(table: &Table, loads: &[Pending]) -> Vec<String> {
    let cells: u64 = loads.iter().map(|load| load.record.stats.overwritten_changed).sum();
    if cells == 0 || table.spec.upsert {
        return Vec::new();
    }

    let (cells, were) = (several(cells, "cell"), if cells == 1 { "was" } else { "were" });
    vec![format!(
        "warning: {}: {cells} {were} replaced by other values of a later window: the query is asked for each window of the tables that \
         it reads, so a group that lies in two comes in parts, and the last part stays. Group within windows (days are those of \
         UTC), or give these tables longer ones",
        table.spec.name
    )]
}

/// Whether a load reads a corrected file, which replaces rows by intention.
fn is_corrected(load: &Pending) -> bool {
    let mut inputs = load.record.inputs.iter();
    inputs.any(|input| matches!(input.state, InputState::Changed | InputState::ReadAgain))
}

/// Warnings of new inputs whose rows gave other values to cells of earlier runs. Corrected and grown inputs do so by
/// intention.
pub(crate) fn replaced_before_notes(loads: &[Pending]) -> Vec<String> {
    let mut notes = Vec::new();
    for LoadRecord { table, stats, .. } in loads.iter().map(|load| &load.record) {
        let Some(ReplacedCells { changed, in_row, by, of, .. }) = &stats.replaced else { continue };
        if *changed == 0 || by.is_empty() || of.is_empty() {
            continue;
        }

        let (cells, were) = (several(*changed, "cell"), if *changed == 1 { "was" } else { "were" });
        let row = such_as_row(in_row.as_deref());
        notes.push(format!(
            "warning: {table}: {cells} of earlier runs {were} replaced by rows of {} with the same key and time and \
             other values{row}. They came from {}. If these are other readings, name a column in `row_key` that tells \
             them apart, and run with --rebuild",
            one_of(by),
            one_of(of)
        ));
    }
    notes
}

/// The row of one of several cells, for a sentence about them. Its key may have line ends.
fn such_as_row(key: Option<&str>) -> String {
    let Some(key) = key else { return String::new() };
    let mut text = String::from(", such as in row ");
    for character in key.chars() {
        match character.is_control() {
            true => text.extend(character.escape_default()),
            false => text.push(character),
        }
    }
    text
}

/// The first of `files`, and how many others there are.
fn one_of(files: &[String]) -> String {
    match files {
        [] => String::new(),
        [file] => file.clone(),
        [first, second] => format!("{first} or {second}"),
        [first, rest @ ..] => format!("{first} or {}", several(rest.len() as u64, "other")),
    }
}

/// The note on inputs with event times in the future of `clock`: it names the latest. More than a year ahead it is a warning:
/// few forecasts go so far.
pub(crate) fn future_note(loads: &[Pending], clock: i64) -> Option<String> {
    // A local date may be a day ahead.
    let last = i32::try_from(clock.div_euclid(DAY) + 1).ok()?;
    let mut files: BTreeMap<&str, i32> = BTreeMap::new();
    for input in loads.iter().flat_map(Pending::inputs_read) {
        if let Some(day) = input.days.last().filter(|day| **day > last) {
            files.insert(&input.path, *day);
        }
    }

    let (file, day) = files.iter().max_by_key(|(_, day)| **day)?;
    let others = match files.len() {
        1 => String::new(),
        files => format!(" (and {})", several(files as u64 - 1, "other file")),
    };
    let note = format!(
        "{file}{others} has readings of {}, in the future: correct them, if that is no forecast",
        day_name(*day)
    );
    Some(if *day > last.saturating_add(YEAR) { format!("warning: {note}") } else { note })
}

/// Notes on new files that a plan knows to be empty.
pub(crate) fn empty_notes(sources: &[PlannedSource<'_>]) -> Vec<String> {
    let planned = sources.iter().filter_map(|planned| planned.tables.first());
    let new = planned.flat_map(|table| &table.plan.new).map(|(_, file)| (file.path.as_str(), file.size));
    rowless(new.filter(|(_, size)| *size == 0))
}

/// Notes on the files that a load read and that have no rows.
pub(crate) fn rowless_notes(loads: &[Pending]) -> Vec<String> {
    let inputs = loads.iter().flat_map(Pending::inputs_read).filter(|input| input.read == 0);
    // Tables of a source read the same inputs.
    let files: BTreeMap<&str, u64> = inputs.map(|input| (input.path.as_str(), input.size)).collect();
    rowless(files.into_iter())
}

/// Notes on files without rows, by path and size: one for each folder.
fn rowless<'a>(files: impl Iterator<Item = (&'a str, u64)>) -> Vec<String> {
    let mut folders: BTreeMap<&str, Vec<(&str, u64)>> = BTreeMap::new();
    for (path, size) in files {
        let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
        folders.entry(folder).or_default().push((path, size));
    }

    let left: usize = folders.values().skip(FOLDERS).map(Vec::len).sum();

    let mut notes = Vec::new();
    for files in folders.values().take(FOLDERS) {
        let Some((first, size)) = files.first() else { continue };
        let what = if *size == 0 { "is empty" } else { "has no rows" };
        notes.push(match files.len() {
            1 => format!("{first} {what}"),
            count => {
                let others = several(count as u64 - 1, "other file");
                format!("{first} {what}; so it is with {others} of its folder")
            }
        });
    }
    if left > 0 {
        let have = if left == 1 { "has" } else { "have" };
        notes.push(format!("{} of other folders {have} no rows", several(left as u64, "file")));
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_has_one_note_on_files_without_rows() {
        let files = [("a/1.csv", 0), ("a/2.csv", 9), ("a/3.csv", 0), ("b/1.csv", 9)];
        let notes = rowless(files.into_iter());
        assert_eq!(notes, ["a/1.csv is empty; so it is with 2 other files of its folder", "b/1.csv has no rows"]);
    }
}
