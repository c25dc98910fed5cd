//! Writes a proposal as a job file.

use chrono_tz::Tz;
use tidetable_layout::FieldType;
use tidetable_source::{ColumnSpec, CsvOptions, Format, Preset, SchemaMode, SourceSpec, is_url};

use crate::calendar::day::day_of;
use crate::file::SettingValue;
use crate::scaffold::draft::Draft;
use crate::scaffold::entity::keyless;
use crate::scaffold::facts::Column;
use crate::scaffold::identifier::identifier;
use crate::scaffold::layout::{Per, quoted};
use crate::scaffold::notes::notes;

/// Width of a line of comments, in characters.
const WIDTH: usize = 116;
/// Rows that may be rejected in any load: single lines that a logger broke.
const FLOOR: u64 = 10;
/// Maximum tolerance that is proposed, in percent.
const MAX_REJECTED: u64 = 5;

/// The settings of the project's bucket, for files in one of the same service: those of a source are its own.
fn storage(text: &mut String, draft: &Draft<'_>) {
    let Some(url) = draft.patterns.iter().find(|pattern| is_url(pattern)) else { return };
    let mut lines = String::new();
    for setting in draft.storage.iter().filter(|setting| setting.is_for(url)) {
        let value = match &setting.value {
            SettingValue::Plain(flag) if matches!(flag.as_str(), "true" | "false") => flag.clone(),
            SettingValue::Plain(value) => quoted(value),
            SettingValue::Env(name) => format!("{{ env = {} }}", quoted(name)),
            SettingValue::File(path) => format!("{{ file = {} }}", quoted(path)),
        };
        lines.push_str(&format!("{} = {value}\n", setting.key));
    }
    if !lines.is_empty() {
        text.push_str(&format!("\n[sources.{SOURCE}.storage] # as of the root\n{lines}"));
    }
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
    let keyless = keyless(draft.facts, key).map_or(0, |rows| rows.count as u64);
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
    let aliases = aliases.filter_map(|column| Some((column.alias.as_deref()?, column.key_sql()?)));
    let series = key.series.iter().map(|series| (series.name.as_str(), series.sql.clone()));
    for (index, (name, sql)) in derived.chain(aliases).chain(series).enumerate() {
        if index == 0 {
            text.push_str(&format!("\n[sources.{SOURCE}.derive]\n"));
        }
        text.push_str(&format!("{} = {}\n", key_of(name), quoted(&sql)));
    }
    storage(&mut text, draft);
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
    // A corrected reading has the same row, column and timestamp, so it takes the place of the old one under any rule.
    let gc = match time.is_none() {
        true => "\"maxversions=1\" # a corrected row replaces the old one",
        false => "\"never\" # readings of one minute or second all stay; a corrected reading replaces the old one",
    };
    text.push_str(&format!("\n[tables.{table}.families.DATA]\ngc = {gc}\ncolumns = [\n"));
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

/// What the sample consists of: rows, and the days of their times in the zone of the job.
fn seen(draft: &Draft<'_>) -> String {
    let times = draft.time.micros.iter().flatten().filter(|_| !draft.time.is_none());
    let ends = times.clone().min().zip(times.max());
    let zone = draft.zone.unwrap_or(Tz::UTC);
    let days = ends.and_then(|(first, last)| Some((day_of(zone, *first)?, day_of(zone, *last)?)));
    let span = days.map_or(String::new(), |(first, last)| format!(", {first} to {last}"));
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

/// The key `csv`: the options that differ from the defaults.
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

/// The type of a column, as a string or a table.
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
        FieldType::Int64 | FieldType::Float64 | FieldType::Decimal { .. } if is_time || aliased => {
            (FieldType::Timestamp, maybe_epoch.map(str::to_owned))
        }
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
    if let Some(null) = &column.null {
        let markers: Vec<String> = null.iter().map(|marker| quoted(marker)).collect();
        parts.push(format!("null = [{}]", markers.join(", ")));
    }
    match parts.as_slice() {
        [only] if only.starts_with("type") => format!("\"{}\"", kind),
        parts => format!("{{ {} }}", parts.join(", ")),
    }
}

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

/// Appends a sentence as a comment, in lines of [`WIDTH`].
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
