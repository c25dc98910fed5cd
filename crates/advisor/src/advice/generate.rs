//! Candidate layouts: orders of the key, buckets of the time, and packings of the values.

use std::collections::BTreeMap;

use tidetable_layout::time::{DAY, HOUR, MINUTE, SECOND};
use tidetable_layout::{Field, FieldType};
use toml::{Table, Value};

use crate::advice::keys::{Columns, KeyOrder};
use crate::advice::wants::Want;
use crate::trial::Profile;

/// The family of proposed layouts.
const FAMILY: &str = "d";
/// The message of proposed layouts.
const MESSAGE: &str = "Reading";
/// Events of an entity that make a bucket worth having.
const FEWEST_EVENTS: f64 = 2.0;
/// Events of an entity over which a bucket is too large for a row, whatever they hold.
const MOST_EVENTS: f64 = 4e6;
/// Events of an entity from which on a row for all of them is refused.
const ENDLESS_EVENTS: f64 = 1000.0;
/// Values of a salt at least.
const SALTS: u32 = 3;
/// Writes a second of one range of keys that leave a node room.
const WRITES_A_RANGE: f64 = 8000.0;
/// Values of a salt at most: each query without the salted column reads as many ranges.
const MOST_SALTS: f64 = 100.0;
/// Rows of an entity in a unit of time that make it likely that one will meet another.
const MEETING: f64 = 0.25;

/// A layout proposed for a workload, as the section of a job file that declares its table.
#[derive(Debug, Clone, PartialEq)]
pub struct Proposed {
    /// Name of its table: the columns and the bucket of its key, then its packing, as in `meter_day_cells`.
    pub name: String,
    /// Its section of a job file.
    pub section: Table,
    /// Columns of its row key other than the time.
    pub key: Vec<String>,
    /// Columns of the source that it does not hold.
    pub left_out: Vec<String>,
}

/// A bucket of time: the events of an entity within it share a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Bucket {
    name: &'static str,
    /// The template behind the name of the column; empty for no time at all.
    form: &'static str,
    /// Microseconds; 0 if the row is of one event, or of all of them.
    length: i64,
    window: &'static str,
    /// The format of what tells events of a bucket apart, to the minute.
    within: &'static str,
}

const HOURS: Bucket = Bucket { name: "hour", form: ":%Y%m%d%H", length: HOUR, window: "day", within: "%M" };
const DAYS: Bucket = Bucket { name: "day", form: ":%Y%m%d", length: DAY, window: "day", within: "%H%M" };
const WEEKS: Bucket = Bucket { name: "week", form: ":%G-W%V", length: 7 * DAY, window: "week", within: "%m%d%H%M" };
const MONTHS: Bucket = Bucket { name: "month", form: ":%Y%m", length: 31 * DAY, window: "month", within: "%d%H%M" };
const EVENT: Bucket = Bucket { name: "event", form: ":ms", length: 0, window: "day", within: "" };
const NEWEST_FIRST: Bucket = Bucket { name: "newest", form: ":ms-reversed", ..EVENT };
const ALL: Bucket = Bucket { name: "all", form: "", length: 0, window: "none", within: "" };

/// How the values of an event are held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Packing {
    /// A column each; in a bucket a version for each event.
    Cells,
    /// A column for each time in the bucket.
    Columns,
    /// A message an event; in a bucket a column for each time.
    Message,
}

impl Packing {
    fn name(self) -> &'static str {
        match self {
            Self::Cells => "cells",
            Self::Columns => "columns",
            Self::Message => "message",
        }
    }
}

/// The layouts to try for queries, with `rate` source rows a second and `kept_rows` in all.
pub(super) fn proposals(columns: &Columns<'_>, wants: &[Want], rate: f64, kept_rows: f64) -> Vec<Proposed> {
    let entities = columns.entity.iter().map(|name| columns.number(name)).fold(1.0, f64::max);
    let mut found: Vec<Proposed> = Vec::new();
    for order in columns.orders(wants) {
        let is_time_first = order.before.is_empty();
        let tried = buckets(columns, wants, &order, rate / entities);
        for bucket in &tried {
            for packing in packings(columns, &order, *bucket) {
                found.push(proposed(columns, &order, *bucket, packing, rate / entities));
            }
        }

        if is_time_first && order.after.is_empty() {
            // Nothing to promote: a salt is what is left.
            let unsalted = proposed(columns, &order, event(columns), Packing::Cells, rate / entities);
            found.push(salted(unsalted, &time(columns).name, SALTS));
        }
    }

    // A row for all events of an entity is listed where rules refuse it, so that nobody wonders why it was left out.
    if kept_rows / entities >= ENDLESS_EVENTS {
        let orders = columns.orders(wants);
        let whole = orders.iter().find(|order| !order.before.is_empty() && order.after.is_empty());
        found.extend(whole.map(|order| proposed(columns, order, ALL, Packing::Cells, rate / entities)));
    }

    name_messages(&mut found);
    found
}

/// Layouts to try where none of [`proposals`] serves a query for all entities of a range of time: the time first, behind a salt of
/// the entity. Such a query reads as many ranges as the salt has values, and one for an entity reads one.
pub(super) fn salted_proposals(columns: &Columns<'_>, wants: &[Want], rate: f64) -> Vec<Proposed> {
    let is_fleet_wide = |want: &Want| want.fixed(|name| columns.is_key(name)).is_empty() && want.bounds.time.is_some();
    if !wants.iter().any(is_fleet_wide) {
        return Vec::new();
    }

    let entities = columns.entity.iter().map(|name| columns.number(name)).fold(1.0, f64::max);
    let salts = (rate / WRITES_A_RANGE).ceil().clamp(f64::from(SALTS), MOST_SALTS) as u32;
    let mut found = Vec::new();
    for order in columns.orders(wants).iter().filter(|order| order.before.is_empty()) {
        let Some(granular) = order.after.last() else { continue };
        for bucket in [event(columns), HOURS, DAYS] {
            let events = rate / entities * bucket.length as f64 / SECOND as f64;
            if bucket.length > 0 && !(FEWEST_EVENTS..=MOST_EVENTS).contains(&events) {
                continue;
            }
            let unsalted = packings(columns, order, bucket).into_iter();
            let unsalted = unsalted.map(|packing| proposed(columns, order, bucket, packing, rate / entities));
            found.extend(unsalted.map(|unsalted| salted(unsalted, granular, salts)));
        }
    }
    name_messages(&mut found);
    found
}

/// A layout with a salt of a column in front of its row key.
fn salted(mut proposed: Proposed, column: &str, salts: u32) -> Proposed {
    let key = proposed.section.get("row_key").and_then(Value::as_str).unwrap_or_default();
    let key = format!("{{salt({column}, {salts})}}#{key}");
    proposed.section.insert("row_key".to_owned(), key.into());
    proposed.name = format!("salt_{}", proposed.name);
    proposed
}

fn time<'a>(columns: &Columns<'a>) -> &'a Field {
    const NONE: &Field = &Field { name: String::new(), kind: FieldType::Timestamp };
    columns.schema.fields.get(columns.schema.time).unwrap_or(NONE)
}

/// The row of a single event.
fn event(columns: &Columns<'_>) -> Bucket {
    match columns.profile.step {
        step if step >= DAY => Bucket { length: 0, ..DAYS },
        step if step >= 1000 => EVENT,
        _ => Bucket { form: ":us", ..EVENT },
    }
}

/// The buckets to try for a key, in which an entity has `rate` events a second.
fn buckets(columns: &Columns<'_>, wants: &[Want], order: &KeyOrder, rate: f64) -> Vec<Bucket> {
    let single = event(columns);
    let mut found = vec![single];

    let mut wanted = wants.iter().filter(|want| order.before.iter().all(|name| want.bounds.fixed.contains(name)));
    if single.form == EVENT.form && !order.before.is_empty() && wanted.any(|want| want.newest) {
        found.push(NEWEST_FIRST);
    }

    for bucket in [HOURS, DAYS, WEEKS, MONTHS] {
        let events = rate * bucket.length as f64 / SECOND as f64;
        let is_longer = bucket.length > columns.profile.step && bucket.form != single.form;
        // Of time-first keys one is enough to say why they are refused.
        let is_tried = !order.before.is_empty() || bucket == DAYS;
        if (FEWEST_EVENTS..=MOST_EVENTS).contains(&events) && is_longer && is_tried {
            found.push(bucket);
        }
    }
    found
}

/// The columns that are neither in the key nor the time.
fn values<'a>(columns: &Columns<'a>, key: &[String]) -> Vec<&'a Field> {
    let fields = columns.schema.fields.iter().enumerate().filter(|(at, _)| *at != columns.schema.time);
    fields.map(|(_, field)| field).filter(|field| !key.contains(&field.name)).collect()
}

/// The packings to try. A single value gets a column for each time rather than versions, which are for corrections of a value;
/// several values get versions of theirs, or a message for each time. A message of all events of a row is not tried: each event would read and write it again.
fn packings(columns: &Columns<'_>, order: &KeyOrder, bucket: Bucket) -> Vec<Packing> {
    let values = values(columns, &order.columns());
    let can_be_message = !values.is_empty() && values.iter().all(|field| field.kind != FieldType::Date);
    let mut packings = match (bucket.length == 0, values.len()) {
        (_, 0) => return Vec::new(),
        (false, 1) => return vec![Packing::Columns],
        _ => vec![Packing::Cells],
    };
    if can_be_message && !order.before.is_empty() {
        packings.push(Packing::Message);
    }
    packings
}

/// The format of what tells events of a bucket apart, of which an entity has `rate` a second: to the coarsest unit in which no two
/// of its events are, nor are likely to be. The cells have the whole time in their timestamps.
fn within(columns: &Columns<'_>, bucket: Bucket, rate: f64) -> String {
    let Profile { step, apart, .. } = *columns.profile;
    let tells = |unit: i64| step % unit == 0 || (apart >= unit && rate * unit as f64 / SECOND as f64 <= MEETING);
    let finer = match () {
        () if tells(MINUTE) => "",
        () if tells(SECOND) => "%S",
        () if tells(1000) => "%S%3f",
        () => "%S%6f",
    };
    format!("{}{finer}", bucket.within)
}

/// The layout of a key, with the time in a bucket, of which an entity has `rate` events a second.
fn proposed(columns: &Columns<'_>, order: &KeyOrder, bucket: Bucket, packing: Packing, rate: f64) -> Proposed {
    let time = time(columns);
    let key = order.columns();
    let mut parts: Vec<String> = Vec::new();
    let mut words: Vec<String> = Vec::new();
    for (at, name) in key.iter().enumerate() {
        parts.push(columns.template(name, at == 0 && !order.before.is_empty()));
        words.push(word(name));
    }
    if bucket != ALL {
        parts.insert(order.before.len(), format!("{{{}{}}}", time.name, bucket.form));
        words.insert(order.before.len(), bucket.name.to_owned());
    }
    words.push(packing.name().to_owned());

    let mut column = Table::new();
    match packing {
        Packing::Cells => {
            let except = key.iter().map(String::as_str).chain([time.name.as_str()]).map(Value::from);
            column.insert("each".to_owned(), "*".into());
            column.insert("except".to_owned(), except.collect::<Vec<_>>().into());
            column.insert("qualifier".to_owned(), "{column}".into());
            column.insert("value".to_owned(), "{value}".into());
        }
        Packing::Columns => {
            let values = values(columns, &key);
            let value = values.first().map(|field| field.name.as_str()).unwrap_or_default();
            column
                .insert("qualifier".to_owned(), format!("{{{}:{}}}", time.name, within(columns, bucket, rate)).into());
            column.insert("value".to_owned(), format!("{{{value}}}").into());
        }
        Packing::Message => {
            let qualifier = match bucket.length {
                0 => "m".to_owned(),
                _ => format!("{{{}:{}}}", time.name, within(columns, bucket, rate)),
            };
            column.insert("qualifier".to_owned(), qualifier.into());
            column.insert("message".to_owned(), MESSAGE.into());
        }
    }

    let mut family = Table::from_iter([("columns".to_owned(), Value::Array(vec![column.into()]))]);
    let has_versions = packing == Packing::Cells && bucket.length > 0;
    if bucket != ALL && !has_versions {
        family.insert("gc".to_owned(), "maxversions=1".into());
    }

    let families = Table::from_iter([(FAMILY.to_owned(), family.into())]);
    let section = Table::from_iter([
        ("row_key".to_owned(), parts.join("#").into()),
        ("window".to_owned(), bucket.window.into()),
        ("families".to_owned(), families.into()),
    ]);
    Proposed { name: words.join("_"), section, key, left_out: Vec::new() }
}

/// A column's name as a word of a table's name: at most 12 characters, each a letter, a digit or `-`.
pub(super) fn word(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).take(12).collect()
}

/// Numbers the messages of layouts whose keys have other columns: they hold other values, so they are other types.
fn name_messages(proposed: &mut [Proposed]) {
    let mut known: BTreeMap<Vec<String>, usize> = BTreeMap::new();
    for proposed in proposed {
        let mut columns = proposed.key.clone();
        columns.sort_unstable();
        let next = known.len() + 1;
        let number = *known.entry(columns).or_insert(next);
        if number == 1 {
            continue;
        }
        if let Some(name) = message_of(&mut proposed.section) {
            *name = Value::from(format!("{MESSAGE}{number}"));
        }
    }
}

/// The name of the message in the only column of a section.
pub(super) fn message_of(section: &mut Table) -> Option<&mut Value> {
    section.get_mut("families")?.get_mut(FAMILY)?.get_mut("columns")?.get_mut(0)?.get_mut("message")
}

#[cfg(test)]
mod tests {
    use tidetable_layout::SourceSchema;

    use super::*;
    use crate::growth::QueryBounds;
    use crate::trial::{ColumnProfile, Profile, ProfiledValue};

    /// A source of text columns with so many values, an unsigned `meter`, the time `ts` and values.
    fn names(
        columns: &[(&str, u64)],
        values: &[&str],
        entity: &[&str],
        wants: &[Want],
        scale: &[(String, f64)],
    ) -> Vec<String> {
        let field = |name: &str, kind| Field { name: name.to_owned(), kind };
        let kind = |name: &str| if name == "meter" { FieldType::UInt64 } else { FieldType::Text };
        let mut fields: Vec<Field> = columns.iter().map(|(name, _)| field(name, kind(name))).collect();
        fields.push(field("ts", FieldType::Timestamp));
        fields.extend(values.iter().map(|name| field(name, FieldType::Float64)));
        let profile = Profile {
            step: MINUTE,
            columns: columns
                .iter()
                .map(|(name, distinct)| ColumnProfile {
                    name: (*name).to_owned(),
                    distinct: *distinct,
                    values: vec![ProfiledValue { text: "a".to_owned(), rows: 1, first: 0 }],
                    ..ColumnProfile::default()
                })
                .collect(),
            ..Profile::default()
        };
        let schema = SourceSchema { fields, time: columns.len() };
        let entity: Vec<String> = entity.iter().map(|name| (*name).to_owned()).collect();
        let columns = Columns { schema: &schema, profile: &profile, entity: &entity, scale };
        let found = proposals(&columns, wants, 10.0, 1e6);
        let mut names: Vec<&str> = found.iter().map(|it| it.name.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), found.len(), "{names:?}");
        found.iter().map(|it| format!("{} {}", it.name, it.section["row_key"].as_str().unwrap())).collect()
    }

    fn want(fixed: &[&str]) -> Want {
        let fixed = fixed.iter().map(|name| (*name).to_owned()).collect();
        Want { bounds: QueryBounds { fixed, time: Some((0, MINUTE)), is_ended: false }, ..Want::default() }
    }

    fn has(names: &[String], expected: &[&str]) {
        for expected in expected {
            assert!(names.iter().any(|name| name == expected), "{expected} of {names:#?}");
        }
    }

    #[test]
    fn keys_follow_from_queries() {
        let games = [("player", 1000), ("game", 3)];
        let found = names(&games, &["kda", "win"], &["player"], &[want(&["game", "player"]), want(&["game"])], &[]);
        has(
            &found,
            &[
                "game_player_event_cells {game:percent}#{player:percent}#{ts:ms}",
                "game_event_player_cells {game:percent}#{ts:ms}#{player:percent}",
            ],
        );
        // Nobody asks for a player alone, so no key begins with one but that of the job.
        let tenants = [("kind", 2), ("tenant", 9), ("device", 100)];
        let found = names(&tenants, &["a", "b"], &["device"], &[want(&["kind", "device", "tenant"])], &[]);
        has(&found, &["tenant_kind_device_event_cells {tenant:percent}#{kind:percent}#{device:percent}#{ts:ms}"]);
    }

    #[test]
    fn a_bucket_is_tried_with_a_message_for_each_time() {
        let names = |values: &[&str]| names(&[("meter", 2)], values, &["meter"], &[want(&["meter"])], &[]);
        let packings = |found: &[String]| -> Vec<String> {
            let names = found.iter().filter_map(|name| name.split(' ').next()?.strip_prefix("meter_day_"));
            names.map(str::to_owned).collect()
        };
        assert_eq!(packings(&names(&["kwh", "volt"])), ["cells", "message"]);
        assert_eq!(packings(&names(&["kwh"])), ["columns"]);
    }

    #[test]
    fn a_qualifier_is_as_fine_as_readings_are_close() {
        let schema = SourceSchema { fields: Vec::new(), time: 0 };
        let within = |step: i64, apart: i64, rate: f64| {
            let profile = Profile { step, apart, ..Profile::default() };
            within(&Columns { schema: &schema, profile: &profile, entity: &[], scale: &[] }, DAYS, rate)
        };
        // Milliseconds, and no two readings of a meter in a minute: one in 15 minutes.
        assert_eq!(within(1000, MINUTE, 1.0 / 900.0), "%H%M");
        // In the data they are as far apart; there will be one in 5 s.
        assert_eq!(within(1000, MINUTE, 0.2), "%H%M%S");
        assert_eq!(within(1000, SECOND, 1.0 / 900.0), "%H%M%S");
        assert_eq!(within(1000, 1000, 1.0), "%H%M%S%3f");
        // On the minute all that is finer is 0.
        assert_eq!(within(MINUTE, 0, 1.0), "%H%M");
        assert_eq!(within(1, 1, 1.0), "%H%M%S%6f");
    }

    #[test]
    fn all_entities_of_a_window_are_read_from_salted_ranges() {
        let fields = vec![
            Field { name: "meter".to_owned(), kind: FieldType::UInt64 },
            Field { name: "ts".to_owned(), kind: FieldType::Timestamp },
            Field { name: "kwh".to_owned(), kind: FieldType::Float64 },
        ];
        let schema = SourceSchema { fields, time: 1 };
        let profile = Profile { step: MINUTE, ..Profile::default() };
        let entity = ["meter".to_owned()];
        let columns = Columns { schema: &schema, profile: &profile, entity: &entity, scale: &[] };
        let of = |fixed: &[&str], rate: f64| -> Vec<String> {
            let found = salted_proposals(&columns, &[want(fixed)], rate);
            found.iter().map(|it| format!("{} {}", it.name, it.section["row_key"].as_str().unwrap())).collect()
        };
        has(&of(&[], 10.0), &["salt_day_meter_columns {salt(meter, 3)}#{ts:%Y%m%d}#{meter:010}"]);
        // 40,000 writes a second are 5 ranges of 8,000.
        has(&of(&[], 40_000.0), &["salt_event_meter_cells {salt(meter, 5)}#{ts:ms}#{meter:010}"]);
        // What a query fixes is promoted.
        assert!(of(&["meter"], 10.0).is_empty());
    }

    #[test]
    fn numbers_are_padded_to_what_there_will_be() {
        let of = |scale: f64| {
            names(&[("meter", 10)], &["kwh"], &["meter"], &[want(&["meter"])], &[("meter".to_owned(), scale)])
        };
        has(&of(1e7), &["meter_event_cells {meter:010}#{ts:ms}"]);
        has(&of(1e11), &["meter_event_cells {meter:012}#{ts:ms}"]);
    }

    #[test]
    fn buckets_follow_from_the_rate_of_an_entity() {
        // 10 rows a second of 10 million meters: less than a reading a day, so no bucket holds two but the month.
        let scale = [("meter".to_owned(), 1e7)];
        let found = names(&[("meter", 10)], &["kwh"], &["meter"], &[want(&["meter"])], &scale);
        assert!(found.iter().any(|name| name.starts_with("meter_month_")), "{found:?}");
        assert!(
            !found.iter().any(|name| name.starts_with("meter_hour_") || name.starts_with("meter_day_")),
            "{found:?}"
        );
    }

    #[test]
    fn the_newest_come_first_where_they_are_asked_for() {
        let newest = Want { newest: true, ..want(&["meter"]) };
        let of = |want: Want| names(&[("meter", 10)], &["kwh"], &["meter"], &[want], &[]);
        let is_reversed = |name: &String| name.contains("ms-reversed");
        assert!(of(newest).iter().any(is_reversed) && !of(want(&["meter"])).iter().any(is_reversed));
    }

    #[test]
    fn without_columns_to_promote_there_is_a_salt() {
        let found = names(&[], &["a", "b"], &[], &[], &[]);
        has(&found, &["salt_event_cells {salt(ts, 3)}#{ts:ms}"]);
    }
}
