//! Rows drawn from the inputs, for the parameters of queries.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::datatypes::{DataType, TimestampMicrosecondType};
use chrono::DateTime;
use tidetable_layout::cell::ColumnText;
use tidetable_layout::time::DAY;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Which rows to draw.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DrawSpec {
    /// The columns of which values are wanted. Rows in which one is null are not drawn.
    pub columns: Vec<String>,
    /// The number of rows to draw, at most.
    pub most: usize,
    /// Another number draws others.
    pub seed: u64,
    /// At most this much older than the newest row, microseconds.
    pub age: Option<i64>,
}

/// A row that was drawn.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Draw {
    /// Event time, microseconds since the epoch.
    pub time: i64,
    /// SQL literals of the columns.
    pub literals: Vec<String>,
}

/// Keeps the rows with the least hashes, of each day: which they are does not depend on the order of the rows.
#[derive(Debug)]
pub(crate) struct DrawCollector {
    spec: DrawSpec,
    days: Mutex<BTreeMap<i64, BTreeSet<(u64, Draw)>>>,
}

impl DrawCollector {
    pub(crate) fn new(spec: DrawSpec) -> Self {
        Self { spec, days: Mutex::default() }
    }

    /// Looks at the rows of a batch with the event times in `time`; with a window only at those within it.
    pub(crate) fn look(&self, batch: &RecordBatch, time: &str, window: Option<&Range<i64>>) {
        let times = batch.column_by_name(time).and_then(|times| times.as_primitive_opt::<TimestampMicrosecondType>());
        let columns: Option<Vec<&ArrayRef>> = self.spec.columns.iter().map(|name| batch.column_by_name(name)).collect();
        let (Some(times), Some(columns)) = (times, columns) else { return };
        let mut texts: Vec<ColumnText<'_>> =
            columns.iter().filter_map(|column| ColumnText::new(column.as_ref())).collect();

        let limits = self.limits();
        let mut found: Vec<(i64, u64, Draw)> = Vec::new();
        let mut bytes = Vec::new();
        for row in 0..batch.num_rows() {
            if times.is_null(row) || columns.iter().any(|column| column.is_null(row)) {
                continue;
            }
            let time = times.value(row);
            if window.is_some_and(|window| !window.contains(&time)) {
                continue;
            }

            bytes.clear();
            bytes.extend_from_slice(&time.to_le_bytes());
            for text in &mut texts {
                text.write(row, &mut bytes);
                bytes.push(0);
            }
            let (hash, day) = (xxh3_64_with_seed(&bytes, self.spec.seed), time.div_euclid(DAY));
            if limits.get(&day).is_none_or(|limit| hash < *limit) {
                let values = columns.iter().zip(&mut texts);
                let literals = values.map(|(column, text)| literal(column.as_ref(), text, row)).collect();
                found.push((day, hash, Draw { time, literals }));
            }
        }

        let mut days = self.days.lock().unwrap_or_else(PoisonError::into_inner);
        for (day, hash, draw) in found {
            let held = days.entry(day).or_default();
            held.insert((hash, draw));
            if held.len() > self.spec.most {
                held.pop_last();
            }
        }
    }

    /// For each day that has enough rows, the hash that a further row must stay below, as of now.
    fn limits(&self) -> BTreeMap<i64, u64> {
        let days = self.days.lock().unwrap_or_else(PoisonError::into_inner);
        let full = days.iter().filter(|(_, held)| held.len() >= self.spec.most);
        full.filter_map(|(day, held)| Some((*day, held.last()?.0))).collect()
    }

    /// The rows, in the order of their hashes; with `times` only those from the first to the last of these, microseconds.
    pub(crate) fn finish(self, times: Option<(i64, i64)>) -> Vec<Draw> {
        let days = self.days.into_inner().unwrap_or_else(PoisonError::into_inner);
        let mut drawn: Vec<&(u64, Draw)> = days.values().flatten().collect();
        if let Some((first, last)) = times {
            drawn.retain(|(_, draw)| (first..=last).contains(&draw.time));
        }

        let newest = drawn.iter().map(|(_, draw)| draw.time).max().unwrap_or_default();
        let oldest = self.spec.age.map_or(i64::MIN, |age| newest.saturating_sub(age));
        drawn.retain(|(_, draw)| draw.time >= oldest);
        drawn.sort_unstable();
        drawn.into_iter().take(self.spec.most).map(|(_, draw)| draw.clone()).collect()
    }
}

/// A value as an SQL literal.
fn literal(column: &dyn Array, text: &mut ColumnText<'_>, row: usize) -> String {
    if let Some(times) = column.as_primitive_opt::<TimestampMicrosecondType>() {
        return time_literal(times.value(row));
    }
    let mut bytes = Vec::new();
    text.write(row, &mut bytes);
    let text = String::from_utf8_lossy(&bytes).into_owned();
    match column.data_type() {
        DataType::Utf8 => format!("'{}'", text.replace('\'', "''")),
        DataType::Date32 => format!("DATE '{text}'"),
        _ => text,
    }
}

/// A time, microseconds since the epoch, as an SQL literal.
pub(crate) fn time_literal(time: i64) -> String {
    let time = DateTime::from_timestamp_micros(time).unwrap_or_default();
    format!("TIMESTAMP '{}'", time.format("%Y-%m-%dT%H:%M:%S%.6fZ"))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{StringArray, TimestampMicrosecondArray};

    use super::*;

    fn drawn(names: &[&str], times: &[i64], spec: &DrawSpec, batches: usize) -> Vec<Draw> {
        let collector = DrawCollector::new(spec.clone());
        for (names, times) in names.chunks(names.len() / batches).zip(times.chunks(times.len() / batches)) {
            let names: ArrayRef = Arc::new(StringArray::from(names.to_vec()));
            let times: ArrayRef = Arc::new(TimestampMicrosecondArray::from(times.to_vec()).with_timezone("UTC"));
            collector.look(&RecordBatch::try_from_iter([("name", names), ("ts", times)]).unwrap(), "ts", None);
        }
        collector.finish(None)
    }

    #[test]
    fn draws_do_not_depend_on_the_order_of_rows() {
        let names: Vec<&str> = (0..1000).map(|at| ["a", "it's", "c", "d"][at % 4]).collect();
        let times: Vec<i64> = (0..1000).map(|at| at * DAY / 100).collect();
        let spec = DrawSpec { columns: vec!["name".to_owned()], most: 30, seed: 1, age: None };
        let found = drawn(&names, &times, &spec, 1);
        assert_eq!(found.len(), 30);
        assert!(found.iter().any(|draw| draw.literals == ["'it''s'"]), "{found:?}");
        let (mut back_names, mut back_times) = (names.clone(), times.clone());
        back_names.reverse();
        back_times.reverse();
        assert_eq!(drawn(&back_names, &back_times, &spec, 10), found);
        assert_ne!(drawn(&names, &times, &DrawSpec { seed: 2, ..spec.clone() }, 1), found);
        let young = drawn(&names, &times, &DrawSpec { age: Some(DAY), ..spec }, 1);
        assert!(young.len() == 30 && young.iter().all(|draw| draw.time >= 9 * DAY - DAY / 100), "{young:?}");
    }
}
