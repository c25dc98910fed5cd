//! Compares a table with one in Bigtable, cell by cell, in key order on both sides.

use std::sync::Arc;

use bytes::Bytes;
use futures::{StreamExt, TryStreamExt, stream};
use tidetable_cells::CellScan;
use tidetable_layout::KeyRange;
use tidetable_runner::Stop;
use tidetable_store::Snapshot;
use tokio::runtime::Handle;

use crate::client::{Client, ReadQuery, Row, TableName};
use crate::error::{BigtableError, Result};
use crate::push::{FamilyDifference, TableSchema, equal_splits, ranges, weights};
use crate::rows::{CellDifference, GcView, Joined, LocalRows, RemoteRows, cell_differences};

/// Ranges of keys that are compared at a time, and in all.
const WORKERS: usize = 4;
const RANGES: u64 = 32;

/// A comparison of a table here with one in Bigtable.
#[derive(Debug, Clone)]
pub struct Diff {
    /// The table here, in one version.
    pub snapshot: Snapshot,
    /// Reads the table in Bigtable.
    pub client: Client,
    /// The table in Bigtable.
    pub target: TableName,
    /// The row keys that are compared.
    pub range: KeyRange,
    /// The logical time of garbage collection on both sides, microseconds since the epoch.
    pub now: i64,
    /// The number of differences that are kept.
    pub most: usize,
    /// Ends it at the next opportunity.
    pub stop: Stop,
}

/// What a comparison found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DiffReport {
    /// Rows that are equal.
    pub rows_equal: u64,
    /// Rows on both sides that differ.
    pub rows_differ: u64,
    /// Rows that have cells here, and none in Bigtable.
    pub rows_here: u64,
    /// Rows only in Bigtable.
    pub rows_there: u64,
    /// Cells that are equal.
    pub cells_equal: u64,
    /// Cells with another value.
    pub cells_differ: u64,
    /// Cells here that Bigtable does not have.
    pub cells_here: u64,
    /// Cells only in Bigtable.
    pub cells_there: u64,
    /// Cells in Bigtable that had expired, and count for nothing.
    pub expired: u64,
    /// The first differences, in key order.
    pub first: Vec<Difference>,
    /// Families whose cells merge in another way.
    pub families: Vec<FamilyKinds>,
}

/// A family that is of one kind here and of another in Bigtable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FamilyKinds {
    /// The id that both families have.
    pub family: String,
    /// Its kind here, as a job file names it, or `newest`.
    pub here: String,
    /// Its kind in Bigtable.
    pub there: String,
}

/// A cell that differs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// The key of its row.
    pub key: Bytes,
    /// The id of its family.
    pub family: Arc<str>,
    /// Its qualifier; may be empty.
    pub qualifier: Bytes,
    /// Microseconds since the epoch.
    pub timestamp: i64,
    /// The value here; `None` for no cell.
    pub here: Option<Bytes>,
    /// The value in Bigtable.
    pub there: Option<Bytes>,
}

impl DiffReport {
    /// Whether both sides are equal: their cells, and how these merge.
    pub fn is_equal(&self) -> bool {
        self.cells_differ + self.cells_here + self.cells_there == 0 && self.families.is_empty()
    }

    /// Adds what was found in the keys that follow.
    fn add(&mut self, other: Self, most: usize) {
        self.rows_equal += other.rows_equal;
        self.rows_differ += other.rows_differ;
        self.rows_here += other.rows_here;
        self.rows_there += other.rows_there;
        self.cells_equal += other.cells_equal;
        self.cells_differ += other.cells_differ;
        self.cells_here += other.cells_here;
        self.cells_there += other.cells_there;
        self.expired += other.expired;
        self.first.extend(other.first);
        self.first.truncate(most);
    }

    /// Counts a row of each side.
    fn count(&mut self, key: &Bytes, here: Option<&Row>, there: Option<&Row>, most: usize) {
        let [left, right] = [here, there].map(|row| row.map(|row| row.cells.clone()).unwrap_or_default());
        let before = self.cells_differ + self.cells_here + self.cells_there;

        let equal = cell_differences(&left, &right, |difference| {
            let (cell, here, there) = match difference {
                CellDifference::Left(cell) => {
                    self.cells_here += 1;
                    (cell, Some(&cell.value), None)
                }
                CellDifference::Right(cell) => {
                    self.cells_there += 1;
                    (cell, None, Some(&cell.value))
                }
                CellDifference::Value(here, there) => {
                    self.cells_differ += 1;
                    (here, Some(&here.value), Some(&there.value))
                }
            };
            if self.first.len() < most {
                self.first.push(Difference {
                    key: key.clone(),
                    family: Arc::clone(&cell.family),
                    qualifier: cell.qualifier.clone(),
                    timestamp: cell.timestamp,
                    here: here.cloned(),
                    there: there.cloned(),
                });
            }
        });
        self.cells_equal += equal;

        let differs = self.cells_differ + self.cells_here + self.cells_there > before;
        match (left.is_empty(), right.is_empty()) {
            (true, true) => {}
            (false, true) => self.rows_here += 1,
            (true, false) => self.rows_there += 1,
            (false, false) if differs => self.rows_differ += 1,
            (false, false) => self.rows_equal += 1,
        }
    }
}

impl Diff {
    /// Compares.
    ///
    /// # Errors
    /// If a side cannot be read, or [`BigtableError::Stopped`].
    pub fn run(&self, runtime: &Handle) -> Result<DiffReport> {
        let gc = GcView::new(&self.snapshot, self.now)?;
        let snapshot = self.snapshot.as_of_now(self.now)?;
        let splits = equal_splits(&weights(&snapshot, &self.range)?, RANGES, &self.range.start);
        let ranges = ranges(&self.range, splits);
        let ranges = ranges
            .into_iter()
            .map(|range| KeyRange { start: range.start, end: Some(range.end).filter(|end| !end.is_empty()) });

        let compared = stream::iter(ranges).map(|range| {
            let (diff, snapshot, gc) = (self.clone(), snapshot.clone(), gc.clone());
            async move {
                let work = tokio::task::spawn_blocking(move || diff.range(&snapshot, &gc, range));
                work.await.unwrap_or(Err(BigtableError::Stopped { signal: 0 }))
            }
        });

        let most = self.most;
        let begin = DiffReport { families: self.families(runtime)?, ..DiffReport::default() };
        runtime.block_on(compared.buffered(WORKERS).try_fold(begin, |mut all, one| async move {
            all.add(one, most);
            Ok(all)
        }))
    }

    /// Families of both sides whose kinds differ.
    fn families(&self, runtime: &Handle) -> Result<Vec<FamilyKinds>> {
        let Some(table) = runtime.block_on(self.client.table(&self.target))? else { return Ok(Vec::new()) };
        let schema = TableSchema::of(&self.snapshot)?;
        let mut families = Vec::new();
        for (family, difference) in schema.differences(&table) {
            if let FamilyDifference::Kind { there } = difference {
                let here = schema.families.get(&family).map(|known| known.kind.word().to_owned()).unwrap_or_default();
                families.push(FamilyKinds { family, here, there });
            }
        }
        Ok(families)
    }

    fn range(&self, snapshot: &Snapshot, gc: &GcView, range: KeyRange) -> Result<DiffReport> {
        let there = self.client.read_rows(&self.target, ReadQuery::range(range.clone()));
        let here = LocalRows::new(CellScan { keys: vec![range], ..CellScan::new(snapshot.clone()) });
        let mut report = DiffReport::default();
        for pair in Joined::new(here, RemoteRows::new(there)) {
            if let Some(stopped) = self.stop.asked() {
                return Err(BigtableError::Stopped { signal: stopped.0 });
            }
            let mut pair = pair?;
            if let Some(row) = &mut pair.right {
                report.expired += gc.apply(row);
            }
            report.count(&pair.key, pair.left.as_ref(), pair.right.as_ref(), self.most);
        }
        Ok(report)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::Cell;

    #[test]
    fn rows_and_cells_are_counted_and_the_first_are_kept() {
        let cell =
            |value: &'static str| Cell { family: "f".into(), qualifier: "q".into(), timestamp: 0, value: value.into() };
        let row =
            |values: &[&'static str]| Row { key: "r".into(), cells: values.iter().map(|value| cell(value)).collect() };
        let (a, b, key) = (row(&["a"]), row(&["b"]), Bytes::from("r"));
        let mut report = DiffReport::default();
        report.count(&key, Some(&a), Some(&a), 2);
        assert!(report.is_equal());
        report.count(&key, Some(&a), Some(&b), 2);
        report.count(&key, Some(&a), None, 2);
        report.count(&key, Some(&row(&[])), Some(&b), 2);
        assert_eq!((report.rows_equal, report.rows_differ, report.rows_here, report.rows_there), (1, 1, 1, 1));
        assert_eq!((report.cells_equal, report.cells_differ, report.cells_here, report.cells_there), (1, 1, 1, 1));
        assert_eq!(report.first.len(), 2);
        let mut all = DiffReport::default();
        all.add(report.clone(), 1);
        all.add(report, 1);
        assert_eq!((all.cells_equal, all.first.len(), all.is_equal()), (2, 1, false));
    }
}
