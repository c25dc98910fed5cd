//! Writes a proposal as a job file.

use arrow::util::display::array_value_to_string;
use chrono::{DateTime, SecondsFormat};
use chrono_tz::Tz;
use tidetable_layout::FieldType;
use tidetable_source::sample::Sample;
use tidetable_source::{ColumnSpec, Counted, CsvOptions, Format, TextNotes};

use crate::file::shown_type;
use crate::scaffold::entity::{RowKey, copies};
use crate::scaffold::facts::{Column, Facts};
use crate::scaffold::identifier::identifier;
use crate::scaffold::layout::{LayoutPlan, Per, quoted};
use crate::scaffold::time::EventTime;

/// Width of comments.
const WIDTH: usize = 116;
/// Longest quoted value, in characters.
const LONGEST_VALUE: usize = 40;
/// Rows that may be rejected in any load: single lines that a logger broke.
const FLOOR: u64 = 10;
/// Maximum tolerance that is proposed, in percent.
const MAX_REJECTED: u64 = 5;

/// Everything that was decided.
pub(crate) struct Draft<'a> {
    pub job: &'a str,
    pub table: &'a str,
    pub pattern: &'a str,
    pub sample: &'a Sample,
    pub facts: &'a Facts,
    pub time: &'a EventTime,
    pub key: &'a RowKey,
    pub plan: &'a LayoutPlan,
    pub zone: Option<Tz>,
}

/// The job file; its query is in `query_file`.
pub(crate) fn job_file(draft: &Draft<'_>, query_file: &str, summary: bool) -> String {
    let Draft { job, table, pattern, sample, time, plan, key, zone, .. } = draft;
    let mut text = format!("name = {}\n", quoted(job));
    text.push_str(&format!("description = {}\n", quoted(&format!("Proposed by `tidetable new` for {pattern}"))));
    text.push_str("# schedule = \"15 1 * * *\" # minute, hour, day of month, month, day of week; `tidetable schedule` prints the rest\n");
    text.push_str(&format!("timezone = \"{}\" # what a day is\n\n", zone.unwrap_or(Tz::UTC).name()));

    comment(&mut text, &seen(draft));
    for note in notes(draft) {
        comment(&mut text, &note);
    }
    text.push_str(&format!(
        "[sources.{SOURCE}]\nfiles = [{}] # a pattern such as \"DIR/*.csv\" matches later files too\n",
        quoted(pattern)
    ));
    csv(&mut text, draft);
    text.push_str(&format!("time = {} # {}\n", quoted(&time.name), time.why));
    text.push_str(&max_rejected(sample.rejected + sample.more_lines, draft.facts.rows as u64));
    text.push_str(&format!("\n[sources.{SOURCE}.columns]\n"));
    for (at, column) in draft.sample.spec.columns.iter().enumerate() {
        text.push_str(&format!("{} = {}", key_of(&column.name), column_type(draft, at, column)));
        text.push_str(&format!("{}\n", column_comment(draft, at)));
    }
    if let Some(derive) = &time.derive {
        text.push_str(&format!("\n[sources.{SOURCE}.derive]\n{} = {}\n", key_of(&time.name), quoted(derive)));
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
    text.push_str(&format!("[exports.{table}_{ending}]\nper = \"{per}\"\nname = \"{table}_{ending}{part}\"\nquery = {{ file = \"{query_file}\" }}\n"));
    text
}

const SOURCE: &str = "readings";

/// Notes on the file for the user.
pub(crate) fn notes(draft: &Draft<'_>) -> Vec<String> {
    let Draft { sample, time, .. } = draft;
    let mut notes = Vec::new();
    if time.is_none() {
        notes.push(
            "No column holds the time of a row, so this is a reference table, without windows and with timestamp 0. Times are written as \
             2018-01-31T01:15:00Z, 2018-01-31, 2018-01 or in the usual other ways; numbers since the epoch need a name such \
             as `ts` or `time`."
                .to_owned(),
        );
    }
    notes.extend(replaced(draft));
    if time.nulls() > 0 {
        notes.push(format!("{} rows have no time and are left out.", time.nulls()));
    }
    if time.skipped > 0 {
        notes.push(format!(
            "{} rows have a local time that a clock change skips, and will be rejected: check --timezone.",
            time.skipped
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
        notes.push(format!("{} rows do not fit and will be rejected{first}: the run shows them.", sample.rejected));
    }
    let TextNotes { several_lines, most_lines, repeated_headers, bare_returns } = sample.notes;
    if several_lines.count > 0 {
        notes.push(format!(
            "{} records go over several lines, one of them over {most_lines} (first: line {}): if a stray quote joins them, correct it.",
            several_lines.count, several_lines.first_line
        ));
    }
    if repeated_headers.count > 0 {
        let Counted { count, first_line } = repeated_headers;
        notes.push(format!("{count} lines repeat the header and are skipped (first: line {first_line})."));
    }
    if bare_returns.count > 0 {
        let Counted { count, first_line } = bare_returns;
        notes.push(format!(
            "{count} records hold a carriage return (CR) that ends no line; it stays in the value (first: line {first_line})."
        ));
    }
    if !sample.left_out.is_empty() {
        notes.push(format!("Not read: {}.", sample.left_out.join(", ")));
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
    value.chars().take(LONGEST_VALUE).map(|letter| if letter.is_control() { ' ' } else { letter }).collect()
}

/// Duplicate rows, with an example.
fn replaced(draft: &Draft<'_>) -> Option<String> {
    let Draft { time, key, facts, .. } = draft;
    let (earlier, later) = key.doubles.first?;
    let copies = copies(facts, time);
    let (start, way_on) = match key.doubles.count.saturating_sub(copies) {
        0 => (format!("{copies} rows are copies of an earlier row in every column"), "the table has them once"),
        _ => (
            format!(
                "{} rows have the key and time of an earlier row, and no column distinguishes them",
                key.doubles.count
            ),
            "the later one replaces it; name a column in `row_key` that differs, if there is one",
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
    let part = if draft.sample.whole { "The file" } else { "The part of the file that was read" };
    format!("{part} has {} rows{span}.", draft.facts.rows)
}

fn csv(text: &mut String, draft: &Draft<'_>) {
    let spec = &draft.sample.spec;
    let CsvOptions { delimiter, quote, escape, skip, null, comment, decimal_comma, .. } = &spec.csv;
    if spec.format != Some(Format::Csv) {
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
            let format = column
                .format
                .clone()
                .or((draft.sample.spec.format == Some(Format::Csv)).then(|| "%Y-%m-%d".to_owned()));
            (FieldType::Timestamp, format)
        }
        FieldType::Int64 if is_time || aliased => (FieldType::Timestamp, maybe_epoch.map(str::to_owned)),
        FieldType::Int64 if in_key && natural => (FieldType::UInt64, None),
        kind => (kind, column.format.clone()),
    };
    let mut parts = Vec::new();
    if kind != FieldType::Timestamp || format.is_none() {
        parts.push(format!("type = \"{}\"", shown_type(kind)));
    }
    parts.extend(format.map(|format| format!("format = {}", quoted(&format))));
    parts.extend(column.timezone.map(|zone| format!("timezone = \"{}\"", zone.name())));
    match parts.as_slice() {
        [only] if only.starts_with("type") => format!("\"{}\"", shown_type(kind)),
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
