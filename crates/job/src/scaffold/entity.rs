//! Finds the entity of the readings (a meter, a station), and further columns that distinguish readings.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

use tidetable_layout::FieldType;
use xxhash_rust::xxh3::xxh3_128;

use crate::scaffold::facts::{Column, Facts};
use crate::scaffold::series::Series;
use crate::scaffold::time::EventTime;

/// Longest value, in bytes, of a column in the key.
const LONGEST: usize = 200;
/// Maximum number of columns of a key.
const MAX_COLUMNS: usize = 6;
/// One duplicate row in so many is tolerated before measured values become part of the key.
const RARE: usize = 100;
const RARE_NUMBERS: usize = 10;
/// Duplicates that no repeated hour explains, if text keeps most of them apart.
const MANY_ROWS: usize = 100;
/// Values of an integer that distinguishes readings of one time, as a multiple of the readings of one time.
const MOST_INDEXES: usize = 2;

/// Words in names of entity columns.
const THINGS: &str = "\
    id station sensor meter device host hostname machine symbol ticker server node vehicle user customer player \
    account balloon asset tag uuid key serial person employee patient truck ship buoy plant turbine unit instance \
    pump page url product item store shop team driver well tank logger probe messstelle gerät zähler anlage capteur \
    compteur appareil mmsi icao icao24 imei iccid mpan mprn eui slave";
/// Words in names of what is said of readings, such as their unit: an entity only where no other column is one.
const REMARKS: &str = "\
    unit units quality flag flags status description type agent comment remark note kind method uncert uncertainty \
    qualifier";
/// Words in names of columns for groups and kinds of entities.
const GROUPS: &str = "\
    name code region city site location origin exchange country continent area room building tenant channel garden \
    domain game place zone county district line route port airport ort standort stadt land ville pays lieu";
/// Words in names of folders that hold a span of time.
const TIMES: &str = "year month day hour minute week date dt ds ymd yyyymmdd jahr monat tag";
/// Words beside `page` in the names of the pages of an answer.
const PAGING: &str = "last next previous prev first current total per size count number no limit";
const COUNTERS: [&str; 13] =
    ["seq", "sequence", "number", "no", "nr", "num", "index", "idx", "row", "line", "offset", "counter", "event"];

/// The fields of a row key, as places of columns.
#[derive(Debug, Default)]
pub(crate) struct RowKey {
    /// The entity, from the general to the specific.
    pub entity: Vec<usize>,
    /// Columns that distinguish readings of the same time.
    pub ties: Vec<usize>,
    /// The field that replaces both, of points of exported metrics.
    pub series: Option<Series>,
    /// Rows that share all of these and the time with an earlier row.
    pub doubles: Duplicates,
}

/// Rows that would replace earlier ones.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Duplicates {
    pub count: usize,
    /// The first of them, with the row that it would replace.
    pub first: Option<RowPair>,
}

/// Two rows of a sample, counted from 0, that share what was compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RowPair {
    pub earlier: usize,
    pub later: usize,
}

/// The key that leaves the fewest duplicates. Uniqueness of (entity, time) decides: measured categories repeat as
/// names do. If the time alone is unique, only a column with an entity's name is one.
///
/// `path_columns` are named by folders: each file has one value, and a few files do not show that others differ.
pub(crate) fn find(facts: &Facts, time: &EventTime, path_columns: &[String]) -> RowKey {
    let all = usable_columns(facts, time);
    let mut names = all.clone();
    names.retain(|at| facts.column(*at).is_some_and(|column| names_things(column, facts, time.is_none())));
    let mut ties = all.clone();
    ties.retain(|at| !names.contains(at));
    let mut measures = ties.clone();
    let together = most_of_one_time(time);
    ties.retain(|at| facts.column(*at).is_some_and(|column| breaks_ties(column, time.is_none(), together)));
    measures
        .retain(|at| !ties.contains(at) && facts.column(*at).is_some_and(|column| is_exact(column, time.is_none())));

    let entity = likeliest_entity(facts, time, &names);
    let mut remarks = names.clone();
    names.retain(|at| facts.column(*at).is_some_and(|column| !is_remark(column)));
    remarks.retain(|at| !names.contains(at));

    let mut key = RowKey { entity: entity.into_iter().collect(), ..RowKey::default() };
    let mut left = lost(facts, time, &key.entity);
    // Further names first, then row numbers, then remarks. A measure is of the key only where rows that differ would be lost
    // without it.
    let tiers = [(Tier::Names, names), (Tier::Ties, ties), (Tier::Remarks, remarks), (Tier::Ties, measures)];
    for (tier, mut candidates) in tiers {
        while left > 0 && key.columns().count() < MAX_COLUMNS {
            let used: Vec<usize> = key.columns().collect();
            candidates.retain(|at| !used.contains(at));
            let next = candidates.iter().map(|at| (lost(facts, time, &[used.as_slice(), &[*at]].concat()), *at)).min();
            let Some((then, at)) = next.filter(|(then, at)| worth(facts, time, tier, *at, left, *then)) else { break };
            left = then;
            let is_name = tier == Tier::Names || tier == Tier::Remarks && key.columns().count() == 0;
            if is_name { key.entity.push(at) } else { key.ties.push(at) }
        }
    }

    prune(facts, time, &mut key, left);
    for at in all {
        let column = facts.column(at).filter(|column| path_columns.contains(&column.name) && is_thing(column));
        if column.is_some() && !key.columns().any(|used| used == at) {
            key.entity.push(at);
        }
    }

    // From the general to the specific, but what all rows share comes behind: it leads to one place.
    key.entity.sort_by_key(|at| {
        let column = facts.column(*at);
        let distinct = column.map_or(0, |column| column.distinct);
        let is_of_path = column.is_some_and(|column| path_columns.contains(&column.name));
        (distinct < 2 && !is_of_path, distinct, *at)
    });
    key.doubles = doubles(facts, time, &key.identity());
    key
}

/// The key of points whose series is known.
pub(crate) fn of_series(facts: &Facts, time: &EventTime, series: Series) -> RowKey {
    let doubles = first_and_count(pairs(time, &facts.at(&series.columns).collect::<Vec<_>>(), true));
    RowKey { series: Some(series), doubles, ..RowKey::default() }
}

/// Columns that may be of the key. A row without a value of the key is rejected, unless the key names its nulls: a column
/// with nulls is worth it only if many more rows would replace each other.
fn usable_columns(facts: &Facts, time: &EventTime) -> Vec<usize> {
    let without_key = doubles(facts, time, &[]).count;
    let mut usable = Vec::new();
    for (at, column) in facts.columns.iter().enumerate() {
        let is_worth = column.nulls * RARE_NUMBERS <= without_key && rank(column) < 2;
        let is_full = !column.rejects_nulls() || column.nulls <= facts.tolerated() && is_worth;
        if is_full && !column.is_nested && column.name != time.name && !time.parts.contains(&at) {
            usable.push(at);
        }
    }
    usable
}

/// The columns that are tried for the key together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tier {
    /// Columns that name things.
    Names,
    /// Columns that distinguish readings of the same time, and measured values.
    Ties,
    /// Columns that say something of readings, such as their unit.
    Remarks,
}

/// The column that most likely names the entity, among columns that name things; `None` if none is called so.
fn likeliest_entity(facts: &Facts, time: &EventTime, names: &[usize]) -> Option<usize> {
    let columns = names.iter().filter_map(|at| Some((*at, facts.column(*at)?)));
    // One whose nulls need a name is worth it only if it tells rows apart.
    let columns = columns.filter(|(_, column)| column.null_name.is_none());
    let columns = columns.filter(|(_, column)| !is_remark(column) || column.distinct > 1);
    let has_doubles = doubles(facts, time, &[]).count > 0;
    let best = columns.filter(|(_, column)| rank(column) < 2).min_by_key(|(at, column)| {
        let is_idle = has_doubles && column.distinct < 2;
        let is_unlike = (is_remark(column), is_idle, rank(column), column.kind != FieldType::Text);
        (column.nulls > 0, is_unlike, Reverse(column.distinct), *at)
    });
    best.map(|(at, _)| at)
}

/// Whether a column is named like something that is said of readings: a `store_and_fwd_flag` is no store.
fn is_remark(column: &Column) -> bool {
    let words = column.words();
    let ends_in_id = words.last().is_some_and(|word| matches!(word.as_str(), "id" | "code"));
    !ends_in_id && words.iter().any(|word| is_listed(REMARKS, word))
}

/// The most rows of one time.
fn most_of_one_time(time: &EventTime) -> usize {
    let mut counts: HashMap<i64, usize> = HashMap::new();
    for micros in time.micros.iter().flatten() {
        *counts.entry(*micros).or_default() += 1;
    }
    counts.into_values().max().unwrap_or(0)
}

/// Whether a folder's name is that of a thing, and not of a time, which the event time tells.
fn is_thing(column: &Column) -> bool {
    column.kind == FieldType::Text && !column.words().iter().any(|word| is_listed(TIMES, word))
}

/// Whether a column that reduces the duplicates from `before` to `then` belongs in the key. A few duplicates, such as
/// those of a repeated hour, do not justify a measured value in the key.
fn worth(facts: &Facts, time: &EventTime, tier: Tier, at: usize, before: usize, then: usize) -> bool {
    let Some(column) = facts.columns.get(at) else { return false };
    // Numbers are usually measured values.
    let rare = if column.is_number() { RARE_NUMBERS } else { RARE };
    // Text that keeps two of three duplicates apart names something, however many rows there are.
    let is_split = !column.is_number() && before >= MANY_ROWS && then * 3 <= before;
    let many = before * rare >= facts.rows || is_split || time.is_none();
    match tier {
        Tier::Names | Tier::Remarks => then < before && (many || rank(column) < 2),
        Tier::Ties => then < before && (time.is_none() || counts(column) || many && then * 2 <= before),
    }
}

/// Rows that would replace earlier ones, as notes tell them.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Replaced {
    /// Rows equal to an earlier one in every column.
    pub copies: usize,
    /// The others.
    pub differing: usize,
    /// The first of the others, or else of the copies.
    pub first: Option<RowPair>,
}

impl Replaced {
    /// Counts the rows that share the key and the time with an earlier row.
    pub fn of(facts: &Facts, time: &EventTime, key: &RowKey) -> Self {
        let all: Vec<&Column> = facts.columns.iter().collect();
        let copies: HashSet<usize> = pairs(time, &all, true).map(|pair| pair.later).collect();
        let used = key.identity();
        let columns: Vec<&Column> = facts.at(&used).collect();

        let mut replaced = Self { first: key.doubles.first, ..Self::default() };
        for pair in pairs(time, &columns, key.series.is_some()) {
            if copies.contains(&pair.later) {
                replaced.copies += 1;
                continue;
            }
            if replaced.differing == 0 {
                replaced.first = Some(pair);
            }
            replaced.differing += 1;
        }
        replaced
    }
}

/// The columns in which rows differ from an earlier row with the same key and time.
pub(crate) fn differing(facts: &Facts, time: &EventTime, key: &RowKey) -> Vec<String> {
    let used = key.identity();
    let columns: Vec<&Column> = facts.at(&used).collect();
    let pairs: Vec<RowPair> = pairs(time, &columns, key.series.is_some()).collect();

    let mut names = Vec::new();
    for column in &facts.columns {
        if pairs.iter().any(|pair| column.ids.get(pair.earlier) != column.ids.get(pair.later)) {
            names.push(column.name.clone());
        }
    }
    names
}

/// Rows that are rejected because a column of the key is null.
#[derive(Debug)]
pub(crate) struct KeylessRows {
    pub count: usize,
    pub first: usize,
    pub column: String,
}

/// The rows in which a column of the key is null; `None` if there are none.
pub(crate) fn keyless(facts: &Facts, key: &RowKey) -> Option<KeylessRows> {
    let used: Vec<usize> = key.columns().collect();
    let columns: Vec<&Column> = facts.at(&used).collect();
    let mut rows = (0..facts.rows).filter_map(|row| {
        let null = columns.iter().find(|column| column.rejects_nulls() && column.ids.get(row) == Some(&0))?;
        Some((row, *null))
    });
    let (first, column) = rows.next()?;
    Some(KeylessRows { count: rows.count() + 1, first, column: column.name.clone() })
}

impl RowKey {
    /// The columns of the entity, then those that break ties.
    pub fn columns(&self) -> impl Iterator<Item = usize> + '_ {
        self.entity.iter().chain(&self.ties).copied()
    }

    /// The columns whose values identify a row, with the time.
    pub fn identity(&self) -> Vec<usize> {
        self.series.as_ref().map_or_else(|| self.columns().collect(), |series| series.columns.clone())
    }
}

/// Removes columns that turn out not to be needed; the first column is the entity.
fn prune(facts: &Facts, time: &EventTime, key: &mut RowKey, least: usize) {
    for at in key.entity.iter().skip(1).chain(&key.ties).copied().collect::<Vec<_>>() {
        let without: Vec<usize> = key.columns().filter(|other| *other != at).collect();
        if lost(facts, time, &without) == least {
            key.entity.retain(|other| *other != at);
            key.ties.retain(|other| *other != at);
        }
    }
}

/// Rows that share the columns and the time with an earlier row, or lack a value of a column.
fn lost(facts: &Facts, time: &EventTime, columns: &[usize]) -> usize {
    let nullable: Vec<&Column> = facts.at(columns).filter(|column| column.rejects_nulls()).collect();
    let rejected = (0..facts.rows).filter(|row| nullable.iter().any(|column| column.ids.get(*row) == Some(&0)));
    doubles(facts, time, columns).count + rejected.count()
}

/// Rows that share the columns and the time with an earlier row.
fn doubles(facts: &Facts, time: &EventTime, columns: &[usize]) -> Duplicates {
    first_and_count(pairs(time, &facts.at(columns).collect::<Vec<_>>(), false))
}

fn first_and_count(pairs: impl Iterator<Item = RowPair>) -> Duplicates {
    let mut doubles = Duplicates::default();
    for pair in pairs {
        doubles.count += 1;
        doubles.first.get_or_insert(pair);
    }
    doubles
}

/// Rows that share the columns and the time with an earlier row, after that row. Unless `with_nulls`, a row in which a
/// column is null shares nothing: a key rejects it.
fn pairs<'f>(time: &'f EventTime, columns: &'f [&'f Column], with_nulls: bool) -> impl Iterator<Item = RowPair> + 'f {
    let mut seen: HashMap<u128, usize> = HashMap::with_capacity(time.micros.len());
    let mut bytes = Vec::new();
    time.micros.iter().enumerate().filter_map(move |(row, micros)| {
        bytes.clear();
        bytes.extend_from_slice(&(*micros)?.to_le_bytes());
        for column in columns {
            let id = column.ids.get(row).copied().unwrap_or(0);
            if id == 0 && !with_nulls && column.rejects_nulls() {
                return None;
            }
            bytes.extend_from_slice(&id.to_le_bytes());
        }
        let earlier = *seen.entry(xxh3_128(&bytes)).or_insert(row);
        (earlier != row).then_some(RowPair { earlier, later: row })
    })
}

/// Whether the values of a column identify things: they repeat, or the column has such a name. For rows without a time
/// any short text may.
fn names_things(column: &Column, facts: &Facts, timeless: bool) -> bool {
    let called_so = rank(column) < 2;
    match column.kind {
        FieldType::Text => {
            let repeats = column.distinct * 2 <= facts.rows || facts.rows < 20 || timeless;
            column.longest <= LONGEST && repeats
        }
        FieldType::Int64 | FieldType::UInt64 => {
            // Unique in every row: a row number.
            let counts_rows = column.distinct == facts.rows && facts.rows >= 20 && !timeless;
            called_so && column.is_natural() && !counts_rows
        }
        _ => false,
    }
}

/// Whether the values of a measure can be keys. Without a time, any can.
fn is_exact(column: &Column, timeless: bool) -> bool {
    match column.kind {
        FieldType::Int64 | FieldType::UInt64 => column.is_natural(),
        FieldType::Decimal { .. } => true,
        FieldType::Float64 | FieldType::Bool => timeless,
        _ => false,
    }
}

/// Whether a column may distinguish readings of the same time: measures may not, unless rows have no time. Integers that
/// count rows are none, nor those of which readings of one time, at most `together`, show nearly all values: channels.
fn breaks_ties(column: &Column, timeless: bool, together: usize) -> bool {
    match column.kind {
        FieldType::Text => column.longest <= LONGEST,
        FieldType::Int64 | FieldType::UInt64 => {
            // Also below 0: -1 may stand for all channels.
            let is_few = column.distinct <= together * MOST_INDEXES;
            timeless || column.is_natural() && counts(column) || is_few && column.is_whole()
        }
        FieldType::Bool => timeless,
        FieldType::Float64 | FieldType::Decimal { .. } => false,
        FieldType::Date | FieldType::Timestamp => column.whole.iter().flatten().all(|value| *value >= 0),
    }
}

/// Whether a column is named like a row number.
fn counts(column: &Column) -> bool {
    let words = column.words();
    matches!(column.kind, FieldType::Int64 | FieldType::UInt64)
        && words.iter().any(|word| COUNTERS.contains(&word.as_str()))
}

/// Whether the name of a column is that of a thing, a group or a row number.
pub(crate) fn is_named_key(column: &Column) -> bool {
    rank(column) < 2 || counts(column)
}

/// 0 for entities, 1 for groups, 2 for others.
fn rank(column: &Column) -> u8 {
    let words = column.words();
    let is_paging = words.iter().any(|word| word == "page") && words.iter().any(|word| is_listed(PAGING, word));
    if is_paging {
        2
    } else if are_of(THINGS, &words) {
        0
    } else if are_of(GROUPS, &words) {
        1
    } else {
        2
    }
}

/// Whether one of `words` is listed, or the last ends in a listed `id`, as that of `stationid` does.
fn are_of(list: &str, words: &[String]) -> bool {
    let ends_in_id = words.last().is_some_and(|word| word.len() > 2 && word.ends_with("id"));
    words.iter().any(|word| is_listed(list, word)) || ends_in_id && is_listed(list, "id")
}

fn is_listed(list: &str, word: &str) -> bool {
    list.split(' ').any(|listed| listed == word)
}
