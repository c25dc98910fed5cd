//! Epoch times that are likely of another unit than the declared one.

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::TimestampMicrosecondType;
use chrono::{DateTime, SecondsFormat};

/// Epoch units with their length in nanoseconds.
const UNITS: [(&str, i128); 4] = [("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000), ("ns", 1)];
/// Times of measurements, from 1990 to 2100, in microseconds.
const LIKELY: std::ops::Range<i64> = 631_152_000_000_000..4_102_444_800_000_000;

/// How many times of epoch columns are likely, and which are not.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EpochNotes {
    /// Times from 1990 to 2100.
    pub likely: u64,
    /// Other times.
    pub odd: u64,
    /// The first of the others.
    pub first: Option<OddEpoch>,
}

/// An epoch time that is not from 1990 to 2100.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OddEpoch {
    /// Its line, from 1; the number of its row where the format has no lines.
    pub line: u64,
    /// Its column.
    pub column: String,
    /// What it is, and what it would be in another unit: `1785715000 is 1970-01-21T16:01:55Z in ms; in s it would be ..`.
    pub text: String,
    /// Whether it is from 1990 to 2100 in another unit.
    pub has_unit: bool,
}

/// A declared epoch column: its place among the columns, and its unit.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EpochColumn {
    index: usize,
    unit: &'static str,
    nanos: i128,
}

impl EpochColumn {
    /// The column at `index`, if its format is an epoch unit.
    pub fn new(index: usize, format: &str) -> Option<Self> {
        let (unit, nanos) = UNITS.into_iter().find(|(unit, _)| format == *unit)?;
        Some(Self { index, unit, nanos })
    }
}

impl EpochNotes {
    /// Adds those of a later part of the same text.
    pub fn add(&mut self, later: &Self) {
        self.likely += later.likely;
        self.odd += later.odd;
        self.first = self.first.take().or_else(|| later.first.clone());
    }

    /// Adds the times of a batch, whose rows begin on the lines that `line` says.
    pub(crate) fn add_rows(&mut self, column: EpochColumn, batch: &RecordBatch, line: &dyn Fn(usize) -> u64) {
        let array =
            batch.columns().get(column.index).and_then(|array| array.as_primitive_opt::<TimestampMicrosecondType>());
        let Some(times) = array else { return };
        let there = (times.len() - times.null_count()) as u64;
        // Most batches have none that is odd.
        let is_likely = |time: Option<i64>| time.is_none_or(|time| LIKELY.contains(&time));
        if is_likely(arrow::compute::min(times)) && is_likely(arrow::compute::max(times)) {
            self.likely += there;
            return;
        }

        let odd = times
            .iter()
            .enumerate()
            .filter_map(|(row, time)| Some((row, time?)))
            .filter(|(_, time)| !LIKELY.contains(time));
        let count = odd.clone().count() as u64;
        self.likely += there - count;
        self.odd += count;
        if let (None, Some((row, time))) = (&self.first, odd.clone().next()) {
            let name = batch.schema().field(column.index).name().clone();
            self.first = Some(OddEpoch { line: line(row), column: name, ..odd_epoch(column, time) });
        }
    }
}

/// What a time in microseconds is, and what it would be in another unit.
fn odd_epoch(column: EpochColumn, micros: i64) -> OddEpoch {
    let EpochColumn { unit, nanos, .. } = column;
    let number = i128::from(micros) * 1000 / nanos;
    let mut text = format!("{number} is {} in {unit}", shown(micros));
    let others = UNITS.into_iter().filter(|(other, _)| *other != unit);
    let in_units = others.filter_map(|(other, nanos)| Some((other, i64::try_from(number * nanos / 1000).ok()?)));
    let likely = in_units.clone().find(|(_, micros)| LIKELY.contains(micros));
    if let Some((other, micros)) = likely {
        text.push_str(&format!("; in {other} it would be {}", shown(micros)));
    }
    OddEpoch { line: 0, column: String::new(), text, has_unit: likely.is_some() }
}

fn shown(micros: i64) -> String {
    let time = DateTime::from_timestamp_micros(micros);
    time.map_or_else(String::new, |time| time.to_rfc3339_opts(SecondsFormat::AutoSi, true))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_shown_in_the_unit_that_fits() {
        let column = EpochColumn { index: 0, unit: "ms", nanos: 1_000_000 };
        let found = odd_epoch(column, 1_785_715_000_000);
        assert_eq!(found.text, "1785715000 is 1970-01-21T16:01:55Z in ms; in s it would be 2026-08-02T23:56:40Z");
        let zero = odd_epoch(column, 0);
        assert_eq!((zero.text.as_str(), zero.has_unit), ("0 is 1970-01-01T00:00:00Z in ms", false));
    }
}
