//! Writes a proposal as a job file.

use tidetable_layout::FieldType;
use tidetable_source::sample::{NearlyTyped, NullWords, Sample, SampleColumn, named_so};
use tidetable_source::{
    ColumnSpec, Counted, CsvOptions, Format, InputFile, Preset, SchemaMode, SourceSpec, TextNotes, Unread,
};

use crate::scaffold::entity::{RowKey, copies, differing, keyless};
use crate::scaffold::facts::{Column, Facts};
use crate::scaffold::identifier::identifier;
use crate::scaffold::layout::{LayoutPlan, Per, quoted};
use crate::scaffold::time::EventTime;
use crate::several;
use arrow::util::display::array_value_to_string;
use chrono::{DateTime, SecondsFormat};
use chrono_tz::Tz;

/// Width of comments.
const WIDTH: usize = 116;
/// Most files that notes name as unlike the others.
const UNLIKE: usize = 5;
/// Longest quoted value, in characters.
const LONGEST_VALUE: usize = 40;
/// Rows that may be rejected in any load: single lines that a logger broke.
const FLOOR: u64 = 10;
/// Words in the names of columns of times of day.
const TIMES_OF_DAY: [&str; 9] = ["time", "clock", "hour", "hours", "zeit", "uhrzeit", "hora", "heure", "tod"];
/// Most names that a note lists.
const SHOWN: usize = 4;
/// Maximum tolerance that is proposed, in percent.
const MAX_REJECTED: u64 = 5;

/// Everything that was decided.
pub(crate) struct Draft<'a> {
    pub job: &'a str,
    pub table: &'a str,
    /// What the user gave, for the description.
    pub given: &'a str,
    /// `files` of the source.
    pub patterns: &'a [String],
    /// The files that they match.
    pub files: &'a [InputFile],
    /// Names that they reach and that are not read.
    pub unread: &'a [Unread],
    pub sample: &'a Sample,
    pub facts: &'a Facts,
    pub time: &'a EventTime,
    pub key: &'a RowKey,
    pub plan: &'a LayoutPlan,
    pub zone: Option<Tz>,
}

/// The job file; its query is in `query_file`.
pub(crate) fn job_file(draft: &Draft<'_>, query_file: &str, summary: bool) -> String {
    let Draft { job, table, given, patterns, sample, time, plan, key, zone, .. } = draft;
    let mut text = format!("name = {}\n", quoted(job));
    text.push_str(&format!(
        "description = {}\n",
        quoted(&format!("Proposed by `tidetable new` for {}", described(given, patterns)))
    ));
    text.push_str("# schedule = \"15 1 * * *\" # minute, hour, day of month, month, day of week; `tidetable schedule` prints the rest\n");
    text.push_str(&format!("timezone = \"{}\" # what a day is\n\n", zone.unwrap_or(Tz::UTC).name()));

    comment(&mut text, &seen(draft));
    for note in notes(draft) {
        comment(&mut text, &note);
    }
    text.push_str(&format!("[sources.{SOURCE}]\n{}", files_key(draft)));
    records(&mut text, draft);
    csv(&mut text, draft);
    text.push_str(&format!("time = {} # {}\n", quoted(&time.name), time.why));
    let keyless = keyless(draft.facts, key).map_or(0, |(count, ..)| count as u64);
    text.push_str(&max_rejected(sample.rejected + sample.more_lines + keyless, draft.facts.rows as u64 - keyless));
    if sample.spec.mode == SchemaMode::Evolve {
        text.push_str("schema = \"evolve\" # a column that a file lacks is null there\n");
    }
    text.push_str(&format!("\n[sources.{SOURCE}.columns]\n"));
    for (at, column) in draft.sample.spec.columns.iter().enumerate() {
        text.push_str(&format!("{} = {}", key_of(&column.name), column_type(draft, at, column)));
        text.push_str(&format!("{}\n", column_comment(draft, at)));
    }
    let derived = time.derive.iter().map(|derive| (time.name.as_str(), derive.clone()));
    let aliases = key.columns().filter_map(|at| draft.facts.columns.get(at));
    let aliases = aliases.filter_map(|column| Some((column.alias.as_deref()?, identifier(&column.name))));
    for (index, (name, sql)) in derived.chain(aliases).enumerate() {
        if index == 0 {
            text.push_str(&format!("\n[sources.{SOURCE}.derive]\n"));
        }
        text.push_str(&format!("{} = {}\n", key_of(name), quoted(&sql)));
    }
    text.push('\n');
    for reason in &plan.key_reasons {
        comment(&mut text, reason);
    }
    text.push_str(&format!("[tables.{table}]\nfrom = \"{SOURCE}\"\n"));
    if time.nulls() > 0 {
        text.push_str(&format!(
            "where = {} # a row without a time lies in no window\n",
            quoted(&format!("{} is not null", identifier(&time.name)))
        ));
    }
    text.push_str(&format!("row_key = {}\n", quoted(&plan.row_key)));
    if let Some((window, why)) = &plan.window {
        text.push_str(&format!("window = \"{window}\" # {why}\n"));
    }
    if plan.micros {
        text.push_str("granularity = \"micros\" # times are finer than milliseconds\n");
    }
    text.push_str(&format!("\n[tables.{table}.families.DATA]\ngc = \"maxversions=1\" # a corrected reading replaces the old one\ncolumns = [\n"));
    for line in &plan.columns {
        text.push_str(&format!("  {}, # {}\n", line.text, line.comment));
    }
    text.push_str("]\n\n");
    let what = match (plan.per, summary, key.entity.is_empty()) {
        (Per::Day, true, false) => {
            "Queries over all entities of a day read its summary, an export that is made in one pass."
        }
        (Per::Day, true, true) => "The summary of a day is an export.",
        (Per::Day, false, _) => "Queries over all entities of a day read this export, which is made in one pass.",
        (Per::Month, ..) => "An export per month: per day there would be many files of few rows.",
        (Per::Query, ..) => "One export of all rows, published again when they change.",
    };
    comment(&mut text, what);
    let (per, ending) = (plan.per.name(), plan.per.ending());
    let part = match plan.per {
        Per::Day => "_{day:%Y%m%d}",
        Per::Month => "_{month:%Y%m}",
        Per::Query => "",
    };
    let day =
        if plan.per == Per::Day { "day_column = true # a column of the day where the query has none\n" } else { "" };
    text.push_str(&format!("[exports.{table}_{ending}]\nper = \"{per}\"\nname = \"{table}_{ending}{part}\"\n{day}query = {{ file = \"{query_file}\" }}\n"));
    text
}

const SOURCE: &str = "readings";

/// What the description of the job names: a single file as its pattern.
fn described<'a>(given: &'a str, patterns: &'a [String]) -> &'a str {
    match patterns {
        [pattern] => pattern,
        _ => given,
    }
}

/// The key `files` of the source.
fn files_key(draft: &Draft<'_>) -> String {
    let Draft { patterns, files, .. } = draft;
    let files = match (files, patterns) {
        ([_], [pattern]) => {
            format!("[{}] # a pattern such as \"DIR/*.csv\" matches later files too", quoted(pattern))
        }
        (_, [pattern]) => format!("[{}] # later files that it matches are read, too", quoted(pattern)),
        _ => {
            let lines: String = patterns.iter().map(|pattern| format!("  {},\n", quoted(pattern))).collect();
            format!("[\n{lines}]")
        }
    };
    format!("files = {files}\n")
}

/// Notes on the files beside the first.
fn file_notes(draft: &Draft<'_>) -> Vec<String> {
    let Draft { sample, files, unread, .. } = draft;
    let found = &sample.files;
    let mut notes = Unread::notes(unread);
    if files.len() > 1 {
        let read = found.sampled.len();
        let names = found.sampled.first().zip(found.sampled.last()).map(|(first, last)| format!("{first} to {last}"));
        let kin = files.len() - found.unlike.len().min(files.len());
        notes.push(match read == kin {
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

/// Notes on the file for the user.
pub(crate) fn notes(draft: &Draft<'_>) -> Vec<String> {
    let Draft { sample, time, .. } = draft;
    let mut notes = file_notes(draft);
    if time.is_none() {
        notes.push(
            "No column holds the time of a row, so this is a reference table, without windows and with timestamp 0. Times are written as \
             2018-01-31T01:15:00Z, 2018-01-31, 2018-01 or in the usual other ways; numbers since the epoch need a name such \
             as `ts` or `time`."
                .to_owned(),
        );
        notes.extend(likeliest_time(draft));
    }
    notes.extend(day_beside_clock(draft));
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
    let odd = sample.columns.iter().zip(&sample.spec.columns).filter_map(|(found, column)| {
        let odd = found.odd.as_ref()?;
        let is_time = matches!(column.kind, FieldType::Timestamp | FieldType::Date);
        let (name, line, first, kind) = (&column.name, odd.line, &odd.first, if is_time { "time" } else { "number" });
        let rest = match odd.count {
            1 => "its row will be rejected".to_owned(),
            2 => "this row and another such row will be rejected".to_owned(),
            count => format!("this row and {} other such rows will be rejected", count - 1),
        };
        Some((odd.count, format!("{name}, line {line}: '{}' is no {kind}; {rest}.", cut(first))))
    });
    let odd: Vec<(u64, String)> = odd.collect();
    let explained = odd.len() == 1 && odd.iter().all(|(count, _)| *count == sample.rejected);
    notes.extend(odd.into_iter().map(|(_, note)| note));
    if sample.rejected > 0 && !explained {
        let first = sample.first_rejected.as_ref();
        let first = first.map_or(String::new(), |(line, reason)| format!(" (first: line {line}: {reason})"));
        let (do_not, them) = if sample.rejected == 1 { ("does", "it") } else { ("do", "them") };
        let rows = several(sample.rejected, "row");
        notes.push(format!("{rows} {do_not} not fit and will be rejected{first}: the run shows {them}."));
    }
    let TextNotes { several_lines, most_lines, repeated_headers, bare_returns } = sample.notes;
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
    if bare_returns.count > 0 {
        let Counted { count, first_line } = bare_returns;
        notes.push(format!(
            "Records with a carriage return (CR) that ends no line and stays in its value: {count} (first: line {first_line})."
        ));
    }
    if !sample.left_out.is_empty() {
        notes.push(format!("Not read: {}.", sample.left_out.join(", ")));
    }
    if !sample.spec.csv.header {
        notes.push(
            "The first line holds values, so the files have no header, and columns are called by their place \
             (`csv.header`): rename them here, in this order."
                .to_owned(),
        );
    } else if !sample.unnamed.is_empty() {
        notes.push(format!("Without a name in the file, and called by its place: {}.", sample.unnamed.join(", ")));
    }
    match sample.spec.csv.skip {
        0 => {}
        1 => notes.push("The line before the header is left out (`csv.skip`): each file needs one there.".to_owned()),
        lines => notes.push(format!(
            "The {lines} lines before the header are left out (`csv.skip`): each file needs as many there."
        )),
    }
    if !time.parts.is_empty() {
        let names: Vec<_> = time
            .parts
            .iter()
            .filter_map(|at| draft.facts.columns.get(*at))
            .map(|column| column.name.as_str())
            .collect();
        notes.push(format!("{} are not stored: {} says the same.", names.join(", "), time.name));
    }
    for (found, column) in sample.columns.iter().zip(&sample.spec.columns) {
        notes.extend(column_notes(draft, found, column));
    }
    if let Some((count, first, column)) = keyless(draft.facts, draft.key) {
        let rows = if count == 1 { "1 row is".to_owned() } else { format!("{count} rows are") };
        notes.push(format!(
            "{column} is of the key: {rows} without a value (the first is row {}) and will be rejected.",
            first + 1
        ));
    }
    if sample.repeated > 0 {
        notes.push(format!(
            "{} local times occur twice, because the clocks go back: the first of the two is taken.",
            sample.repeated
        ));
    }
    let local = sample
        .columns
        .iter()
        .zip(&sample.spec.columns)
        .any(|(found, column)| found.without_offset && column.kind == FieldType::Timestamp);
    if local && draft.zone.is_none() {
        notes.push("Times are written without an offset and taken as UTC; --timezone says otherwise.".to_owned());
    }
    notes
}

/// The column that most likely holds times, although it is in no known form, with its first value.
fn likeliest_time(draft: &Draft<'_>) -> Option<String> {
    let columns = draft.sample.columns.iter().zip(&draft.sample.spec.columns);
    let named = columns.filter(|(_, column)| named_so(&column.name));
    let (found, column) = named.filter(|(found, _)| found.first.is_some()).min_by_key(|(found, column)| {
        let digits = |value: &String| value.bytes().filter(u8::is_ascii_digit).count();
        (column.kind != FieldType::Text, std::cmp::Reverse(found.first.as_ref().map_or(0, digits)))
    })?;
    let first = found.first.as_deref().unwrap_or_default();
    Some(format!(
        "{} is named like a time, but '{}' is in no known form: a `format` reads other ones.",
        column.name,
        cut(first)
    ))
}

/// A column that may be the time of day where the event time is only a day.
fn day_beside_clock(draft: &Draft<'_>) -> Option<String> {
    let time = draft.time;
    let is_day = !time.is_none()
        && time.parts.is_empty()
        && draft.facts.columns.iter().any(|column| column.name == time.name && column.kind == FieldType::Date);
    if !is_day {
        return None;
    }
    let is_clock = |column: &ColumnSpec| {
        let words: Vec<String> =
            column.name.to_lowercase().split(|c: char| !c.is_alphanumeric()).map(str::to_owned).collect();
        let is_time = matches!(column.kind, FieldType::Timestamp | FieldType::Date);
        !is_time && words.iter().any(|word| TIMES_OF_DAY.contains(&word.as_str()))
    };
    let mut columns = draft.sample.columns.iter().zip(&draft.sample.spec.columns);
    let (found, column) = columns.find(|(_, column)| is_clock(column))?;
    let first = found.first.as_deref()?;
    Some(format!(
        "{} gives only the day: if {} ('{}') is the time of day, put both together in `derive`.",
        time.name,
        column.name,
        cut(first)
    ))
}

/// What is unusual about the values of a column.
fn column_notes(draft: &Draft<'_>, found: &SampleColumn, column: &ColumnSpec) -> Vec<String> {
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
    if let Some(unit) = &found.unit {
        let (quoted, unit) = (identifier(name), unit.replace('\'', "''"));
        notes.push(format!(
            "{name}: numbers with '{unit}', read as text; `derive` makes numbers of them: \
             cast(replace({quoted}, '{unit}', '') as double)."
        ));
    }
    if let Some(value) = &found.rewritten {
        notes.push(format!(
            "{name}: numbers such as '{}' are stored in plain form; declare it text to keep them.",
            cut(value)
        ));
    }
    if let Some((one, other)) = &found.apart {
        notes.push(format!("{name}: '{}' and '{}' are one number, so it is read as text.", cut(one), cut(other)));
    }
    if let Some(value) = &found.ambiguous_comma {
        let (as_read, otherwise) = match column.thousands {
            Some(_) => ("separates thousands", "`decimal = \",\"` reads a fraction"),
            None => ("precedes a fraction", "`thousands = \",\"` reads thousands"),
        };
        notes.push(format!("{name}: the comma of '{}' {as_read}; {otherwise}.", cut(value)));
    }
    if let (Some(also), Some(format)) = (&found.also, &column.format) {
        let first = found.first.as_deref().unwrap_or_default();
        notes.push(format!(
            "{name}: all values, such as '{}', fit both {format} and {also}: day and month are read by the first; write the \
             other into `format` if that is wrong.",
            cut(first)
        ));
    }
    if column.format.as_deref() == Some("excel") && draft.zone.is_none() {
        notes.push(format!("{name}: read as the days of a spreadsheet since 1899-12-30."));
    }
    notes
}

/// The tolerance of the source: the default, or more if more of the sample is rejected.
fn max_rejected(rejected: u64, accepted: u64) -> String {
    let rows = rejected + accepted;
    let percent = (rejected * 100).div_ceil(rows.max(1));
    let floor = format!("rejected_floor = {FLOOR} # so many bad rows fail no load, even if few rows are new\n");
    if rejected * 1000 <= rows || percent > MAX_REJECTED {
        return format!("max_rejected = \"0.1%\"\n{floor}");
    }
    format!("max_rejected = \"{percent}%\" # {rejected} of {rows} rows do not fit\n{floor}")
}

/// The start of a value, on one line.
fn cut(value: &str) -> String {
    let nulls = value.matches('\0').count();
    if nulls > 0 {
        return format!("{nulls} NUL bytes and {}", cut(&value.replace('\0', "")));
    }
    value.chars().take(LONGEST_VALUE).map(|letter| if letter.is_control() { ' ' } else { letter }).collect()
}

/// Duplicate rows, with an example.
fn replaced(draft: &Draft<'_>) -> Option<String> {
    let Draft { time, key, facts, .. } = draft;
    let (earlier, later) = key.doubles.first?;
    let copies = copies(facts, time);
    let (start, way_on) = match key.doubles.count.saturating_sub(copies) {
        0 if copies == 1 => ("1 row is a copy of an earlier row in every column".to_owned(), "the table has it once"),
        0 => (format!("{copies} rows are copies of an earlier row in every column"), "the table has them once"),
        _ => (
            format!(
                "{} the key and time of an earlier row and {} from it in {}",
                if key.doubles.count == 1 {
                    "1 row has".to_owned()
                } else {
                    format!("{} rows have", key.doubles.count)
                },
                if key.doubles.count == 1 { "differs" } else { "differ" },
                some(&differing(facts, time, key))
            ),
            "the later one replaces it; name a column in `row_key` that tells them apart, if there is one",
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
    Some(format!("{start}: {way_on}. The first are rows {} and {} ({place}).", earlier + 1, later + 1))
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

/// What the sample consists of.
fn seen(draft: &Draft<'_>) -> String {
    let day = |micros: i64| {
        DateTime::from_timestamp_micros(micros).map_or(String::new(), |time| time.format("%Y-%m-%d").to_string())
    };
    let times = || draft.time.micros.iter().flatten().filter(|_| !draft.time.is_none());
    let first = times().min().copied().map(day);
    let last = times().max().copied().map(day);
    let span = first.zip(last).map_or(String::new(), |(first, last)| format!(", {first} to {last}"));
    let (part, has) = match (draft.files.len(), draft.sample.whole) {
        (1, true) => ("The file", "has"),
        (1, false) => ("The part of the file that was read", "has"),
        (_, true) => ("The files", "have"),
        (_, false) => ("The parts of the files that were read", "have"),
    };
    format!("{part} {has} {} rows{span}.", draft.facts.rows)
}

/// The keys that say what an event of a record is.
fn records(text: &mut String, draft: &Draft<'_>) {
    let SourceSpec { each, preset, .. } = &draft.sample.spec;
    if let Some(preset) = preset {
        let what = match preset {
            Preset::Otel => "each data point, log record or span is an event",
            Preset::VictoriaMetrics => "each of `values`, with its timestamp, is an event",
        };
        text.push_str(&format!("preset = \"{}\" # {what}\n", preset.key()));
    }
    if !each.is_empty() {
        let lists: Vec<String> = each.iter().map(|list| quoted(list)).collect();
        text.push_str(&format!(
            "each = [{}] # each element is an event, with the values outside of it\n",
            lists.join(", ")
        ));
    }
}

fn csv(text: &mut String, draft: &Draft<'_>) {
    let spec = &draft.sample.spec;
    let CsvOptions { delimiter, quote, escape, skip, header, null, comment, decimal_comma } = &spec.csv;
    if !spec.format.is_some_and(Format::is_text) {
        return;
    }
    let mut options = Vec::new();
    if *delimiter != b',' {
        options.push(format!(
            "delimiter = {}",
            if *delimiter == b'\t' { "\"\\t\"".to_owned() } else { quoted(&char::from(*delimiter).to_string()) }
        ));
    }
    if let Some(quote) = quote.filter(|quote| *quote != b'"') {
        options.push(format!("quote = {}", quoted(&char::from(quote).to_string())));
    }
    if let Some(escape) = escape {
        options.push(format!("escape = {}", quoted(&char::from(*escape).to_string())));
    }
    if !header {
        options.push("header = false".to_owned());
    }
    if *skip > 0 {
        options.push(format!("skip = {skip}"));
    }
    if null.iter().any(|marker| !marker.is_empty()) {
        options.push(format!("null = [{}]", null.iter().map(|marker| quoted(marker)).collect::<Vec<_>>().join(", ")));
    }
    if let Some(comment) = comment {
        options.push(format!("comment = {}", quoted(&char::from(*comment).to_string())));
    }
    if *decimal_comma {
        options.push("decimal = \",\"".to_owned());
    }
    if !options.is_empty() {
        text.push_str(&format!("csv = {{ {} }}\n", options.join(", ")));
    }
}

fn column_type(draft: &Draft<'_>, at: usize, column: &ColumnSpec) -> String {
    let key = draft.key;
    let is_time = column.name == draft.time.name && draft.time.derive.is_none();
    let aliased = draft.time.derive.as_deref() == Some(&identifier(&column.name));
    let in_key = key.entity.contains(&at) || key.ties.contains(&at);
    let natural = draft.facts.columns.get(at).is_some_and(Column::is_natural);
    let maybe_epoch = draft.sample.columns.get(at).and_then(|found| found.maybe_epoch);
    let (kind, format) = match column.kind {
        FieldType::Date if is_time || aliased => {
            // Dates of Parquet need no format; dates of text have one.
            let format = column.format.clone().or(draft
                .sample
                .spec
                .format
                .is_some_and(Format::is_text)
                .then(|| "%Y-%m-%d".to_owned()));
            (FieldType::Timestamp, format)
        }
        FieldType::Int64 if is_time || aliased => (FieldType::Timestamp, maybe_epoch.map(str::to_owned)),
        FieldType::Int64 if in_key && natural => (FieldType::UInt64, None),
        kind => (kind, column.format.clone()),
    };
    let mut parts = Vec::new();
    if kind != FieldType::Timestamp || format.is_none() {
        parts.push(format!("type = \"{}\"", kind));
    }
    parts.extend(format.map(|format| format!("format = {}", quoted(&format))));
    parts.extend(column.timezone.map(|zone| format!("timezone = \"{}\"", zone.name())));
    parts.extend(column.decimal_comma.map(|comma| format!("decimal = \"{}\"", if comma { "," } else { "." })));
    parts.extend(column.thousands.map(|thousands| format!("thousands = {}", quoted(thousands.written()))));
    match parts.as_slice() {
        [only] if only.starts_with("type") => format!("\"{}\"", kind),
        parts => format!("{{ {} }}", parts.join(", ")),
    }
}

/// What is unusual about a column.
fn column_comment(draft: &Draft<'_>, at: usize) -> String {
    let Some(found) = draft.sample.columns.get(at) else { return String::new() };
    match &found.also {
        Some(also) => format!(" # all fit {also} too: check that day and month are not swapped"),
        None => String::new(),
    }
}

/// A TOML key, quoted if needed.
fn key_of(name: &str) -> String {
    let bare = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
    if bare { name.to_owned() } else { quoted(name) }
}

/// A comment, wrapped.
fn comment(text: &mut String, sentence: &str) {
    let mut width = 0;
    for word in sentence.split_whitespace() {
        if width == 0 || width + 1 + word.chars().count() > WIDTH {
            text.push_str(if width == 0 { "#" } else { "\n#" });
            width = 1;
        }
        text.push(' ');
        text.push_str(word);
        width += 1 + word.chars().count();
    }
    text.push('\n');
}
