//! Finds what the readings are of (a meter, a station), and what else tells two of them apart.

use std::cmp::Reverse;
use std::collections::HashSet;

use tidetable_layout::FieldType;
use xxhash_rust::xxh3::xxh3_128;

use super::facts::{Column, Facts};
use super::time::Time;

/// Bytes of a value that still makes a handy key.
const LONGEST: usize = 200;
/// Columns that a key is made of, at most.
const MOST: usize = 6;

/// Words of names of things that readings are of.
const THINGS: [&str; 34] = [
    "id", "station", "sensor", "meter", "device", "host", "hostname", "machine", "symbol", "ticker", "server", "node",
    "vehicle", "user", "customer", "player", "account", "balloon", "asset", "tag", "uuid", "key", "serial", "person",
    "employee", "patient", "truck", "ship", "buoy", "plant", "turbine", "unit", "instance", "pump",
];
/// Words of names of groups and kinds of them.
const GROUPS: [&str; 22] = [
    "name",
    "code",
    "kind",
    "type",
    "region",
    "city",
    "site",
    "location",
    "origin",
    "exchange",
    "country",
    "continent",
    "area",
    "room",
    "building",
    "tenant",
    "channel",
    "garden",
    "domain",
    "game",
    "place",
    "zone",
];

/// The fields of a row key.
#[derive(Debug, Default)]
pub(super) struct Key {
    /// What the readings are of, from the common to the particular.
    pub entity: Vec<usize>,
    /// What tells readings of one moment apart.
    pub ties: Vec<usize>,
    /// Rows that share all of these and the time with an earlier row.
    pub doubles: usize,
}

/// The key that leaves as few rows alike as it can.
pub(super) fn find(facts: &Facts, time: &Time) -> Key {
    let usable = |at: &usize| {
        facts.columns.get(*at).is_some_and(|column| {
            column.nulls == 0 && column.name != time.name && column.fits_templates() && !time.parts.contains(at)
        })
    };
    let all: Vec<usize> = (0..facts.columns.len()).filter(usable).collect();
    let column = |at: &usize| facts.columns.get(*at);
    let names: Vec<usize> =
        all.iter().copied().filter(|at| column(at).is_some_and(|column| names_things(column, facts))).collect();
    let best = names.iter().copied().min_by_key(|at| {
        let found = column(at);
        (
            found.map_or(9, rank),
            found.is_some_and(|column| column.kind != FieldType::Text),
            Reverse(found.map_or(0, |column| column.distinct)),
            *at,
        )
    });
    let mut key = Key { entity: best.into_iter().collect(), ..Key::default() };
    let mut doubles = doubles(facts, time, &key.entity);
    // Further names first; then what only tells events apart.
    let ties = all.iter().copied().filter(|at| !names.contains(at) && column(at).is_some_and(breaks_ties));
    let mut tiers = [names.clone(), ties.collect()];
    for (tier, candidates) in tiers.iter_mut().enumerate() {
        while doubles > 0 && key.entity.len() + key.ties.len() < MOST {
            let used: Vec<usize> = key.entity.iter().chain(&key.ties).copied().collect();
            candidates.retain(|at| !used.contains(at));
            let with = |at: usize| used.iter().copied().chain([at]).collect::<Vec<_>>();
            let next = candidates.iter().map(|at| (self::doubles(facts, time, &with(*at)), *at)).min();
            let Some((left, at)) = next.filter(|(left, _)| *left < doubles) else { break };
            doubles = left;
            if tier == 0 { key.entity.push(at) } else { key.ties.push(at) }
        }
    }
    prune(facts, time, &mut key, doubles);
    key.entity.sort_by_key(|at| (column(at).map_or(0, |column| column.distinct), *at));
    key.doubles = doubles;
    key
}

/// Takes out what turned out not to be needed; the first field is the one that the readings are of.
fn prune(facts: &Facts, time: &Time, key: &mut Key, least: usize) {
    for at in key.entity.iter().skip(1).chain(&key.ties).copied().collect::<Vec<_>>() {
        let without: Vec<usize> = key.entity.iter().chain(&key.ties).copied().filter(|other| *other != at).collect();
        if doubles(facts, time, &without) == least {
            key.entity.retain(|other| *other != at);
            key.ties.retain(|other| *other != at);
        }
    }
}

/// Rows that share the columns and the time with an earlier row.
fn doubles(facts: &Facts, time: &Time, columns: &[usize]) -> usize {
    let columns: Vec<&Column> = columns.iter().filter_map(|at| facts.columns.get(*at)).collect();
    let mut seen = HashSet::with_capacity(facts.rows);
    let mut doubles = 0;
    let mut bytes = Vec::new();
    for (row, micros) in time.micros.iter().enumerate() {
        let Some(micros) = micros else { continue };
        bytes.clear();
        bytes.extend_from_slice(&micros.to_le_bytes());
        for column in &columns {
            bytes.extend_from_slice(&column.ids.get(row).copied().unwrap_or(0).to_le_bytes());
        }
        doubles += usize::from(!seen.insert(xxh3_128(&bytes)));
    }
    doubles
}

/// Whether the values of a column are names of things: they repeat, or the column is called so.
fn names_things(column: &Column, facts: &Facts) -> bool {
    let called_so = rank(column) < 2;
    match column.kind {
        FieldType::Text => {
            let repeats = column.distinct * 2 <= facts.rows || facts.rows < 20;
            column.longest <= LONGEST && repeats
        }
        FieldType::Int64 | FieldType::UInt64 => {
            // As many as there are rows: a number of the row.
            let counts_rows = column.distinct == facts.rows && facts.rows >= 20;
            called_so && column.is_natural() && !counts_rows
        }
        _ => false,
    }
}

fn breaks_ties(column: &Column) -> bool {
    match column.kind {
        FieldType::Text => column.longest <= LONGEST,
        FieldType::Int64 | FieldType::UInt64 => column.is_natural(),
        FieldType::Decimal { .. } => true,
        FieldType::Date | FieldType::Timestamp => column.whole.iter().flatten().all(|value| *value >= 0),
        _ => false,
    }
}

/// 0 for names of things, 1 for names of groups, 2 for others.
fn rank(column: &Column) -> u8 {
    let words = column.words();
    let ends = |list: &[&str]| {
        words.iter().any(|word| list.contains(&word.as_str()))
            // stationid, userid
            || words.last().is_some_and(|word| word.len() > 2 && word.ends_with("id") && list.contains(&"id"))
    };
    if ends(&THINGS) {
        0
    } else if ends(&GROUPS) {
        1
    } else {
        2
    }
}
