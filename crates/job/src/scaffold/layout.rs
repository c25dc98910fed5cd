//! Decides the row key and the columns, by the rules of Bigtable's schema-design guide.

use std::collections::{HashMap, HashSet};

use chrono::{DateTime, Datelike};
use tidetable_layout::FieldType;
use tidetable_layout::time::{DAY, MINUTE, SECOND};

use crate::scaffold::entity::RowKey;
use crate::scaffold::facts::{Column, Facts};
use crate::scaffold::series::Series;
use crate::scaffold::time::EventTime;

/// Most cells of a row with a day of an entity: a reading a second is 86,400.
const WIDEST: usize = 100_000;
/// Digits to which numbers in keys are padded, so that they sort as numbers.
const DIGITS: usize = 10;
/// Rows per day below which windows are months.
const FEW_A_DAY: usize = 10_000;

const HASHES: &str = "`:percent`, because a value has the `#` that ends it in the key.";
/// Rows per part of an export below which parts cover more, unless there are few parts.
const FEW_IN_A_DAY: usize = 100;
const FEW_IN_A_MONTH: usize = 15;
const FEW_PARTS: usize = 31;

/// A layout with its reasons, a sentence each, which become comments.
#[derive(Debug)]
pub(crate) struct LayoutPlan {
    pub row_key: String,
    pub key_reasons: Vec<String>,
    pub columns: Vec<Line>,
    pub window: Option<(&'static str, String)>,
    pub micros: bool,
    pub values: Vec<usize>,
    /// Whether entities have several readings a day.
    pub often: bool,
    /// What a part of the export covers.
    pub per: Per,
}

/// What a part of an export covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Per {
    Day,
    Month,
    /// All rows of the query, in one part.
    Query,
}

impl Per {
    pub fn name(self) -> &'static str {
        match self {
            Self::Day => "day",
            Self::Month => "month",
            Self::Query => "query",
        }
    }

    /// The end of the name of the export.
    pub fn ending(self) -> &'static str {
        match self {
            Self::Day => "DAY",
            Self::Month => "MONTH",
            Self::Query => "ALL",
        }
    }
}

/// A column of the family, with its comment.
#[derive(Debug)]
pub(crate) struct Line {
    pub text: String,
    pub comment: String,
}

struct Rate {
    average: f64,
    most: usize,
    days: usize,
    months: usize,
    months_with_rows: usize,
    rows: usize,
}

/// Decides the row key and the columns of a table, with a reason for each choice.
pub(crate) fn plan(facts: &Facts, time: &EventTime, key: &RowKey) -> LayoutPlan {
    let mut values = Vec::new();
    for (at, column) in facts.columns.iter().enumerate() {
        let in_key = key.columns().any(|used| used == at);
        if !in_key && !time.parts.contains(&at) && column.name != time.name {
            values.push(at);
        }
    }
    if time.is_none() {
        return timeless(facts, time, key, values);
    }

    let rate = rate(time, facts, key);
    let micros = !time.are_multiples_of(1000);
    let often = rate.average >= 2.0;
    let only = match values.as_slice() {
        [only] => facts.column(*only).filter(|column| column.nulls == 0 && column.fits_templates()),
        _ => None,
    };
    let fits_a_row = often && rate.most <= WIDEST && !micros && !time.before_epoch();
    let bucket = only.filter(|_| key.ties.is_empty() && key.doubles.count == 0 && fits_a_row);

    let mut key_reasons = entity_reasons(facts, key);
    let mut parts = fields(facts, &key.entity);
    parts.extend(key.series.as_ref().map(Series::field));
    parts.push(time_field(time, &rate, bucket.is_some(), &mut key_reasons));
    parts.extend(fields(facts, &key.ties));
    let columns = match bucket.filter(|_| !time.are_multiples_of(DAY)) {
        Some(column) => bucketed(column, time),
        None => tall(facts, time, key, &values),
    };

    let (window, per) = (window(&rate), per(&rate));
    LayoutPlan { row_key: parts.join("#"), key_reasons, columns, window, micros, values, often, per }
}

/// The field of the event time in the row key. Adds the reasons for it.
fn time_field(time: &EventTime, rate: &Rate, is_bucketed: bool, reasons: &mut Vec<String>) -> String {
    let ts = &time.name;
    let micros = !time.are_multiples_of(1000);
    if time.are_multiples_of(DAY) {
        reasons.push("One row per entity and day, which is how often there is a reading: tall and narrow.".to_owned());
        return format!("{{{ts}:%Y%m%d}}");
    }
    if is_bucketed {
        reasons.push(format!(
            "One row per entity and day, at most {} readings here: the row is bounded, and a day of one is one read.",
            rate.most
        ));
        return format!("{{{ts}:%Y%m%d}}");
    }

    reasons.push("One row per entity and time: tall and narrow, so that no row grows without end.".to_owned());
    if time.before_epoch() {
        reasons.push("As calendar digits, because numbers since the epoch cannot express earlier times.".to_owned());
        let form = match () {
            () if time.are_multiples_of(SECOND) => "%Y%m%dT%H%M%S",
            () if !micros => "%Y%m%dT%H%M%S%3f",
            () => "%Y%m%dT%H%M%S%6f",
        };
        return format!("{{{ts}:{form}}}");
    }

    reasons.push("{..:ms-reversed} instead of {..:ms} would put the newest first, if that is queried most.".to_owned());
    format!("{{{ts}:{}}}", if micros { "us" } else { "ms" })
}

/// The layout of rows without a time: all distinguishing columns make the key.
fn timeless(facts: &Facts, time: &EventTime, key: &RowKey, values: Vec<usize>) -> LayoutPlan {
    let all: Vec<usize> = key.columns().collect();
    let names: Vec<&str> = facts.at(&all).map(|column| column.name.as_str()).collect();
    let mut key_reasons =
        vec!["A reference table: one row for each key, and a later row replaces an earlier one.".to_owned()];
    key_reasons.push(format!("Columns that identify a row: {}.", names.join(", ")));
    if facts.at(&all).any(|column| column.has_hash) {
        key_reasons.push(HASHES.to_owned());
    }

    LayoutPlan {
        row_key: fields(facts, &all).join("#"),
        key_reasons,
        columns: tall(facts, time, key, &values),
        window: Some(("none", "rows without a time are changed together".to_owned())),
        micros: false,
        values,
        often: false,
        per: Per::Query,
    }
}

/// A bucketed row: the time of day is the qualifier.
fn bucketed(column: &Column, time: &EventTime) -> Vec<Line> {
    let ts = &time.name;
    let (form, example) = match () {
        () if time.are_multiples_of(MINUTE) => ("%H%M", "1345"),
        () if time.are_multiples_of(SECOND) => ("%H%M%S", "134530"),
        () => ("%H%M%S%3f", "134530250"),
    };
    vec![Line {
        text: format!("{{ qualifier = \"{{{ts}:{form}}}\", value = {} }}", quoted(&field(&column.name))),
        comment: format!("{example}: the time of day names the cell, so that another interval needs no other layout"),
    }]
}

/// A tall table: one cell for each column of the record.
fn tall(facts: &Facts, time: &EventTime, key: &RowKey, values: &[usize]) -> Vec<Line> {
    let mut lines = Vec::new();
    let columns: Vec<&Column> = facts.at(values).collect();
    let gap = (0..facts.rows).any(|row| columns.iter().all(|column| column.ids.get(row).is_none_or(|id| *id == 0)));
    let always = columns.iter().any(|column| column.nulls == 0);
    // Cells have no timestamps before 1970; there only the key has the time.
    let zero = time.is_none() || time.before_epoch();
    if gap || !always {
        let timestamp = if zero { "0".to_owned() } else { quoted(&time.name) };
        lines.push(Line {
            text: format!(
                "{{ qualifier = \"{}\", value = \"{{{}}}\", timestamp = {timestamp} }}",
                // No other column may have this name.
                ["T", "TIME", "MOMENT", "T_T"].iter().find(|name| facts.position(name).is_none()).unwrap_or(&"T"),
                time.name,
            ),
            comment: "null writes no cell: this one keeps a row without other values".to_owned(),
        });
    }

    if !columns.is_empty() {
        let used: Vec<usize> = key.columns().chain(time.parts.iter().copied()).collect();
        let mut except: Vec<String> = facts.at(&used).map(|column| quoted(&column.name)).collect();
        // Columns that are derived for the key.
        let key_columns = key.columns().filter_map(|at| facts.column(at));
        except.extend(key_columns.filter_map(|column| column.alias.as_deref()).map(quoted));
        except.extend(key.series.as_ref().map(|series| quoted(&series.name)));
        except.push(quoted(&time.name));
        lines.push(Line {
            text: format!(
                "{{ each = \"*\", except = [{}], qualifier = \"{{column}}\", value = \"{{value}}\"{} }}",
                except.join(", "),
                if zero { ", timestamp = 0" } else { "" }
            ),
            comment: "a cell per column, stored with its name: short names save space".to_owned(),
        });
    }
    lines
}

/// The reasons for the first fields of the key.
fn entity_reasons(facts: &Facts, key: &RowKey) -> Vec<String> {
    let names: Vec<_> = facts.at(&key.entity).collect();
    let mut reasons = Vec::new();
    if let Some(series) = &key.series {
        let list: Vec<&str> = facts.at(&series.columns).map(|column| column.name.as_str()).collect();
        reasons.push(format!(
            "{} first, then the time: {}. All of them, because points of one time may differ in any label; a value is \
             never of the key.",
            series.name,
            list.join(", ")
        ));
        return reasons;
    }
    match names.as_slice() {
        [] => reasons.push(
            "No column names an entity, so all readings are one series and the key starts with the time. With more \
             writers put their name first: keys that start with the time send all writes to one place."
                .to_owned(),
        ),
        [one] => reasons.push(format!(
            "{} first ({} in the file), then the time: readings of one are adjacent, and writes spread without a salt.",
            one.name, one.distinct
        )),
        several => {
            let list: Vec<_> = several.iter().map(|column| format!("{} ({})", column.name, column.distinct)).collect();
            let identified = match key.doubles.count {
                0 => "a row".to_owned(),
                doubles => format!("all rows but {doubles} of {}", facts.rows),
            };
            reasons.push(format!(
                "From the general to the specific: {}; with the time they identify {identified}. The time comes last, so \
                 that writes spread without a salt.",
                list.join(", ")
            ));
        }
    }

    if names.iter().any(|column| column.kind != FieldType::Text) {
        reasons
            .push("Numbers are padded with zeros, since keys sort as bytes: unpadded, 100 comes before 42.".to_owned());
    }
    if names.iter().any(|column| column.has_hash) {
        reasons.push(HASHES.to_owned());
    }
    if !key.ties.is_empty() {
        let list: Vec<_> = facts.at(&key.ties).map(|column| column.name.as_str()).collect();
        reasons.push(format!(
            "{} last: without it, readings of the same time would replace each other.",
            list.join(" and ")
        ));
    }
    reasons
}

/// Fields of a row key for columns, in forms that sort as their values do.
fn fields(facts: &Facts, columns: &[usize]) -> Vec<String> {
    let mut fields = Vec::with_capacity(columns.len());
    for column in facts.at(columns) {
        let name = column.key_name();
        fields.push(match column.kind {
            FieldType::Int64 | FieldType::UInt64 if column.is_natural() => {
                let most = column.whole.iter().flatten().max().copied().unwrap_or(0);
                let digits = if most.to_string().len() > DIGITS { 20 } else { DIGITS };
                format!("{{{name}:0{digits}}}")
            }
            FieldType::Date => format!("{{{name}:%Y%m%d}}"),
            FieldType::Timestamp => format!("{{{name}:us}}"),
            _ if column.has_hash => format!("{{{name}:percent}}"),
            _ => field(name),
        });
    }
    fields
}

/// Counts the readings of a sample by entity and UTC day.
fn rate(time: &EventTime, facts: &Facts, key: &RowKey) -> Rate {
    let of_series = key.series.as_ref().map(|series| series.columns.as_slice());
    let ids: Vec<&Column> = facts.at(of_series.unwrap_or(&key.entity)).collect();
    let mut counts: HashMap<(i64, Vec<u32>), usize> = HashMap::new();
    let (mut days, mut rows) = (HashMap::new(), 0);
    for (row, micros) in time.micros.iter().enumerate() {
        let Some(micros) = micros else { continue };
        let day = micros.div_euclid(DAY);
        let entity = ids.iter().map(|column| column.ids.get(row).copied().unwrap_or(0)).collect();
        *counts.entry((day, entity)).or_default() += 1;
        *days.entry(day).or_insert(0usize) += 1;
        rows += 1;
    }

    let times = days.keys().filter_map(|day| DateTime::from_timestamp(day * 86_400, 0));
    let months: HashSet<_> = times.map(|time| (time.year(), time.month())).collect();
    let span = days.keys().max().zip(days.keys().min()).map_or(0, |(last, first)| last - first);
    Rate {
        average: rows as f64 / counts.len().max(1) as f64,
        most: counts.values().max().copied().unwrap_or(0),
        days: days.len(),
        months: usize::try_from(span / 30).unwrap_or(0),
        months_with_rows: months.len(),
        rows,
    }
}

/// What a part of the export covers: a day, unless that makes many files of few rows.
fn per(rate: &Rate) -> Per {
    let (days, months) = (rate.days.max(1), rate.months_with_rows.max(1));
    if rate.average >= 2.0 || days <= FEW_PARTS || rate.rows / days >= FEW_IN_A_DAY {
        Per::Day
    } else if rate.rows / months >= FEW_IN_A_MONTH {
        Per::Month
    } else {
        Per::Query
    }
}

/// The window of the table, if days would make many small files.
fn window(rate: &Rate) -> Option<(&'static str, String)> {
    let a_day = rate.rows / rate.days.max(1);
    if rate.days <= 31 || a_day >= FEW_A_DAY {
        return None;
    }
    let window = if rate.months > 240 { "none" } else { "month" };
    let why = format!("{a_day} rows a day would make {} small files; it is what a changed file rebuilds", rate.days);
    Some((window, why))
}

pub(crate) fn field(name: &str) -> String {
    format!("{{{name}}}")
}

/// A TOML string: in double quotes, with quotes, backslashes and control characters escaped.
pub fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' | '\\' => quoted.extend(['\\', letter]),
            control if control.is_control() => quoted.push_str(&format!("\\u{:04X}", control as u32)),
            other => quoted.push(other),
        }
    }
    quoted.push('"');
    quoted
}
