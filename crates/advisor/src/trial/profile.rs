//! What a source holds: its times, and the values of chosen columns.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Mutex, PoisonError};

use arrow::array::{Array, AsArray, PrimitiveArray, RecordBatch};
use arrow::datatypes::TimestampMicrosecondType;
use tidetable_layout::cell::ColumnText;
use tidetable_layout::time::{DAY, HOUR, MINUTE, SECOND};
use xxhash_rust::xxh3::xxh3_64;

/// Columns of which pairs are counted at most.
const MOST_PAIRED: usize = 8;
/// Rows a value must have, as a mean, before it says that it always comes with the same value of another column.
const SEEN_AGAIN: f64 = 2.0;
/// Pairs of values may be so many times the values of one column, and still each of these has one value of the other: an entity
/// moves now and then.
const MOVED: f64 = 1.02;
/// Values of a column that are kept with their rows.
const MOST_VALUES: usize = 1 << 14;
/// Hashes of values of a column that are kept; of more values a part is.
const MOST_HASHES: usize = 1 << 17;
/// Rows from which on a few can be outliers of time.
const ENOUGH: u64 = 20;
/// One row in so many, at each end, may be an outlier of time.
const RARE: u64 = 100;
/// How many times the span of all other rows an outlier of time is away from them.
const FAR: i64 = 20;
/// Units of time, microseconds, the coarsest first.
const UNITS: [i64; 6] = [DAY, HOUR, MINUTE, SECOND, 1000, 1];

/// What the rows of a source hold, before any layout or sample leaves some out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Profile {
    /// Rows with an event time.
    pub rows: u64,
    /// First and last event time without outliers, microseconds; `None` without rows.
    pub times: Option<(i64, i64)>,
    /// Rows far outside of these times, which spread and demand leave out; `None` if there are none.
    pub outliers: Option<Outliers>,
    /// The coarsest unit of which all event times are multiples, microseconds.
    pub step: i64,
    /// The greatest number of microseconds of which all event times are multiples; 0 without rows.
    pub grid: i64,
    /// The coarsest unit that tells the rows of an entity apart, of a minute, a second, a millisecond and a microsecond; 0 if the
    /// columns of an entity were not told.
    pub apart: i64,
    /// The columns that were asked for, as far as the source has them.
    pub columns: Vec<ColumnProfile>,
    /// Pairs of these columns.
    pub pairs: Vec<PairProfile>,
}

/// The values of two columns together.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PairProfile {
    /// Names of both columns.
    pub columns: [String; 2],
    /// Different pairs of values; an estimate if they are many.
    pub distinct: u64,
}

/// Rows whose event times are far from those of all others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outliers {
    /// The number of these rows.
    pub rows: u64,
    /// The time of the farthest, microseconds.
    pub farthest: i64,
}

/// The values of a column.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ColumnProfile {
    /// Name of the column.
    pub name: String,
    /// Different values; an estimate if they are many.
    pub distinct: u64,
    /// Rows without a value.
    pub nulls: u64,
    /// Bytes of the longest value as text.
    pub longest: usize,
    /// Whether a value begins with a minus sign.
    pub is_signed: bool,
    /// The first values with their rows, by the second in which they are first seen.
    pub values: Vec<ProfiledValue>,
}

/// A value of a column.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProfiledValue {
    /// The value as a row key would print it.
    pub text: String,
    /// Source rows that have it.
    pub rows: u64,
    /// The second of its first row.
    pub first: i64,
}

impl Profile {
    /// A column that was asked for.
    pub fn column(&self, name: &str) -> Option<&ColumnProfile> {
        self.columns.iter().find(|column| column.name == name)
    }

    /// Different values of a column, at least 1; 1 if it is not known.
    pub fn distinct(&self, name: &str) -> f64 {
        self.column(name).map_or(1, |column| column.distinct.max(1)) as f64
    }

    /// Different pairs of values of two columns; as many as there can be if they were not counted.
    pub fn distinct_pairs(&self, one: &str, other: &str) -> f64 {
        let pair = self.pairs.iter().find(|pair| {
            let [left, right] = &pair.columns;
            (left == one && right == other) || (left == other && right == one)
        });
        pair.map_or(self.distinct(one) * self.distinct(other), |pair| pair.distinct.max(1) as f64)
    }

    /// Whether each value of a column comes with one value of `other`, as each sensor has one tenant. A column of one value says
    /// nothing, and neither do values that are seen once.
    pub fn is_within(&self, name: &str, other: &str) -> bool {
        let (inner, outer) = (self.distinct(name), self.distinct(other));
        let is_seen_again = self.rows as f64 >= SEEN_AGAIN * inner;
        name != other
            && outer > 1.0
            && inner >= outer
            && is_seen_again
            && self.distinct_pairs(name, other) <= inner * MOVED
    }

    /// The share of the rows that have the value of a row that is drawn, as a mean; `None` if the values were not counted.
    pub fn drawn_share(&self, name: &str) -> Option<f64> {
        let values = &self.column(name)?.values;
        let rows: u64 = values.iter().map(|value| value.rows).sum();
        let squared: f64 = values.iter().map(|value| (value.rows as f64).powi(2)).sum();
        (rows > 0).then(|| squared / (rows as f64) / self.rows.max(rows) as f64)
    }

    /// The share of the rows that have the most frequent value of a column; `None` if the values were not counted.
    pub fn greatest_share(&self, name: &str) -> Option<f64> {
        let values = &self.column(name)?.values;
        let most = values.iter().map(|value| value.rows).max()?;
        Some(most as f64 / self.rows.max(1) as f64)
    }
}

/// Collects a [`Profile`]. What it finds does not depend on the order of the rows.
#[derive(Debug)]
pub(super) struct ProfileCollector {
    names: Vec<String>,
    /// Names of the columns that tell entities apart.
    entity: Vec<String>,
    held: Mutex<Held>,
}

#[derive(Debug, Default)]
struct Held {
    rows: u64,
    step: i64,
    /// Rows, first and last event time of each day.
    days: BTreeMap<i64, (u64, i64, i64)>,
    columns: Vec<HeldColumn>,
    /// For each pair of columns, the first before the second.
    pairs: Vec<Distinct>,
    /// For each of [`APART`], entities with the units of time in which they have rows; and whether one has two in one.
    apart: [(Distinct, bool); APART.len()],
}

/// Units of time that may tell the rows of an entity apart, microseconds, the coarsest first.
const APART: [i64; 3] = [MINUTE, SECOND, 1000];

/// Different values, by their hashes.
#[derive(Debug, Default)]
struct Distinct {
    hashes: HashSet<u64>,
    /// Zeros that a kept hash begins with.
    zeros: u32,
}

impl Distinct {
    /// Sees a value; false if it is known to have been seen before.
    fn see(&mut self, hash: u64) -> bool {
        if hash.leading_zeros() < self.zeros {
            return true;
        }
        if !self.hashes.insert(hash) {
            return false;
        }
        while self.hashes.len() > MOST_HASHES {
            self.zeros += 1;
            let zeros = self.zeros;
            self.hashes.retain(|hash| hash.leading_zeros() >= zeros);
        }
        true
    }

    fn count(&self) -> u64 {
        (self.hashes.len() as u64) << self.zeros
    }
}

/// A hash of two.
fn hash_of(one: u64, other: u64) -> u64 {
    let mut bytes = [0; 16];
    let (left, right) = bytes.split_at_mut(8);
    left.copy_from_slice(&one.to_le_bytes());
    right.copy_from_slice(&other.to_le_bytes());
    xxh3_64(&bytes)
}

/// The part of a [`Profile`] that follows from the event times.
#[derive(Debug, Default)]
struct Ends {
    times: Option<(i64, i64)>,
    outliers: Option<Outliers>,
}

#[derive(Debug, Default)]
struct HeldColumn {
    is_known: bool,
    nulls: u64,
    longest: usize,
    is_signed: bool,
    /// First second and rows.
    values: HashMap<Vec<u8>, (i64, u64)>,
    distinct: Distinct,
}

impl ProfileCollector {
    pub(super) fn new(mut names: Vec<String>, entity: Vec<String>) -> Self {
        names.sort_unstable();
        names.dedup();
        let columns = names.iter().map(|_| HeldColumn::default()).collect();
        let pairs = pairs_of(names.len()).map(|_| Distinct::default()).collect();
        Self { names, entity, held: Mutex::new(Held { columns, pairs, ..Held::default() }) }
    }

    /// Looks at the rows of a batch with the event times in `time`.
    pub(super) fn look(&self, batch: &RecordBatch, time: &str) {
        let times = batch.column_by_name(time).and_then(|times| times.as_primitive_opt::<TimestampMicrosecondType>());
        let Some(times) = times else { return };
        // Counting does not unwind, so poisoned counts are right.
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        times.iter().flatten().for_each(|time| held.see_time(time));

        for (name, column) in self.names.iter().zip(&mut held.columns) {
            let Some(values) = batch.column_by_name(name) else { continue };
            let Some(mut text) = ColumnText::new(values.as_ref()) else { continue };
            column.is_known = true;
            let mut bytes = Vec::new();
            for row in 0..batch.num_rows() {
                if values.is_null(row) {
                    column.nulls += 1;
                    continue;
                }
                bytes.clear();
                text.write(row, &mut bytes);
                column.see(&bytes, if times.is_null(row) { 0 } else { times.value(row).div_euclid(SECOND) });
            }
        }

        let hashes: Vec<Option<Vec<u64>>> = self.names.iter().map(|name| hashes_of(batch, name)).collect();
        for ((left, right), distinct) in pairs_of(self.names.len()).zip(&mut held.pairs) {
            let (Some(Some(left)), Some(Some(right))) = (hashes.get(left), hashes.get(right)) else { continue };
            for (left, right) in left.iter().zip(right) {
                distinct.see(hash_of(*left, *right));
            }
        }
        held.see_entities(batch, &self.entity, times);
    }

    pub(super) fn finish(self) -> Profile {
        let held = self.held.into_inner().unwrap_or_else(PoisonError::into_inner);
        let Ends { times, outliers } = held.ends();
        let known = |at: usize| held.columns.get(at).is_some_and(|column| column.is_known);
        let mut pairs = Vec::new();
        for ((left, right), distinct) in pairs_of(self.names.len()).zip(&held.pairs) {
            if let (Some(one), Some(other), true) =
                (self.names.get(left), self.names.get(right), known(left) && known(right))
            {
                pairs.push(PairProfile { columns: [one.clone(), other.clone()], distinct: distinct.count() });
            }
        }
        let apart = APART.iter().zip(&held.apart).find(|(_, (_, is_shared))| !is_shared).map_or(1, |(unit, _)| *unit);
        let columns = self.names.into_iter().zip(held.columns).filter(|(_, column)| column.is_known);
        Profile {
            rows: held.rows,
            times,
            outliers,
            step: UNITS.into_iter().find(|unit| held.step % unit == 0).unwrap_or(1),
            grid: held.step,
            apart: if self.entity.is_empty() { 0 } else { apart },
            pairs,
            columns: columns.map(|(name, column)| column.finish(name)).collect(),
        }
    }
}

/// The places of all pairs of so many columns.
fn pairs_of(columns: usize) -> impl Iterator<Item = (usize, usize)> {
    let columns = columns.min(MOST_PAIRED);
    (0..columns).flat_map(move |left| (left + 1..columns).map(move |right| (left, right)))
}

/// The hashes of the values of a column, one a row; `None` if there is no such column.
fn hashes_of(batch: &RecordBatch, name: &str) -> Option<Vec<u64>> {
    let values = batch.column_by_name(name)?;
    let mut text = ColumnText::new(values.as_ref())?;
    let mut bytes = Vec::new();
    let hashes = (0..batch.num_rows()).map(|row| {
        bytes.clear();
        if values.is_valid(row) {
            text.write(row, &mut bytes);
        }
        xxh3_64(&bytes)
    });
    Some(hashes.collect())
}

impl Held {
    /// Looks at which units of time have two rows of one entity.
    fn see_entities(
        &mut self,
        batch: &RecordBatch,
        entity: &[String],
        times: &PrimitiveArray<TimestampMicrosecondType>,
    ) {
        let columns: Vec<Vec<u64>> = entity.iter().filter_map(|name| hashes_of(batch, name)).collect();
        for row in 0..if columns.is_empty() { 0 } else { times.len() } {
            let hash = columns.iter().filter_map(|column| column.get(row)).fold(0, |one, other| hash_of(one, *other));
            for (unit, (seen, is_shared)) in APART.iter().zip(&mut self.apart) {
                if times.is_valid(row) && !*is_shared {
                    *is_shared = !seen.see(hash_of(hash, times.value(row).div_euclid(*unit) as u64));
                }
            }
        }
    }

    fn see_time(&mut self, time: i64) {
        self.rows += 1;
        if self.step == 0 || time % self.step != 0 {
            self.step = common(self.step, time);
        }
        let day = self.days.entry(time.div_euclid(DAY)).or_insert((0, time, time));
        *day = (day.0 + 1, day.1.min(time), day.2.max(time));
    }

    /// First and last event time without outliers, and these.
    fn ends(&self) -> Ends {
        let Some((first, last)) = self.days.keys().next().zip(self.days.keys().next_back()) else {
            return Ends::default();
        };
        let rare = if self.rows < ENOUGH { 0 } else { (self.rows / RARE).max(1) };
        let low = day_of_rank(self.days.iter(), rare).unwrap_or(*first);
        let high = day_of_rank(self.days.iter().rev(), rare).unwrap_or(*last);
        let reach = (high - low + 1).saturating_mul(FAR);
        let near = low - reach..=high + reach;

        let mut ends = Ends::default();
        let origin = low.saturating_mul(DAY);
        for (day, (rows, first, last)) in &self.days {
            if near.contains(day) {
                ends.times =
                    Some(ends.times.map_or((*first, *last), |(start, end)| (start.min(*first), end.max(*last))));
                continue;
            }
            let farthest = if *day > high { *last } else { *first };
            let known = ends.outliers.unwrap_or(Outliers { rows: 0, farthest });
            let is_farther = farthest.abs_diff(origin) > known.farthest.abs_diff(origin);
            let farthest = if is_farther { farthest } else { known.farthest };
            ends.outliers = Some(Outliers { rows: known.rows + rows, farthest });
        }
        ends
    }
}

/// The day of the row that has `below` rows before it.
fn day_of_rank<'a>(days: impl Iterator<Item = (&'a i64, &'a (u64, i64, i64))>, below: u64) -> Option<i64> {
    let mut seen = 0;
    for (day, (rows, ..)) in days {
        seen += rows;
        if seen > below {
            return Some(*day);
        }
    }
    None
}

/// The greatest common divisor.
fn common(one: i64, other: i64) -> i64 {
    let (mut one, mut other) = (one.unsigned_abs(), other.unsigned_abs());
    while other > 0 {
        (one, other) = (other, one % other);
    }
    i64::try_from(one).unwrap_or(1)
}

impl HeldColumn {
    fn see(&mut self, value: &[u8], second: i64) {
        self.longest = self.longest.max(value.len());
        self.is_signed |= value.first() == Some(&b'-');
        if let Some((first, rows)) = self.values.get_mut(value) {
            *first = second.min(*first);
            *rows += 1;
            return;
        }
        if self.values.len() < MOST_VALUES {
            self.values.insert(value.to_vec(), (second, 1));
        }
        self.distinct.see(xxh3_64(value));
    }

    fn finish(self, name: String) -> ColumnProfile {
        let mut values = Vec::with_capacity(self.values.len());
        for (text, (first, rows)) in self.values {
            values.push(ProfiledValue { text: String::from_utf8_lossy(&text).into_owned(), rows, first });
        }
        values.sort_by(|one, other| (one.first, &one.text).cmp(&(other.first, &other.text)));
        ColumnProfile {
            name,
            distinct: self.distinct.count(),
            nulls: self.nulls,
            longest: self.longest,
            is_signed: self.is_signed,
            values,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, StringArray, TimestampMicrosecondArray};

    use super::*;

    fn profile(rows: &[(Option<&str>, i64)]) -> Profile {
        let names: ArrayRef = Arc::new(StringArray::from_iter(rows.iter().map(|row| row.0)));
        let times = TimestampMicrosecondArray::from_iter_values(rows.iter().map(|row| row.1)).with_timezone("UTC");
        let batch = RecordBatch::try_from_iter([("name", names), ("ts", Arc::new(times) as ArrayRef)]).unwrap();
        let collector = ProfileCollector::new(vec!["name".to_owned(), "none".to_owned()], vec!["name".to_owned()]);
        collector.look(&batch, "ts");
        collector.finish()
    }

    #[test]
    fn values_are_counted() {
        let found = profile(&[(Some("b"), 2 * MINUTE), (Some("a"), MINUTE), (None, 0), (Some("b"), 3 * MINUTE)]);
        assert_eq!((found.rows, found.step, found.times), (4, MINUTE, Some((0, 3 * MINUTE))));
        assert_eq!(profile(&[(None, 15 * MINUTE), (None, 30 * MINUTE), (None, 75 * MINUTE)]).grid, 15 * MINUTE);
        let column = found.column("name").unwrap();
        assert_eq!((column.distinct, column.nulls, column.longest), (2, 1, 1));
        let values: Vec<_> = column.values.iter().map(|value| (value.text.as_str(), value.rows, value.first)).collect();
        assert_eq!(values, [("a", 1, 60), ("b", 2, 120)]);
        assert!(found.column("none").is_none() && found.distinct("none") == 1.0);
    }

    #[test]
    fn a_column_is_within_another_if_each_of_its_values_has_one_of_it() {
        let text = |values: Vec<String>| -> ArrayRef { Arc::new(StringArray::from(values)) };
        let found = |rows: usize, tenants: usize| {
            let sensors = text((0..rows).map(|at| format!("s{}", at % 40)).collect());
            let tenant = text((0..rows).map(|at| format!("t{}", at % 40 % tenants)).collect());
            let metrics = text((0..rows).map(|at| format!("m{}", at / 40 % 3)).collect());
            let times = TimestampMicrosecondArray::from_iter_values((0..rows).map(|at| at as i64)).with_timezone("UTC");
            let columns: [(&str, ArrayRef); 4] =
                [("sensor", sensors), ("tenant", tenant), ("metric", metrics), ("ts", Arc::new(times))];
            let names = ["sensor", "tenant", "metric"].map(str::to_owned);
            let collector = ProfileCollector::new(names.to_vec(), Vec::new());
            collector.look(&RecordBatch::try_from_iter(columns).unwrap(), "ts");
            collector.finish()
        };
        let profile = found(240, 8);
        assert!(profile.is_within("sensor", "tenant") && !profile.is_within("tenant", "sensor"), "{profile:?}");
        assert!(!profile.is_within("sensor", "metric") && !profile.is_within("metric", "sensor"), "{profile:?}");
        assert_eq!(
            (profile.distinct_pairs("tenant", "sensor"), profile.distinct_pairs("sensor", "metric")),
            (40.0, 120.0)
        );
        // One tenant alone, and sensors that are seen once, say nothing.
        assert!(!found(240, 1).is_within("sensor", "tenant") && !found(40, 8).is_within("sensor", "tenant"));
    }

    #[test]
    fn the_unit_that_tells_the_rows_of_an_entity_apart_is_the_coarsest() {
        let apart = |times: &[i64]| profile(&times.iter().map(|time| (Some("a"), *time)).collect::<Vec<_>>()).apart;
        assert_eq!(apart(&[0, 61 * SECOND, 125 * SECOND]), MINUTE);
        assert_eq!(apart(&[0, 59 * SECOND + 7]), SECOND);
        assert_eq!(apart(&[0, 999_999]), 1000);
        assert_eq!(apart(&[0, 999]), 1);
    }

    #[test]
    fn a_wrong_year_is_an_outlier_and_a_pause_is_none() {
        let start = 1_600_000_000 * SECOND;
        let mut rows: Vec<(Option<&str>, i64)> = (0..3000).map(|at| (Some("a"), start + at * MINUTE)).collect();
        let whole = profile(&rows);
        assert_eq!((whole.times, whole.outliers), (Some((start, start + 2999 * MINUTE)), None));
        let wrong = 253_402_214_400 * SECOND;
        rows.push((Some("a"), wrong));
        let found = profile(&rows);
        assert_eq!((found.times, found.outliers), (whole.times, Some(Outliers { rows: 1, farthest: wrong })));
        rows.push((Some("a"), 0));
        assert_eq!(profile(&rows).outliers, Some(Outliers { rows: 2, farthest: wrong }));
        // Thirty days before the others, which take three.
        rows.truncate(3000);
        rows.push((Some("a"), start - 30 * DAY));
        assert_eq!(profile(&rows).outliers, None);
    }
}
