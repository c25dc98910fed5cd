//! Scans of cells.

use std::collections::HashSet;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use tidetable_layout::cell::{BlockCell, BlockCells, CellSelection, ColumnName, GroupsWithout};
use tidetable_layout::{Block, KeyRange, StoredSchema};
use tidetable_store::read::ScanOptions;
use tidetable_store::{ScanRange, Snapshot};

use crate::filter::{ALL_TIMES, CellFilter, Columns, NamesAndTimes, TimePruner, has_stored_timestamps, is_at_zero};
use crate::key_pattern::{KeyPattern, intersection};
use crate::pieces;
use crate::row::{CellRow, RowSink};

/// Which rows a scan returns.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Rows {
    /// Rows with a selected cell.
    #[default]
    WithSelected,
    /// Rows with a cell of any column within the times of the scan.
    WithinTimes,
    /// All rows of the keys, also those without selected cells.
    All,
}

/// A scan of the cells of a pinned version.
#[derive(Clone)]
pub struct CellScan {
    /// The version; one that [includes expired cells](Snapshot::including_expired) shows these, too.
    pub snapshot: Snapshot,
    /// Only rows in these ranges, which may overlap: a row is returned once.
    pub keys: Vec<KeyRange>,
    /// Instead of `keys`, ranges as the store divides them, read one after the other.
    pub ranges: Option<Vec<ScanRange>>,
    /// Only cells of these SSTs, by id: those in which two versions may differ.
    pub ssts: Option<Arc<HashSet<String>>>,
    /// Only rows whose keys match.
    pub pattern: Option<KeyPattern>,
    /// Whether rows come by descending key; the order within rows stays.
    pub reversed: bool,
    /// At most this many rows.
    pub limit: u64,
    /// Which rows are returned.
    pub rows: Rows,
    /// Only cells of these columns. Others are not decoded.
    pub columns: Option<Columns>,
    /// Only cells with timestamps in this range, microseconds.
    pub times: Range<i64>,
    /// Only the newest cells of each column of a row, this many, of those within the times.
    pub newest: usize,
    /// Counters of the scan, and a stripe pruner that replaces the one by times. Record filters do not apply to cells.
    pub options: ScanOptions,
}

impl fmt::Debug for CellScan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { keys, reversed, limit, rows, times, newest, .. } = self;
        write!(f, "CellScan {{ keys: {keys:?}, reversed: {reversed}, limit: {limit}, rows: {rows:?}, ")?;
        write!(f, "times: {times:?}, newest: {newest}, .. }}")
    }
}

impl CellScan {
    /// All cells of `snapshot`.
    pub fn new(snapshot: Snapshot) -> Self {
        Self {
            snapshot,
            keys: vec![KeyRange::all()],
            ranges: None,
            ssts: None,
            pattern: None,
            reversed: false,
            limit: u64::MAX,
            rows: Rows::default(),
            columns: None,
            times: ALL_TIMES,
            newest: usize::MAX,
            options: ScanOptions::default(),
        }
    }

    /// Passes rows to `sink` until it wants no more.
    ///
    /// # Errors
    /// If an SST cannot be read or does not match the schema; errors of `sink`.
    pub fn run<S: RowSink>(&self, sink: &mut S) -> Result<(), S::Error> {
        if self.times.is_empty() && self.rows != Rows::All {
            return Ok(());
        }
        self.run_filtered(&NamesAndTimes { columns: self.columns.as_ref(), times: &self.times }, sink)
    }

    /// As [`Self::run`], with a filter instead of columns and times. Both still tell which rows are [`Rows::WithinTimes`].
    ///
    /// # Errors
    /// As [`Self::run`]; errors of `filter`.
    pub fn run_filtered<F, S>(&self, filter: &F, sink: &mut S) -> Result<(), S::Error>
    where
        F: CellFilter<S::Error>,
        S: RowSink,
    {
        let without = match self.rows {
            Rows::WithinTimes => GroupsWithout::Timestamps,
            Rows::All if self.snapshot.may_empty_rows() => GroupsWithout::Rows,
            Rows::All | Rows::WithSelected => GroupsWithout::Nothing,
        };
        let schema = self.snapshot.schema();
        let selection = CellSelection::new(schema, without, |_, family, qualifier| filter.may_pass(family, qualifier));
        let is_empty = self.rows == Rows::WithSelected && selection.schema.groups.is_empty();
        if is_empty || self.limit == 0 {
            return Ok(());
        }

        let mut options = self.pruned_by_times(&selection.schema);
        let counts = Arc::clone(options.counts.get_or_insert_default());
        let mut pass = Pass { scan: self, filter, sink, selection, options, left: self.limit, cells: Vec::new() };
        for range in self.in_order() {
            let goes_on = if self.reversed { pass.backward(&range)? } else { pass.forward(&range)? };
            if !goes_on {
                break;
            }
        }
        tracing::debug!(
            stripes = counts.stripes().1,
            pages = counts.pages(),
            bytes = counts.bytes().1,
            "cells_scanned"
        );
        Ok(())
    }

    /// The options, with a pruner by times where metadata covers the timestamps of all cells that show a row.
    fn pruned_by_times(&self, selected: &StoredSchema) -> ScanOptions {
        let mut options = self.options.clone();
        let is_covered = match self.rows {
            Rows::WithSelected => self.is_told_by_metadata(selected),
            Rows::WithinTimes => self.is_told_by_metadata(self.snapshot.schema()),
            Rows::All => false,
        };
        if options.stripe_pruner.is_none() && is_covered && self.times != ALL_TIMES {
            options.stripe_pruner = Some(Arc::new(TimePruner(self.times.clone())));
        }
        options
    }

    /// Whether metadata of stripes tells which of them have no cell of `schema` within the times: it has no cells at timestamp 0, which
    /// metadata does not cover, or all of those lie outside.
    fn is_told_by_metadata(&self, schema: &StoredSchema) -> bool {
        !self.times.contains(&0) || has_stored_timestamps(schema)
    }

    /// The ranges to read, in the order of the scan.
    fn in_order(&self) -> Box<dyn Iterator<Item = ScanRange> + '_> {
        let ranges: Box<dyn DoubleEndedIterator<Item = ScanRange> + '_> = match &self.ranges {
            Some(ranges) => Box::new(ranges.iter().cloned()),
            None => {
                let mut keys = KeyRange::disjoint(self.keys.clone());
                if let Some(matching) = self.pattern.as_ref().and_then(KeyPattern::ranges) {
                    keys = intersection(&keys, matching);
                }
                // One at a time: a request may name many keys, and each range lists its SSTs.
                Box::new(keys.into_iter().filter_map(|keys| self.snapshot.whole(&keys)))
            }
        };
        let ranges = ranges.map(|mut range| {
            if let Some(ssts) = &self.ssts {
                range.ssts.retain(|sst| ssts.contains(sst));
            }
            range
        });
        if self.reversed { Box::new(ranges.rev()) } else { Box::new(ranges) }
    }
}

/// A scan in progress: its filter and sink, and how many rows may still come.
struct Pass<'a, F, S> {
    scan: &'a CellScan,
    filter: &'a F,
    sink: &'a mut S,
    selection: CellSelection,
    options: ScanOptions,
    /// Rows until the limit.
    left: u64,
    /// Cells of the current row.
    cells: Vec<BlockCell>,
}

impl<F: CellFilter<S::Error>, S: RowSink> Pass<'_, F, S> {
    /// Reads a range from its start. Returns false once no more rows are wanted.
    fn forward(&mut self, range: &ScanRange) -> Result<bool, S::Error> {
        for block in self.scan.snapshot.scan_with(range, &self.selection.projection, &self.options)? {
            if !self.block(block?)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Reads a range from its end, the blocks of a piece at a time. Returns false once no more rows are wanted.
    fn backward(&mut self, range: &ScanRange) -> Result<bool, S::Error> {
        for keys in pieces::descending(&self.scan.snapshot, range)? {
            let piece = ScanRange { keys, ..range.clone() };
            let blocks = self.scan.snapshot.scan_with(&piece, &self.selection.projection, &self.options)?;
            for block in blocks.collect::<Result<Vec<_>, _>>()?.into_iter().rev() {
                if !self.block(block)? {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// Passes the rows of a block in the order of the scan. Returns false once no more are wanted.
    fn block(&mut self, mut block: Block) -> Result<bool, S::Error> {
        let shown = match self.scan.rows {
            Rows::WithinTimes => Some(rows_within(&self.scan.times, self.scan.snapshot.schema(), &block)),
            Rows::WithSelected | Rows::All => None,
        };
        block.groups = self.selection.groups(std::mem::take(&mut block.groups));
        let filter = self.filter;
        let found = BlockCells::new(&self.selection.schema, &block, |group, records, (family, qualifier)| {
            filter.passes(group, records, ColumnName { family, qualifier })
        })?;
        let mut values = found.values()?;
        let mut key = Vec::new();

        self.sink.begin(found.names())?;
        for at in 0..block.keys.len() {
            let index = if self.scan.reversed { block.keys.len() - 1 - at } else { at };
            if shown.as_ref().is_some_and(|shown| shown.get(index) != Some(&true)) {
                continue;
            }
            if let Some(pattern) = &self.scan.pattern {
                key.clear();
                block.keys.write(index, &mut key);
                if !pattern.is_match(&key) {
                    continue;
                }
            }

            found.row(index, &mut self.cells)?;
            keep_newest(&mut self.cells, self.scan.newest);
            if self.cells.is_empty() && self.scan.rows == Rows::WithSelected {
                continue;
            }

            let (schema, found, cells) = (&self.selection.schema, &found, &self.cells);
            let mut row = CellRow { schema, block: &block, index, found, cells, values: &mut values };
            self.left -= 1;
            if !self.sink.row(&mut row)? || self.left == 0 {
                return Ok(false);
            }
        }
        self.sink.end()
    }
}

/// Keeps the first `newest` cells of each column; cells come newest first.
fn keep_newest(cells: &mut Vec<BlockCell>, newest: usize) {
    if newest == usize::MAX {
        return;
    }

    let mut column = None;
    let mut seen = 0;
    cells.retain(|cell| {
        if column.replace(cell.name) != Some(cell.name) {
            seen = 0;
        }
        seen += 1;
        seen <= newest
    });
}

/// For each row of a block that has the timestamps of all groups, whether it has a cell in `times`. Every record has a cell.
fn rows_within(times: &Range<i64>, schema: &StoredSchema, block: &Block) -> Vec<bool> {
    let mut shown = vec![false; block.keys.len()];
    for (group, stored) in schema.groups.iter().zip(&block.groups) {
        let Some(stored) = stored else { continue };
        let stored_times = stored.timestamps.as_deref().filter(|_| !is_at_zero(group));
        for (row, shown) in shown.iter_mut().enumerate().filter(|(_, shown)| !**shown) {
            let records = stored.records(row);
            *shown = match stored_times.and_then(|times| times.get(records.clone())) {
                Some(stored_times) => stored_times.iter().any(|time| times.contains(time)),
                None => !records.is_empty() && times.contains(&0),
            };
        }
    }
    shown
}
