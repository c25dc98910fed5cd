//! Scans of cells.

use std::collections::{HashMap, HashSet, VecDeque};
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use arrow::buffer::BooleanBuffer;
use bytes::Bytes;
use tidetable_layout::cell::{BlockCells, CellSelection, GroupsWithout, Passes};
use tidetable_layout::schema::{QualifierKind, TimestampKind};
use tidetable_layout::{Block, Group, GroupBlock, KeyRange, StoredSchema};
use tidetable_store::Snapshot;
use tidetable_store::read::{ScanOptions, StripeMeta, StripePruner};

use crate::cells::batch::{CellBatch, CellBatchBuilder, ColumnId};
use crate::cells::pieces;
use crate::error::{BigtableError, Result};

/// All timestamps.
const ALL_TIMES: Range<i64> = i64::MIN..i64::MAX;
/// Cells of the first batch, and of the largest ones: a scan that ends soon decodes little.
const FIRST_CELLS: usize = 1 << 10;
const MOST_CELLS: usize = 1 << 15;
/// Bytes of values at which a batch is full.
const MOST_BYTES: usize = 1 << 20;

/// Bytes of rows that a reversed scan holds, unless told otherwise.
const MOST_REVERSED: usize = 64 << 20;

/// Selects columns by family and qualifier; without a qualifier, whether any column of the family may be selected.
pub type Columns = Arc<dyn Fn(&str, Option<&[u8]>) -> bool + Send + Sync>;

/// A scan of the cells of a pinned version.
#[derive(Clone)]
pub struct CellScan {
    snapshot: Snapshot,
    ranges: Vec<KeyRange>,
    reversed: bool,
    columns: Option<Columns>,
    times: Range<i64>,
    values: bool,
    ssts: Option<Arc<HashSet<String>>>,
    most_row: usize,
    most_reversed: usize,
}

impl fmt::Debug for CellScan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { ranges, reversed, times, values, .. } = self;
        write!(f, "CellScan {{ ranges: {ranges:?}, reversed: {reversed}, times: {times:?}, values: {values} }}")
    }
}

impl CellScan {
    /// All cells of `snapshot`; one that [includes expired cells](Snapshot::including_expired) shows these, too.
    pub fn new(snapshot: Snapshot) -> Self {
        let ranges = vec![KeyRange::all()];
        Self {
            snapshot,
            ranges,
            reversed: false,
            columns: None,
            times: ALL_TIMES,
            values: true,
            ssts: None,
            most_row: usize::MAX,
            most_reversed: MOST_REVERSED,
        }
    }

    /// Only rows in these ranges, which may overlap: a row is returned once.
    #[must_use]
    pub fn ranges(self, ranges: Vec<KeyRange>) -> Self {
        Self { ranges: KeyRange::disjoint(ranges), ..self }
    }

    /// Rows by descending key; the order within rows stays.
    #[must_use]
    pub fn reversed(self, reversed: bool) -> Self {
        Self { reversed, ..self }
    }

    /// Only cells of these columns. Others are not read.
    #[must_use]
    pub fn columns(self, columns: Columns) -> Self {
        Self { columns: Some(columns), ..self }
    }

    /// Only cells of these SSTs, by id: those in which two versions may differ.
    #[must_use]
    pub fn only_ssts(self, ssts: Arc<HashSet<String>>) -> Self {
        Self { ssts: Some(ssts), ..self }
    }

    /// Only cells with timestamps in this range, microseconds.
    #[must_use]
    pub fn times(self, times: Range<i64>) -> Self {
        Self { times, ..self }
    }

    /// Whether values are returned; without, they are empty.
    #[must_use]
    pub fn values(self, values: bool) -> Self {
        Self { values, ..self }
    }

    /// Refuses rows of more than so many bytes.
    #[must_use]
    pub fn most_row(self, most_row: usize) -> Self {
        Self { most_row, ..self }
    }

    /// A reversed scan reads forward, and holds at most so many bytes of rows, or one batch, before it returns them. Where a
    /// stripe has more it is read several times.
    #[must_use]
    pub fn most_reversed(self, most_reversed: usize) -> Self {
        Self { most_reversed, ..self }
    }

    /// Passes batches of rows in key order to `send`, until it returns false. Rows without selected cells are left out; a batch
    /// without rows says that some were read and left out.
    ///
    /// # Errors
    /// If an SST cannot be read or does not match the schema, or a row is too large.
    pub fn run(&self, send: &mut dyn FnMut(CellBatch) -> bool) -> Result<()> {
        let schema = self.snapshot.schema();
        let is_wanted = |_: &Group, family: &str, qualifier: Option<&[u8]>| {
            self.columns.as_ref().is_none_or(|columns| columns(family, qualifier))
        };
        let mut work = Work {
            scan: self,
            selection: CellSelection::new(schema, GroupsWithout::Nothing, is_wanted),
            options: ScanOptions::default(),
            cells: FIRST_CELLS,
            known: Known::default(),
        };
        if work.selection.schema.groups.is_empty() || self.times.is_empty() {
            return Ok(());
        }
        if self.times != ALL_TIMES && has_stored_timestamps(&work.selection.schema) {
            work.options.stripe_pruner = Some(Arc::new(TimePruner(self.times.clone())));
        }
        if !self.reversed {
            for range in &self.ranges {
                if !work.ascending(range, send)? {
                    return Ok(());
                }
            }
            return Ok(());
        }
        for range in self.ranges.iter().rev() {
            for piece in pieces::descending(&self.snapshot, range)? {
                if !work.descending(piece, send)? {
                    return Ok(());
                }
            }
        }
        Ok(())
    }
}

/// The state of a running scan.
struct Work<'a> {
    scan: &'a CellScan,
    selection: CellSelection,
    options: ScanOptions,
    /// Cells at which the next batch is full.
    cells: usize,
    known: Known,
}

impl Work<'_> {
    /// Sends the rows of a range; returns false once `send` does.
    fn ascending(&mut self, range: &KeyRange, send: &mut dyn FnMut(CellBatch) -> bool) -> Result<bool> {
        let snapshot = &self.scan.snapshot;
        let Some(mut range) = snapshot.whole(range) else { return Ok(true) };
        if let Some(ssts) = &self.scan.ssts {
            range.ssts.retain(|sst| ssts.contains(sst));
        }
        for block in snapshot.scan_with(&range, &self.selection.projection, &self.options)? {
            if !self.block(block?, send)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Sends the rows of a range from its end. Returns false once `send` does.
    fn descending(&mut self, mut range: KeyRange, send: &mut dyn FnMut(CellBatch) -> bool) -> Result<bool> {
        loop {
            let mut batches = VecDeque::new();
            let mut bytes = 0;
            let mut is_whole = true;
            let most = self.scan.most_reversed;
            self.ascending(&range, &mut |batch| {
                if batch.rows() == 0 {
                    return true;
                }
                bytes += batch.held_bytes();
                batches.push_back(batch);
                while bytes > most && batches.len() > 1 {
                    bytes -= batches.pop_front().map_or(0, |batch| batch.held_bytes());
                    is_whole = false;
                }
                true
            })?;

            let first_key = batches.front().map(|batch| batch.key(0).to_vec());
            // Also without rows: who takes them may want no more.
            let none = batches.is_empty().then(CellBatch::default);
            while let Some(batch) = batches.pop_back() {
                // One row may be long, and is not copied.
                let batch = if batch.rows() > 1 { batch.reversed() } else { batch };
                if !send(batch) {
                    return Ok(false);
                }
            }
            if none.is_some_and(|none| !send(none)) {
                return Ok(false);
            }
            if is_whole {
                return Ok(true);
            }
            range.end = first_key;
        }
    }

    fn block(&mut self, mut block: Block, send: &mut dyn FnMut(CellBatch) -> bool) -> Result<bool> {
        block.groups = self.selection.groups(std::mem::take(&mut block.groups));
        let passes =
            |group: &Group, stored: &GroupBlock, (family, _): (&str, &[u8])| Ok(self.passes(group, stored, family));
        let of_block = BlockCells::new::<BigtableError>(&self.selection.schema, &block, passes)?;
        let mut values = of_block.values()?;
        let columns = self.known.columns(of_block.names().iter().map(|name| (name.family, name.qualifier)));
        let mut builder = CellBatchBuilder::new(columns);
        let mut cells = Vec::new();
        for row in 0..block.keys.len() {
            of_block.row(row, &mut cells)?;
            let before = builder.held_bytes();
            for cell in &cells {
                builder.cell(cell.name, cell.timestamp, |out| {
                    if self.scan.values {
                        values.write(cell, out);
                    }
                });
                if builder.held_bytes() - before > self.scan.most_row {
                    let key = String::from_utf8_lossy(&block.keys.get(row)).escape_debug().to_string();
                    return Err(BigtableError::LargeRow { key, most: self.scan.most_row });
                }
            }
            builder.end_row(|out| block.keys.write(row, out));
            let (cells, bytes) = builder.size();
            if cells >= self.cells || bytes >= MOST_BYTES {
                self.cells = (self.cells * 2).min(MOST_CELLS);
                if !send(builder.take()) {
                    return Ok(false);
                }
            }
        }
        // Also if it is empty: who takes it may want no more.
        Ok(send(builder.finish()))
    }

    /// The records of a group whose cells of `family` are selected.
    fn passes(&self, group: &Group, stored: &GroupBlock, family: &str) -> Passes {
        let times = &self.scan.times;
        let is_zero = group.timestamps == TimestampKind::Zero || group.keeps_duplicates();
        if is_zero && !times.contains(&0) {
            return Passes::None;
        }
        let by_name: Option<Vec<bool>> = match (&self.scan.columns, &stored.qualifiers) {
            (Some(columns), Some(names)) if group.qualifier == QualifierKind::Dynamic => {
                let verdicts: Vec<bool> =
                    names.dictionary.iter().map(|name| columns(family, Some(name.as_ref()))).collect();
                verdicts.contains(&false).then_some(verdicts)
            }
            _ => None,
        };
        let by_time = stored.timestamps.as_ref().filter(|_| !is_zero && *times != ALL_TIMES);
        let of_name = |verdicts: &[bool]| -> Option<BooleanBuffer> {
            let codes = &stored.qualifiers.as_ref()?.codes;
            Some(codes.iter().map(|code| verdicts.get(*code as usize) == Some(&true)).collect())
        };
        let of_name = by_name.and_then(|verdicts| of_name(&verdicts));
        let of_time = by_time.map(|all| all.iter().map(|time| times.contains(time)).collect::<BooleanBuffer>());
        let passes = match (of_name, of_time) {
            (Some(one), Some(other)) => &one & &other,
            (Some(one), None) | (None, Some(one)) => one,
            (None, None) => return Passes::All,
        };
        if passes.count_set_bits() == 0 { Passes::None } else { Passes::Records(passes) }
    }
}

/// The columns of the last block: those of the next one are mostly the same.
#[derive(Default)]
struct Known {
    families: HashMap<String, Arc<str>>,
    last: Arc<[ColumnId]>,
}

impl Known {
    fn columns<'a>(&mut self, names: impl ExactSizeIterator<Item = (&'a str, &'a [u8])> + Clone) -> Arc<[ColumnId]> {
        let same = |(column, (family, qualifier)): (&ColumnId, (&str, &[u8]))| {
            *column.family == *family && column.qualifier == qualifier
        };
        if self.last.len() != names.len() || !self.last.iter().zip(names.clone()).all(same) {
            let families = &mut self.families;
            let column = |(family, qualifier): (&str, &[u8])| {
                let family = match families.get(family) {
                    Some(known) => Arc::clone(known),
                    None => Arc::clone(families.entry(family.to_owned()).or_insert_with(|| family.into())),
                };
                ColumnId { family, qualifier: Bytes::copy_from_slice(qualifier) }
            };
            self.last = names.map(column).collect();
        }
        Arc::clone(&self.last)
    }
}

/// Whether stripes know the timestamps of all cells of these groups.
fn has_stored_timestamps(schema: &StoredSchema) -> bool {
    schema.groups.iter().all(|group| group.timestamps == TimestampKind::Stored && !group.keeps_duplicates())
}

/// Skips stripes without a cell in a range of timestamps.
#[derive(Debug)]
struct TimePruner(Range<i64>);

impl StripePruner for TimePruner {
    fn prunes(&self, stripes: &[StripeMeta]) -> Vec<bool> {
        let is_apart = |(least, greatest): (i64, i64)| greatest < self.0.start || least >= self.0.end;
        stripes.iter().map(|stripe| stripe.timestamps.is_some_and(is_apart)).collect()
    }
}
