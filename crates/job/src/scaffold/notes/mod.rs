//! Notes on a proposal: what is unusual about the files and their values, and what becomes of it. A sentence or two each,
//! for the terminal and for comments of the job file.

mod epoch;
mod times;
mod values;
mod wide;

use arrow::util::display::array_value_to_string;
use chrono::{DateTime, Days, NaiveDate, SecondsFormat};
use tidetable_layout::FieldType;
use tidetable_layout::time::DAY;
use tidetable_source::sample::{Codes, NearlyTyped, NullWords, Sample, SampleColumn, UnusualType, named_so};
use tidetable_source::{ColumnSpec, Counted, Format, TextNotes, Unread};

use crate::scaffold::draft::Draft;
use crate::scaffold::entity::{Replaced, RowKey, RowPair, differing, is_named_key, keyless};
use crate::scaffold::facts::{Column, Facts};
use crate::scaffold::header_zone::{self, HeaderZone};
use crate::scaffold::notes::times::undecided_times;
use crate::scaffold::time::repeated_local;
use crate::several;
use values::{cut, text_number_note, value_notes};

/// Most files that notes name as unlike the others.
const UNLIKE: usize = 5;
const SHOWN: usize = 4;

/// All notes, in the order of what they are about: files, times, rejected rows, the form of the text, columns, the key.
pub(crate) fn notes(draft: &Draft<'_>) -> Vec<String> {
    let Draft { sample, time, facts, .. } = draft;
    let mut notes = file_notes(draft);
    notes.extend(time_notes(draft));
    notes.extend(reject_notes(sample));
    notes.extend(stray_notes(sample));
    notes.extend(text_notes(&sample.notes, sample.spec.csv.header));
    notes.extend(list_note(sample));
    notes.extend(header_notes(sample));

    if !time.parts.is_empty() {
        let names: Vec<_> = facts.at(&time.parts).map(|column| column.name.as_str()).collect();
        let are = if names.len() == 1 { "is" } else { "are" };
        notes.push(format!("{} {are} not stored: {} says the same.", names.join(", "), time.name));
    }
    for (found, column) in sample.columns.iter().zip(&sample.spec.columns) {
        notes.extend(column_notes(found, column, sample.spec.csv.delimiter == b','));
    }
    if let Some(keyless) = keyless(facts, draft.key) {
        let rows = if keyless.count == 1 { "1 row is".to_owned() } else { format!("{} rows are", keyless.count) };
        notes.push(format!(
            "{} is of the key: {rows} without a value (the first is row {}) and will be rejected.",
            keyless.column,
            keyless.first + 1
        ));
    }

    notes.extend(without_values(draft));
    notes.extend(named_nulls(draft));
    notes.extend(measured_keys(draft));
    notes.extend(repeated_times(draft));
    notes.extend(local_times(draft));
    notes
}

/// Times without an offset, which are taken as UTC, and what the file says of their zone.
fn local_times(draft: &Draft<'_>) -> Option<String> {
    let Draft { sample, facts, time, .. } = draft;
    let mut columns = sample.columns.iter().zip(&sample.spec.columns);
    let is_local = columns.any(|(found, column)| found.without_offset && column.kind == FieldType::Timestamp);
    let is_of_parts = time.is_taken_as_utc && !time.are_multiples_of(DAY);
    if let Some(HeaderZone { column, written, zone }) = draft.header_zone {
        let local = sample.columns.iter().zip(&sample.spec.columns).filter(|(found, _)| found.without_offset);
        let others: Vec<String> = local
            .map(|(_, spec)| spec.name.clone())
            .filter(|name| name != column && header_zone::written(name) != Some(written.as_str()))
            .collect();
        let too = match others.len() {
            0 => String::new(),
            _ => format!(" Also {}: `timezone` of a column says that it is of another zone.", some(&others)),
        };
        return Some(format!(
            "Times without an offset are read in {zone}, as the name of {column} says ({written}); --timezone says otherwise.{too}"
        ));
    }
    if !is_local && !is_of_parts || draft.zone.is_some() {
        return None;
    }

    let mut said = String::new();
    if let Some(written) = time.columns(facts).find_map(|column| header_zone::written(&column.name)) {
        said = format!(" The header says {written}.");
    } else if let Some(column) = facts.columns.iter().find(|column| is_zone(column)) {
        let first = column.first.as_deref().unwrap_or_default();
        said = format!(" {} names a zone, such as '{}', and is not used.", column.name, cut(first));
    }
    Some(format!("Times are written without an offset and taken as UTC; --timezone says otherwise.{said}"))
}

/// Whether a column is named like a time zone, and has a few texts.
fn is_zone(column: &Column) -> bool {
    let name = column.name.to_lowercase().replace([' ', '-', '_'], "");
    let is_named = matches!(name.as_str(), "tz" | "timezone" | "tzcd" | "zone" | "zoneid" | "tzname" | "zeitzone");
    is_named
        && column.kind == FieldType::Text
        && column.first.is_some()
        && column.distinct * 10 <= column.ids.len().max(20)
}

/// Measured values in the key, because nothing else tells readings of one time apart.
fn measured_keys(draft: &Draft<'_>) -> Option<String> {
    let Draft { facts, key, time, .. } = draft;
    if time.is_none() {
        return values_as_key(facts, key);
    }
    let ties = facts.at(&key.ties).filter(|column| matches!(column.kind, FieldType::Decimal { .. }));
    let names: Vec<String> = ties.map(|column| column.name.clone()).collect();
    let is = if names.len() == 1 { "is a measured value" } else { "are measured values" };
    (!names.is_empty()).then(|| {
        format!(
            "{} {is} and of the key, because no other column tells readings of one time apart: a corrected reading becomes \
             another row.",
            some(&names)
        )
    })
}

/// Numbers and times of day that are the key of a reference table, because no column is named like one.
fn values_as_key(facts: &Facts, key: &RowKey) -> Option<String> {
    let columns = key.columns().filter_map(|at| facts.column(at));
    let values = columns.filter(|column| (column.is_number() || column.clock.is_some()) && !is_named_key(column));
    let names: Vec<String> = values.map(|column| column.name.clone()).collect();
    let (is, tells) = if names.len() == 1 { ("is", "it tells") } else { ("are", "they tell") };
    (!names.is_empty()).then(|| {
        format!(
            "{} {is} of the key, although no name says so, because {tells} the rows apart here: a row of a later file with the \
             same key replaces this one; name better columns in `row_key`, if there are some.",
            some(&names)
        )
    })
}

/// Notes on the files beside the first: what the sample is of, and which are unlike.
fn file_notes(draft: &Draft<'_>) -> Vec<String> {
    let Draft { sample, files, unread, .. } = draft;
    let found = &sample.files;
    let mut notes = Unread::notes(unread);
    if files.len() > 1 {
        let read = found.sampled.len();
        let names = found.sampled.first().zip(found.sampled.last()).map(|(first, last)| format!("{first} to {last}"));
        let kin = files.len() - found.unlike.len().min(files.len());
        notes.push(match read == kin {
            true if kin == 1 => format!("1 of {} files is read.", files.len()),
            true => format!("{kin} files are of one kind; this is made from all of them."),
            false => format!("{kin} files match; this is made from {read} of them, {}.", names.unwrap_or_default()),
        });
    }

    for unlike in found.unlike.iter().take(UNLIKE) {
        let what = if found.looked_at_all { "is left out" } else { "will stop the run: move it away" };
        notes.push(format!("{} {what}, because it is not like the others: {}.", unlike.path, unlike.why));
    }
    if let Some(more @ 1..) = found.unlike.len().checked_sub(UNLIKE) {
        notes.push(format!("{more} more files are not like the others."));
    }

    for (column, path) in &found.lacking {
        notes.push(format!("{column} is not in all files ({path} lacks it): it is null there."));
    }
    for (column, kind, path) in &found.differing {
        notes.push(format!("{column} has another type in {path}: it is taken as {}.", kind));
    }
    if !found.path_columns.is_empty() {
        notes.push(format!("Read from the names of folders: {}.", found.path_columns.join(", ")));
    }
    notes
}

/// Notes on the event time, on rows that have none, and on rows of one time.
fn time_notes(draft: &Draft<'_>) -> Vec<String> {
    let time = draft.time;
    let mut notes = Vec::new();
    if time.is_none() {
        notes.push(
            "No column holds the time of a row, so this is a reference table, without windows and with timestamp 0. Times are written as \
             2018-01-31T01:15:00Z, 2018-01-31, 2018-01 or in the usual other ways; numbers since the epoch need a name such \
             as `ts` or `time`."
                .to_owned(),
        );
        notes.extend(likeliest_time(draft));
    }
    notes.extend(wide::note(draft));
    notes.extend(undecided_times(draft));
    notes.extend(time.needs_zone.clone());
    notes.extend(replaced(draft));

    if time.nulls() > 0 {
        let (have, are) = if time.nulls() == 1 { ("has", "is") } else { ("have", "are") };
        notes.push(format!("{} {have} no time and {are} left out.", several(time.nulls() as u64, "row")));
    }
    if time.skipped > 0 {
        notes.push(format!(
            "{} {} a local time that a clock change skips, and will be rejected: check --timezone.",
            several(time.skipped as u64, "row"),
            if time.skipped == 1 { "has" } else { "have" }
        ));
    }
    if time.before_epoch() {
        notes.push(
            "Times before 1970 are in the row key alone: cells have timestamp 0, since Bigtable has none before 1970."
                .to_owned(),
        );
    }
    notes
}

/// Notes on epoch times that are likely of another unit than the others.
fn stray_notes(sample: &Sample) -> Vec<String> {
    let mut notes = Vec::new();
    for (found, column) in sample.columns.iter().zip(&sample.spec.columns) {
        let (Some(stray), Some(unit)) = (&found.stray, &column.format) else { continue };
        let others = if stray.count > 1 { format!(" ({} such values)", stray.count) } else { String::new() };
        notes.push(format!(
            "{}, line {}: '{}' is no time of 1990 to 2100 in {unit}, as the others are{others}. It is read in {unit} all the \
             same: correct the file, or leave it out with `where`.",
            column.name,
            stray.line,
            cut(&stray.first)
        ));
    }
    notes
}

/// Notes on rows that will be rejected: values in a column of another type, then all other reasons.
fn reject_notes(sample: &Sample) -> Vec<String> {
    let mut notes = Vec::new();
    let mut explained = Vec::new();
    for (found, column) in sample.columns.iter().zip(&sample.spec.columns) {
        let Some(odd) = &found.odd else { continue };
        let is_time = matches!(column.kind, FieldType::Timestamp | FieldType::Date);
        let kind = if is_time { "time" } else { "number" };
        let rest = match odd.count {
            1 => "its row will be rejected".to_owned(),
            2 => "this row and another such row will be rejected".to_owned(),
            count => format!("this row and {} other such rows will be rejected", count - 1),
        };
        let (name, line, first) = (&column.name, odd.line, cut(&odd.first));
        notes.push(format!("{name}, line {line}: '{first}' is no {kind}; {rest}."));
        explained.push(odd.count);
    }

    if sample.rejected > 0 && explained != [sample.rejected] {
        let first = sample.first_rejected.as_ref();
        let first = first.map_or(String::new(), |(line, reason)| format!(" (first: line {line}: {reason})"));
        let (do_not, them) = if sample.rejected == 1 { ("does", "it") } else { ("do", "them") };
        let rows = several(sample.rejected, "row");
        notes.push(format!("{rows} {do_not} not fit and will be rejected{first}: the run shows {them}."));
    }
    notes
}

/// Notes on records of an unusual form, which were read all the same.
fn text_notes(notes: &TextNotes, has_header: bool) -> Vec<String> {
    let TextNotes { several_lines, most_lines, repeated_headers, changed_headers, bare_returns, .. } = notes;
    let TextNotes { extra_fields, comments, comment_rows, unmarked_ends, .. } = notes;
    let mut notes = Vec::new();
    if several_lines.count > 0 {
        let Counted { count, first_line } = several_lines;
        notes.push(format!(
            "Records over several lines: {count}, one of {most_lines} lines (first: line {first_line}). If a stray quote joins them, correct it."
        ));
    }

    if repeated_headers.count > 0 {
        let Counted { count, first_line } = repeated_headers;
        notes.push(format!("Repeated headers, skipped: {count} (first: line {first_line})."));
    }
    if changed_headers.count > 0 {
        let Counted { count, first_line } = changed_headers;
        notes.push(format!(
            "Headers inside the file, with columns in another order or other columns: {count} (first: line {first_line}). The rows below are read by their names."
        ));
    }
    if extra_fields.count > 0 {
        let Counted { count, first_line } = extra_fields;
        notes.push(format!(
            "Rows with more fields than the header, which are empty and not read: {count} (first: line {first_line})."
        ));
    }
    if comments.count > 0 {
        let Counted { count, first_line } = comments;
        let rows = match comment_rows.count {
            0 => String::new(),
            rows => format!("; {rows} have as many fields as the header (first: line {})", comment_rows.first_line),
        };
        let place = if has_header { " below the header" } else { "" };
        notes.push(format!("Comment lines{place}, not read: {count} (first: line {first_line}){rows}."));
    }
    if unmarked_ends.count > 0 {
        notes.push(format!(
            "The stream of Arrow ends without its end mark, behind row {}: it may be cut short.",
            unmarked_ends.first_line
        ));
    }
    if bare_returns.count > 0 {
        let Counted { count, first_line } = bare_returns;
        notes.push(format!(
            "Records with a carriage return (CR) that ends no line and stays in its value: {count} (first: line {first_line})."
        ));
    }
    notes
}

/// What `each` makes of the records.
fn list_note(sample: &Sample) -> Option<String> {
    if sample.spec.each.is_empty() {
        return None;
    }
    let TextNotes { empty_lists: Counted { count, first_line }, list_records, .. } = sample.notes;
    let events: usize = sample.batches.iter().map(|batch| batch.num_rows()).sum();
    let (events, records) = (several(events as u64, "event"), several(list_records, "record"));
    let lists = sample.spec.each.join(", ");
    let empty = match count {
        0 => String::new(),
        1 => format!("; 1 list is empty and gives none (line {first_line})"),
        _ => format!("; {count} lists are empty and give none (first: line {first_line})"),
    };
    Some(format!("`each` makes an event of each item of {lists}: {events} of {records}{empty}."))
}

/// Notes on columns that are not read, and on the first lines of files.
fn header_notes(sample: &Sample) -> Vec<String> {
    let mut notes = Vec::new();
    if !sample.left_out.is_empty() {
        notes.push(format!("Not read: {}.", sample.left_out.join(", ")));
    }
    if !sample.doubled.is_empty() {
        notes.push(format!(
            "Columns of one name in the file, the later ones with their number behind: {}.",
            sample.doubled.join(", ")
        ));
    }
    let is_by_place = !sample.spec.csv.header;
    if is_by_place && sample.unnamed.is_empty() && sample.spec.csv.skip == 0 {
        notes.push(
            "The names of the columns stand in a comment line, so the files have no header (`csv.header`), and columns are read \
             by their place."
                .to_owned(),
        );
    } else if is_by_place && sample.is_joined {
        notes.push(
            "The names of the columns stand in two lines, one of which names groups, so both are left out (`csv.skip`), and \
             columns are read by their place."
                .to_owned(),
        );
    } else if is_by_place && sample.unnamed.is_empty() {
        notes.push(
            "The header has more fields than the rows, so it is left out (`csv.skip`), and columns are read by their place."
                .to_owned(),
        );
    } else if is_by_place {
        let first = match sample.spec.csv.skip {
            0 => "The first line".to_owned(),
            skipped => format!("Line {}", skipped + 1),
        };
        notes.push(format!(
            "{first} holds values, so the files have no header, and columns are called by their place (`csv.header`): rename \
             them here, in this order."
        ));
    } else if !sample.unnamed.is_empty() {
        notes.push(format!("Without a name in the file, and called by its place: {}.", sample.unnamed.join(", ")));
    }

    let table = if sample.spec.csv.header { "header" } else { "rows" };
    match sample.spec.csv.skip {
        0 => {}
        1 => notes.push(format!("The line before the {table} is left out (`csv.skip`): each file needs one there.")),
        lines => notes.push(format!(
            "The {lines} lines before the {table} are left out (`csv.skip`): each file needs as many there."
        )),
    }
    notes
}

/// The column that most likely holds times, although it is in no known form, with its first value.
fn likeliest_time(draft: &Draft<'_>) -> Option<String> {
    let columns = draft.sample.columns.iter().zip(&draft.sample.spec.columns);
    let named = columns.filter(|(_, column)| named_so(&column.name));
    let named = named.filter(|(found, _)| found.first.is_some() && found.two_forms.is_none());
    let (found, column) = named.min_by_key(|(found, column)| {
        let first = found.first.as_deref().unwrap_or_default();
        let digits = first.bytes().filter(u8::is_ascii_digit).count();
        (column.kind != FieldType::Text, std::cmp::Reverse(digits))
    })?;

    let first = found.first.as_deref().unwrap_or_default();
    let name = &column.name;
    Some(format!(
        "{name} is named like a time, but '{}' is in no known form. If it is the event time, write its `format` into \
         `columns`, {name} into `time`, and {{{name}:ms}} into `row_key`.",
        cut(first)
    ))
}

/// What is unusual about the values of a column.
fn column_notes(found: &SampleColumn, column: &ColumnSpec, commas_separate: bool) -> Vec<String> {
    let name = &column.name;
    let mut notes = Vec::new();
    if let Some(NullWords { values, count, words }) = &found.words {
        let first: Vec<String> = words.iter().take(SHOWN).map(|word| format!("'{}'", cut(word))).collect();
        let others = words.len().saturating_sub(SHOWN);
        let rest = if others > 0 { format!(" and {others} other words") } else { String::new() };
        notes.push(format!(
            "{name}: {} of {values} values are numbers, {count} are {}{rest}: taken as null.",
            values - count,
            first.join(", ")
        ));
    }

    if let Some(NearlyTyped { is_time, values, odd }) = &found.nearly {
        let kind = if *is_time { "times of one form" } else { "numbers" };
        notes.push(format!(
            "{name}: {} of {values} values are {kind}, {} are not (the first is '{}' in line {}): read as text.",
            values - odd.count,
            odd.count,
            cut(&odd.first),
            odd.line
        ));
    }

    if let Some(UnusualType { words, read_as, .. }) = &found.unusual {
        notes.push(format!("{name}: {words}, read as {read_as}."));
    }
    notes.extend(text_number_note(found, column));
    if let Some(value) = &found.rewritten {
        notes.push(format!(
            "{name}: numbers such as '{}' are stored in plain form; declare it text to keep them.",
            cut(value)
        ));
    }
    notes.extend(found.codes.as_ref().map(|codes| match codes {
        Codes::OneNumber(one, other) => {
            format!("{name}: '{}' and '{}' are one number, so it is read as text.", cut(one), cut(other))
        }
        Codes::Versions(one, other) => {
            format!("{name}: '{}' and '{}' look like versions, so it is read as text.", cut(one), cut(other))
        }
        Codes::Exponents(first) => {
            format!("{name}: values such as '{}' look like identifiers, so it is read as text.", cut(first))
        }
    }));

    notes.extend(value_notes(found, column, commas_separate));
    if let (Some(also), Some(format)) = (&found.also, &column.format) {
        let first = found.first.as_deref().unwrap_or_default();
        let (one, other) =
            if format == "s" { ("seconds since 1970 (`s`)", "they") } else { (format.as_str(), "day and month") };
        notes.push(format!(
            "{name}: all values, such as '{}', fit both {one} and {also}: {other} are read by the first; write the \
             other into `format` if that is wrong.",
            cut(first)
        ));
    }
    if column.format.as_deref() == Some("excel") {
        let example = found.first.as_deref().and_then(|first| Some((first, spreadsheet_day(first)?)));
        let example = example.map_or(String::new(), |(first, day)| format!(" ('{}' is {day})", cut(first)));
        notes.push(format!(
            "{name}: read as the days of a spreadsheet since 1899-12-30{example}; declare it float64 if it counts something \
             else."
        ));
    }
    notes
}

/// The day of a number of days since 1899-12-30, without the time of day.
fn spreadsheet_day(written: &str) -> Option<NaiveDate> {
    let whole = written.split(['.', ',']).next()?.parse().ok()?;
    NaiveDate::from_ymd_opt(1899, 12, 30)?.checked_add_days(Days::new(whole))
}

/// A note on rows that would replace earlier ones, with the first as an example.
fn replaced(draft: &Draft<'_>) -> Option<String> {
    let Draft { time, key, facts, .. } = draft;
    if key.doubles.count == 0 {
        return None;
    }
    let Replaced { copies, differing: differing_rows, first } = Replaced::of(facts, time, key);
    let RowPair { earlier, later } = first?;
    let (start, way_on) = match differing_rows {
        0 if copies == 1 => ("1 row is a copy of an earlier row in every column".to_owned(), "the table has it once"),
        0 => (format!("{copies} rows are copies of an earlier row in every column"), "the table has them once"),
        _ => (
            format!(
                "{} the key and time of an earlier row and {} from it in {}",
                if differing_rows == 1 { "1 row has".to_owned() } else { format!("{differing_rows} rows have") },
                if differing_rows == 1 { "differs" } else { "differ" },
                some(&differing(facts, time, key))
            ),
            match draft.zone.zip(time.micros.get(later).copied().flatten()) {
                Some((zone, micros)) if repeated_local(zone, micros).is_some() => {
                    "the later one replaces it, because the clocks go back; times with an offset or in UTC keep both"
                }
                _ => "the later one replaces it; name a column in `row_key` that tells them apart, if there is one",
            },
        ),
    };

    let fields = key.entity.iter().chain(&key.ties).filter_map(|at| {
        let name = &facts.columns.get(*at)?.name;
        Some(format!("{name} {}", shown(draft.sample, *at, later)?))
    });

    let at = time.micros.get(later).copied().flatten().filter(|_| !time.is_none());
    let at = at.and_then(DateTime::from_timestamp_micros);
    let at = at.map(|at| format!("{} {}", time.name, at.to_rfc3339_opts(SecondsFormat::AutoSi, true)));
    let place = fields.chain(at).collect::<Vec<_>>().join(", ");
    let others = match (differing_rows, copies) {
        (0, _) | (_, 0) => String::new(),
        (_, 1) => " 1 other row is a copy of an earlier row in every column.".to_owned(),
        (_, copies) => format!(" {copies} other rows are copies of an earlier row in every column."),
    };
    Some(format!("{start}: {way_on}. The first are rows {} and {} ({place}).{others}", earlier + 1, later + 1))
}

/// Local times that occur twice: how many, and the first, as the clocks showed it.
fn repeated_times(draft: &Draft<'_>) -> Option<String> {
    let first = draft.zone.and_then(|zone| {
        let mut times = draft.time.micros.iter().flatten();
        let shown = times.find_map(|micros| repeated_local(zone, *micros))?;
        Some(format!(" (first: {})", shown.format("%Y-%m-%d %H:%M")))
    });
    let of_parts = draft.time.repeated as u64;
    let count = draft.sample.repeated.max(of_parts);
    (count > 0).then(|| {
        format!(
            "{count} local times occur twice, because the clocks go back{}: the first of the two is taken. Where the order of \
             rows tells the two apart, `ambiguous = \"by-order\"` of the column takes both. Clocks that stay at one offset need \
             it as --timezone, such as +01:00.",
            first.unwrap_or_default()
        )
    })
}

/// Columns of text files without any value, whose type nothing tells.
fn without_values(draft: &Draft<'_>) -> Option<String> {
    let Draft { sample, facts, .. } = draft;
    let is_text = sample.spec.format.is_some_and(Format::is_text);
    let empty = facts.columns.iter().filter(|column| is_text && column.nulls == facts.rows);
    let names: Vec<String> = empty.map(|column| column.name.clone()).collect();
    let (have, their) = if names.len() == 1 { ("has", "its type") } else { ("have", "their types") };
    (!names.is_empty()).then(|| format!("{} {have} no value here, and is read as text: declare {their}.", some(&names)))
}

/// Columns of the key that are null in some rows, and what the key calls them there.
fn named_nulls(draft: &Draft<'_>) -> Vec<String> {
    let Draft { facts, key, .. } = draft;
    let columns = key.columns().filter_map(|at| facts.column(at)).filter(|column| column.nulls > 0);
    let named = columns.filter_map(|column| {
        let (null_name, alias) = (column.null_name.as_ref()?, column.alias.as_ref()?);
        Some(format!(
            "{} has no value in {} of {} rows: the key calls it '{null_name}' there (`{alias}` in `derive`).",
            column.name, column.nulls, facts.rows
        ))
    });
    named.collect()
}

/// The first names, and the number of the others.
fn some(names: &[String]) -> String {
    let shown = names.iter().take(SHOWN).map(String::as_str).collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(SHOWN) {
        0 => shown,
        more => format!("{shown} and {more} other columns"),
    }
}

/// The value of a row of the sample.
fn shown(sample: &Sample, column: usize, row: usize) -> Option<String> {
    let mut left = row;
    for batch in &sample.batches {
        if left < batch.num_rows() {
            return array_value_to_string(batch.columns().get(column)?, left).ok();
        }
        left -= batch.num_rows();
    }
    None
}
