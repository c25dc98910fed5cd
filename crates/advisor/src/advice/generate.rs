//! Candidate layouts: orders of the key, places and buckets of the time, and packings of the values.

use tidetable_layout::{Field, FieldType, SourceSchema};
use toml::{Table, Value};

use crate::error::{AdvisorError, Result};

/// Columns of a key of which every order is tried; more keep their order.
const ORDERED: usize = 3;
/// The family of proposed layouts.
const FAMILY: &str = "d";
/// The message of proposed layouts.
const MESSAGE: &str = "Reading";

/// Buckets of time in a row key: part of the name, template after the column, window.
const BUCKETS: [(&str, &str, &str); 6] = [
    ("event", ":ms", "day"),
    ("hour", ":%Y%m%d%H", "day"),
    ("day", ":%Y%m%d", "day"),
    ("week", ":%G-W%V", "week"),
    ("month", ":%Y%m", "month"),
    ("all", "", "none"),
];

/// A proposed layout.
#[derive(Debug, Clone, PartialEq)]
pub struct Proposed {
    /// Name of its table: what it is, in words.
    pub name: String,
    /// Its section of a job file.
    pub section: Table,
}

/// How the values of an event are held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Packing {
    /// A column each, versions by time.
    Cells,
    /// A column each and time of day.
    Columns,
    /// A message an event.
    Message,
    /// A message a row.
    Messages,
}

impl Packing {
    fn name(self) -> &'static str {
        match self {
            Self::Cells => "cells",
            Self::Columns => "columns",
            Self::Message => "message",
            Self::Messages => "messages",
        }
    }
}

/// The layouts to try for a source with this schema. `entity` are the columns that name what the rows are about, in the order
/// of a known layout.
pub fn proposals(schema: &SourceSchema, entity: &[String]) -> Vec<Proposed> {
    let Some(time) = schema.fields.get(schema.time) else { return Vec::new() };
    let known: Vec<&Field> =
        entity.iter().filter_map(|name| schema.fields.iter().find(|field| field.name == *name)).collect();
    let is_value = |(at, field): &(usize, &Field)| *at != schema.time && !entity.contains(&field.name);
    let values: Vec<&Field> = schema.fields.iter().enumerate().filter(is_value).map(|(_, field)| field).collect();
    if values.is_empty() {
        return Vec::new();
    }
    let mut out = Vec::new();
    for order in orders(&known) {
        for time_first in [false, true] {
            for (bucket, form, window) in BUCKETS {
                if time_first && (bucket == "all" || order.is_empty()) {
                    continue;
                }
                for packing in packings(bucket, &values) {
                    out.push(proposed(&order, time, time_first, (bucket, form, window), packing, &values));
                }
            }
        }
    }
    out
}

/// All orders of a few columns.
fn orders<'a>(columns: &[&'a Field]) -> Vec<Vec<&'a Field>> {
    if columns.len() > ORDERED || columns.len() < 2 {
        return vec![columns.to_vec()];
    }
    let rest = |at: usize| columns.iter().enumerate().filter(move |(own, _)| *own != at).map(|(_, field)| *field);
    let of_first = |(at, first): (usize, &&'a Field)| {
        let others: Vec<&Field> = rest(at).collect();
        let first: &'a Field = first;
        orders(&others).into_iter().map(move |order| [vec![first], order].concat())
    };
    columns.iter().enumerate().flat_map(of_first).collect()
}

fn packings(bucket: &str, values: &[&Field]) -> Vec<Packing> {
    let mut packings = vec![Packing::Cells];
    // A time of day tells columns of a row apart only within a day.
    if matches!(bucket, "hour" | "day") && values.len() == 1 {
        packings.push(Packing::Columns);
    }
    if values.iter().all(|field| proto_type(field.kind)) {
        packings.push(Packing::Message);
        if bucket != "event" {
            packings.push(Packing::Messages);
        }
    }
    packings
}

/// Whether a message can hold a column of this type.
fn proto_type(kind: FieldType) -> bool {
    kind != FieldType::Date
}

fn proposed(
    order: &[&Field],
    time: &Field,
    time_first: bool,
    (bucket, form, window): (&str, &str, &str),
    packing: Packing,
    values: &[&Field],
) -> Proposed {
    let mut parts: Vec<String> = order.iter().map(|field| part_of(field)).collect();
    let mut words: Vec<String> = order.iter().map(|field| word(&field.name)).collect();
    if bucket != "all" {
        let at = if time_first { 0 } else { parts.len() };
        parts.insert(at, format!("{{{}{form}}}", time.name));
        words.insert(at, bucket.to_owned());
    }
    if parts.is_empty() {
        parts.push("all".to_owned());
        words.push("all".to_owned());
    }
    words.push(packing.name().to_owned());
    let except: Vec<Value> =
        order.iter().map(|field| field.name.as_str()).chain([time.name.as_str()]).map(Value::from).collect();
    let mut column = Table::new();
    match packing {
        Packing::Cells => {
            column.insert("each".to_owned(), "*".into());
            column.insert("except".to_owned(), except.into());
            column.insert("qualifier".to_owned(), "{column}".into());
            column.insert("value".to_owned(), "{value}".into());
        }
        Packing::Columns => {
            let value = values.first().map(|field| field.name.as_str()).unwrap_or_default();
            column.insert("qualifier".to_owned(), format!("{{{}:%H%M%S}}", time.name).into());
            column.insert("value".to_owned(), format!("{{{value}}}").into());
        }
        Packing::Message => {
            column.insert("qualifier".to_owned(), "m".into());
            column.insert("message".to_owned(), MESSAGE.into());
        }
        Packing::Messages => {
            column.insert("qualifier".to_owned(), "m".into());
            column.insert("repeated".to_owned(), format!("Timed{MESSAGE}").into());
        }
    }
    let family = Table::from_iter([("columns".to_owned(), Value::Array(vec![column.into()]))]);
    let families = Table::from_iter([(FAMILY.to_owned(), family.into())]);
    let section = Table::from_iter([
        ("row_key".to_owned(), parts.join("#").into()),
        ("window".to_owned(), window.into()),
        ("families".to_owned(), families.into()),
    ]);
    Proposed { name: words.join("_"), section }
}

/// The template of a column in a row key: numbers padded so that they sort, text escaped where a delimiter follows.
fn part_of(field: &Field) -> String {
    match field.kind {
        FieldType::UInt64 => format!("{{{}:020}}", field.name),
        FieldType::Text => format!("{{{}:percent}}", field.name),
        _ => format!("{{{}}}", field.name),
    }
}

/// A name as part of that of a table.
fn word(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).take(12).collect()
}

/// The job file `text` with the tables `proposed` instead of its own, and without what follows tables.
///
/// # Errors
/// If `text` is no TOML, or has no single source.
pub fn job_with(
    text: &str,
    name: &str,
    schema: &SourceSchema,
    entity: &[String],
    proposed: &[&Proposed],
) -> Result<String> {
    let failed = |reason: String| AdvisorError::Written { reason };
    let mut job: Table = toml::from_str(text).map_err(|error| failed(error.to_string()))?;
    for section in
        ["exports", "checks", "hooks", "metrics", "after", "schedule", "catch_up", "catch_up_window", "stages"]
    {
        job.remove(section);
    }
    job.insert("name".to_owned(), name.into());
    let values = schema.fields.iter().enumerate();
    let values = values.filter(|(at, field)| *at != schema.time && !entity.contains(&field.name));
    let fields: Table =
        (1..).zip(values).map(|(number, (_, field))| (field.name.clone(), Value::Integer(number))).collect();
    let mut timed = fields.clone();
    if let Some(time) = schema.fields.get(schema.time) {
        timed.insert(time.name.clone(), Value::Integer(fields.len() as i64 + 1));
    }
    let uses = |key: &str| proposed.iter().any(|it| toml::to_string(&it.section).is_ok_and(|text| text.contains(key)));
    let mut messages = Table::new();
    for (key, message, fields) in
        [("message =", MESSAGE.to_owned(), fields), ("repeated =", format!("Timed{MESSAGE}"), timed)]
    {
        if uses(key) {
            messages.insert(message, Table::from_iter([("fields".to_owned(), fields.into())]).into());
        }
    }
    job.remove("messages");
    if !messages.is_empty() {
        job.insert("messages".to_owned(), messages.into());
    }
    let tables = proposed.iter().map(|it| (it.name.clone(), it.section.clone().into()));
    job.insert("tables".to_owned(), tables.collect::<Table>().into());
    toml::to_string(&job).map_err(|error| failed(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schema(fields: &[(&str, FieldType)], time: usize) -> SourceSchema {
        let field = |(name, kind): &(&str, FieldType)| Field { name: (*name).to_owned(), kind: *kind };
        SourceSchema { fields: fields.iter().map(field).collect(), time }
    }

    #[test]
    fn candidates_have_every_order_place_bucket_and_packing() {
        use FieldType::{Float64, Text, Timestamp, UInt64};
        let one = schema(&[("meter", UInt64), ("ts", Timestamp), ("kwh", Float64)], 1);
        let found = proposals(&one, &["meter".to_owned()]);
        let mut names: Vec<&str> = found.iter().map(|it| it.name.as_str()).collect();
        // Packings of each bucket: 2 + 4 + 4 + 3 + 3 + 3, and of the same without `all` once more.
        assert_eq!(names.len(), 19 + 16);
        for name in ["meter_day_columns", "day_meter_columns", "meter_event_message", "meter_messages"] {
            assert!(names.contains(&name), "{names:?}");
        }
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), found.len(), "names are distinct");
        let two = schema(&[("site", Text), ("meter", UInt64), ("ts", Timestamp), ("a", Float64), ("b", Float64)], 2);
        let keys = ["site".to_owned(), "meter".to_owned()];
        let found = proposals(&two, &keys);
        let first =
            |name: &str| found.iter().find(|it| it.name == name).map(|it| it.section["row_key"].as_str().unwrap());
        assert_eq!(first("site_meter_day_cells"), Some("{site:percent}#{meter:020}#{ts:%Y%m%d}"));
        assert_eq!(first("day_meter_site_message"), Some("{ts:%Y%m%d}#{meter:020}#{site:percent}"));
    }
}
