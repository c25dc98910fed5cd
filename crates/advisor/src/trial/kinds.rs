//! Kinds of events in one source: a column of few values, each of which fills columns of its own, as quotes and trades do.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use arrow::array::{Array, RecordBatch};
use arrow::datatypes::DataType;
use tidetable_layout::cell::ColumnText;

/// Values of a column that tells kinds apart at most.
const MOST_VALUES: usize = 8;
/// Part of the rows of a kind in which each of its own columns has a value at least: a column that is seldom filled says nothing.
const FILLED: f64 = 0.5;

/// A column whose values are kinds of events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kinds {
    /// The name of the column that tells the kinds apart.
    pub column: String,
    /// Two kinds or more. No column is of two of them.
    pub kinds: Vec<Kind>,
}

/// A kind of events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kind {
    /// The values that mean it, as text.
    pub values: Vec<String>,
    /// Source rows with one of these values.
    pub rows: u64,
    /// The columns that it alone fills, in the order of the source.
    pub columns: Vec<String>,
}

/// Collects [`Kinds`]. What it finds does not depend on the order of the rows.
#[derive(Debug, Default)]
pub(super) struct KindCollector {
    held: Mutex<Held>,
}

#[derive(Debug, Default)]
struct Held {
    names: Vec<String>,
    /// For each column, its values; `None` once it cannot tell kinds apart.
    columns: Vec<Option<BTreeMap<Vec<u8>, Filled>>>,
}

/// The rows of a value, and for each column those in which it is filled.
#[derive(Debug, Clone, Default)]
struct Filled {
    rows: u64,
    by_column: Vec<u64>,
}

impl Filled {
    /// The rows in which the column at this place has a value.
    fn of(&self, column: usize) -> u64 {
        self.by_column.get(column).copied().unwrap_or_default()
    }
}

impl KindCollector {
    /// Looks at the rows of a batch with the event times in `time`.
    pub(super) fn look(&self, batch: &RecordBatch, time: &str) {
        let schema = batch.schema();
        // Counting does not unwind, so poisoned counts are right.
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        if held.names.is_empty() {
            held.names = schema.fields().iter().map(|field| field.name().clone()).collect();
            let can_tell = schema.fields().iter().map(|field| {
                let kinds = [DataType::Utf8, DataType::Boolean, DataType::Int64, DataType::UInt64];
                (field.name() != time && kinds.contains(field.data_type())).then(BTreeMap::new)
            });
            held.columns = can_tell.collect();
        }
        for (at, known) in held.columns.iter_mut().enumerate() {
            let Some(values) = known else { continue };
            if !see(values, batch, at) {
                *known = None;
            }
        }
    }

    /// The column of the fewest values that are kinds.
    pub(super) fn finish(self) -> Option<Kinds> {
        let Held { names, columns } = self.held.into_inner().unwrap_or_else(PoisonError::into_inner);
        let known = columns.iter().enumerate().filter_map(|(at, values)| kinds_of(&names, at, values.as_ref()?));
        known.min_by_key(|kinds| kinds.kinds.iter().map(|kind| kind.values.len()).sum::<usize>())
    }
}

/// Counts the rows of a batch by the values of the column at this place; false if it cannot tell kinds apart.
fn see(values: &mut BTreeMap<Vec<u8>, Filled>, batch: &RecordBatch, at: usize) -> bool {
    let column = batch.column(at);
    let Some(mut text) = ColumnText::new(column.as_ref()).filter(|_| column.null_count() == 0) else { return false };

    let mut bytes = Vec::new();
    for row in 0..batch.num_rows() {
        bytes.clear();
        text.write(row, &mut bytes);
        if !values.contains_key(&bytes) {
            if values.len() == MOST_VALUES {
                return false;
            }
            values.insert(bytes.clone(), Filled { rows: 0, by_column: vec![0; batch.num_columns()] });
        }
        let Some(filled) = values.get_mut(&bytes) else { continue };
        filled.rows += 1;
        for (count, other) in filled.by_column.iter_mut().zip(batch.columns()) {
            *count += u64::from(other.is_valid(row));
        }
    }
    true
}

/// The kinds that the values of a column are, if each fills columns that no other does.
fn kinds_of(names: &[String], column: usize, values: &BTreeMap<Vec<u8>, Filled>) -> Option<Kinds> {
    let mut partial: Vec<usize> = (0..names.len()).collect();
    partial.retain(|at| values.values().any(|filled| filled.of(*at) < filled.rows));

    let mut kinds: BTreeMap<Vec<usize>, Kind> = BTreeMap::new();
    for (value, filled) in values {
        let mut places = partial.clone();
        places.retain(|at| filled.of(*at) > 0);
        let least = FILLED * filled.rows as f64;
        if places.is_empty() || places.iter().any(|at| (filled.of(*at) as f64) < least) {
            return None;
        }
        let columns = places.iter().filter_map(|at| names.get(*at).cloned()).collect();
        let kind = kinds.entry(places).or_insert(Kind { values: Vec::new(), rows: 0, columns });
        kind.values.push(String::from_utf8_lossy(value).into_owned());
        kind.rows += filled.rows;
    }

    let all: usize = kinds.keys().map(Vec::len).sum();
    let is_apart = kinds.len() > 1 && all == partial.len();
    let column = names.get(column).filter(|_| is_apart)?.clone();
    Some(Kinds { column, kinds: kinds.into_values().collect() })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, Float64Array, StringArray};

    use super::*;

    /// Rows of (kind, venue), with whether `bid` and `price` are filled.
    fn found(rows: &[(&str, &str, bool, bool)]) -> Option<Kinds> {
        let kinds: ArrayRef = Arc::new(StringArray::from_iter_values(rows.iter().map(|row| row.0)));
        let venues: ArrayRef = Arc::new(StringArray::from_iter_values(rows.iter().map(|row| row.1)));
        let bids: ArrayRef = Arc::new(Float64Array::from_iter(rows.iter().map(|row| row.2.then_some(1.0))));
        let prices: ArrayRef = Arc::new(Float64Array::from_iter(rows.iter().map(|row| row.3.then_some(2.0))));
        let columns = [("venue", venues), ("kind", kinds), ("bid", bids), ("price", prices)];
        let collector = KindCollector::default();
        collector.look(&RecordBatch::try_from_iter(columns).unwrap(), "ts");
        collector.finish()
    }

    #[test]
    fn values_that_fill_columns_of_their_own_are_kinds() {
        let quotes =
            [("Q", "a", true, false), ("Q", "b", true, false), ("T", "a", false, true), ("T", "b", false, true)];
        let kinds = found(&quotes).unwrap();
        assert_eq!(kinds.column, "kind");
        let columns: Vec<_> =
            kinds.kinds.iter().map(|kind| (kind.values.join(","), kind.rows, kind.columns.join(","))).collect();
        assert_eq!(columns, [("Q".to_owned(), 2, "bid".to_owned()), ("T".to_owned(), 2, "price".to_owned())]);
        // A kind that fills both, one that fills none, and a column that is filled once in three.
        for more in [("B", "a", true, true), ("N", "a", false, false), ("Q", "a", false, true)] {
            assert_eq!(found(&[&quotes[..], &[more]].concat()), None, "{more:?}");
        }
        let seldom = [&quotes[..], &[("T", "a", false, false); 3]].concat();
        assert_eq!(found(&seldom), None);
        // All is filled everywhere.
        assert_eq!(found(&[("Q", "a", true, true), ("T", "b", true, true)]), None);
    }

    #[test]
    fn many_values_are_no_kinds() {
        let names = ["a", "b", "c", "d", "e", "f", "g", "h", "i"];
        let rows = |count: usize| -> Vec<(&str, &str, bool, bool)> {
            names.iter().take(count).enumerate().map(|(at, name)| (*name, "v", at % 2 == 0, at % 2 == 1)).collect()
        };
        assert_eq!(found(&rows(8)).map(|kinds| kinds.kinds.len()), Some(2));
        assert_eq!(found(&rows(9)), None);
    }
}
