//! What a source holds: its times, and the values of chosen columns.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Mutex, PoisonError};

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::TimestampMicrosecondType;
use tidetable_layout::cell::ColumnText;
use tidetable_layout::time::{DAY, HOUR, MINUTE, SECOND};
use xxhash_rust::xxh3::xxh3_64;

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
    /// The columns that were asked for, as far as the source has them.
    pub columns: Vec<ColumnProfile>,
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
}

/// Collects a [`Profile`]. What it finds does not depend on the order of the rows.
#[derive(Debug)]
pub(super) struct ProfileCollector {
    names: Vec<String>,
    held: Mutex<Held>,
}

#[derive(Debug, Default)]
struct Held {
    rows: u64,
    step: i64,
    /// Rows, first and last event time of each day.
    days: BTreeMap<i64, (u64, i64, i64)>,
    columns: Vec<HeldColumn>,
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
    hashes: HashSet<u64>,
    /// Zeros that a kept hash begins with.
    zeros: u32,
}

impl ProfileCollector {
    pub(super) fn new(mut names: Vec<String>) -> Self {
        names.sort_unstable();
        names.dedup();
        let columns = names.iter().map(|_| HeldColumn::default()).collect();
        Self { names, held: Mutex::new(Held { columns, ..Held::default() }) }
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
    }

    pub(super) fn finish(self) -> Profile {
        let held = self.held.into_inner().unwrap_or_else(PoisonError::into_inner);
        let Ends { times, outliers } = held.ends();
        let columns = self.names.into_iter().zip(held.columns).filter(|(_, column)| column.is_known);
        Profile {
            rows: held.rows,
            times,
            outliers,
            step: UNITS.into_iter().find(|unit| held.step % unit == 0).unwrap_or(1),
            grid: held.step,
            columns: columns.map(|(name, column)| column.finish(name)).collect(),
        }
    }
}

impl Held {
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
        let hash = xxh3_64(value);
        if hash.leading_zeros() < self.zeros || !self.hashes.insert(hash) {
            return;
        }
        while self.hashes.len() > MOST_HASHES {
            self.zeros += 1;
            let zeros = self.zeros;
            self.hashes.retain(|hash| hash.leading_zeros() >= zeros);
        }
    }

    fn finish(self, name: String) -> ColumnProfile {
        let mut values = Vec::with_capacity(self.values.len());
        for (text, (first, rows)) in self.values {
            values.push(ProfiledValue { text: String::from_utf8_lossy(&text).into_owned(), rows, first });
        }
        values.sort_by(|one, other| (one.first, &one.text).cmp(&(other.first, &other.text)));
        ColumnProfile {
            name,
            distinct: (self.hashes.len() as u64) << self.zeros,
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
        let collector = ProfileCollector::new(vec!["name".to_owned(), "none".to_owned()]);
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
