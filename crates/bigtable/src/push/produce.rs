//! Mutations of a range of keys, made by a thread that may block.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use bytes::Bytes;
use tidetable_cells::CellScan;
use tidetable_layout::KeyRange;
use tidetable_layout::schema::Merge;
use tidetable_store::Snapshot;
use tokio::sync::mpsc;

use crate::cells::{BatchScan, CellBatch};
use crate::client::{Cell, Client, ReadQuery, TableName};
use crate::error::{BigtableError, Result};
use crate::push::batch::{Batch, BatchLimits, BatchWriter};
use crate::push::merge::{MergeRow, MergedCell};
use crate::rows::{CellDifference, GcView, Joined, LocalRows, Pair, RemoteRows, cell_differences};

/// What a push compares its version with.
#[derive(Debug, Clone)]
pub(crate) enum Base {
    Nothing,
    /// Another version, and the SSTs of both that may differ; all without.
    Version(Snapshot, Option<Arc<HashSet<String>>>),
    /// The cells of the target, under these rules.
    Target(GcView),
}

/// What the ranges of a push have in common.
#[derive(Debug, Clone)]
pub(crate) struct Work {
    pub(crate) push: String,
    pub(crate) snapshot: Snapshot,
    pub(crate) base: Base,
    pub(crate) aggregates: BTreeMap<String, Merge>,
    pub(crate) client: Client,
    pub(crate) target: TableName,
    pub(crate) limits: BatchLimits,
    pub(crate) step: i64,
    /// When the push began, microseconds since the epoch.
    pub(crate) started: i64,
}

impl Work {
    /// Sends batches of the rows of `range` in key order, until nobody takes them.
    ///
    /// # Errors
    /// Of reading, and for cells that cannot be pushed.
    pub(crate) fn produce(&self, range: &KeyRange, sender: &mpsc::Sender<Batch>) -> Result<()> {
        let mut out =
            Producer { work: self, writer: BatchWriter::new(self.limits, self.step), sender, unwanted: false };
        let scan = CellScan { keys: vec![range.clone()], ..CellScan::new(self.snapshot.clone()) };

        match &self.base {
            Base::Nothing => {
                let mut failed = Ok(());
                BatchScan::from(scan).run(&mut |batch| {
                    failed = out.cells(&batch);
                    failed.is_ok() && !out.unwanted
                })?;
                failed?;
            }
            Base::Version(before, ssts) => {
                let new = CellScan { ssts: ssts.clone(), ..scan };
                let old = CellScan::new(before.clone());
                let old = CellScan { keys: vec![range.clone()], ssts: ssts.clone(), ..old };
                out.pairs(Joined::new(LocalRows::new(new), LocalRows::new(old)))?;
            }
            Base::Target(gc) => {
                let stream = self.client.read_rows(&self.target, ReadQuery::range(range.clone()));
                let there = RemoteRows::new(stream).map(|row| {
                    row.map(|mut row| {
                        gc.apply(&mut row);
                        row
                    })
                });
                out.pairs(Joined::new(LocalRows::new(scan), there))?;
            }
        }

        let last = out.writer.take();
        out.send(last);
        Ok(())
    }
}

struct Producer<'a> {
    work: &'a Work,
    writer: BatchWriter,
    sender: &'a mpsc::Sender<Batch>,
    /// Whether nobody takes batches any more.
    unwanted: bool,
}

impl Producer<'_> {
    fn send(&mut self, batch: Batch) {
        if !batch.entries.is_empty() && self.sender.blocking_send(batch).is_err() {
            self.unwanted = true;
        }
    }

    fn pass(&mut self, full: Option<Batch>) {
        if let Some(batch) = full {
            self.send(batch);
        }
    }

    /// All cells of a batch of rows.
    fn cells(&mut self, batch: &CellBatch) -> Result<()> {
        let columns = batch.columns();
        let aggregates = &self.work.aggregates;
        let kinds: Vec<Option<Merge>> = columns.iter().map(|column| aggregates.get(&*column.family).copied()).collect();

        for row in 0..batch.rows() {
            let key = batch.key(row);
            let mut merged = Vec::new();
            for cell in batch.cells(row) {
                let at = batch.column_of().get(cell).map_or(usize::MAX, |column| *column as usize);
                let Some(column) = columns.get(at) else { continue };
                if let Some(kind) = kinds.get(at).copied().flatten() {
                    merged.push(MergedCell {
                        kind,
                        family: column.family.to_string(),
                        qualifier: column.qualifier.clone(),
                        timestamp: batch.timestamp(cell),
                        before: None,
                        after: batch.shared_value(cell),
                    });
                    continue;
                }
                if self.writer.row_is_full() {
                    let full = self.writer.end_row(key, false);
                    self.pass(full);
                }
                self.writer.set(&column.family, &column.qualifier, batch.timestamp(cell), batch.value(cell));
            }

            let full = self.writer.end_row(key, true);
            self.pass(full);
            if !merged.is_empty() {
                self.merge(&batch.shared_key(row), merged)?;
            }
            if self.unwanted {
                return Ok(());
            }
        }
        Ok(())
    }

    /// The differences of joined rows: the new ones on the left.
    fn pairs(&mut self, pairs: impl Iterator<Item = Result<Pair>>) -> Result<()> {
        for pair in pairs {
            self.pair(&pair?)?;
            if self.unwanted {
                break;
            }
        }
        Ok(())
    }

    fn pair(&mut self, pair: &Pair) -> Result<()> {
        let [new, old] = [&pair.left, &pair.right].map(|row| row.as_ref().map_or(&[][..], |row| row.cells.as_slice()));
        let mut differences = Vec::new();
        cell_differences(new, old, |difference| differences.push(difference));

        let mut merged = Vec::new();
        for difference in differences {
            let (cell, before, after): (&Cell, Option<&Bytes>, Option<&Bytes>) = match difference {
                CellDifference::Left(cell) => (cell, None, Some(&cell.value)),
                CellDifference::Right(cell) => (cell, Some(&cell.value), None),
                CellDifference::Value(new, old) => (new, Some(&old.value), Some(&new.value)),
            };
            if self.writer.row_is_full() {
                let full = self.writer.end_row(&pair.key, false);
                self.pass(full);
            }
            let Some(after) = after else {
                self.writer.delete(&cell.family, &cell.qualifier, cell.timestamp);
                continue;
            };
            match self.work.aggregates.get(&*cell.family).copied() {
                Some(kind) => merged.push(MergedCell {
                    kind,
                    family: cell.family.to_string(),
                    qualifier: cell.qualifier.clone(),
                    timestamp: cell.timestamp,
                    before: before.cloned(),
                    after: after.clone(),
                }),
                None => self.writer.set(&cell.family, &cell.qualifier, cell.timestamp, after),
            }
        }

        let full = self.writer.end_row(&pair.key, true);
        self.pass(full);
        if merged.is_empty() { Ok(()) } else { self.merge(&pair.key, merged) }
    }

    fn merge(&mut self, key: &Bytes, cells: Vec<MergedCell>) -> Result<()> {
        for cells in cells.chunks(self.work.limits.mutations) {
            let row = MergeRow::new(&self.work.push, key, cells.to_vec(), self.work.started);
            let row = row.map_err(|cell| BigtableError::NoMerge {
                table: self.work.snapshot.table().name().to_owned(),
                key: key.escape_ascii().to_string(),
                family: cell.family,
                kind: cell.kind.word(),
            })?;
            let full = self.writer.merge(row);
            self.pass(full);
        }
        Ok(())
    }
}
