//! A layout of a trial: its rows with their cells, and the writes that made them.

use std::ops::AddAssign;

use arrow::array::{AsArray, RecordBatch};
use arrow::datatypes::Int64Type;
use tidetable_layout::block::GroupProjection;
use tidetable_layout::error::ShapeError;
use tidetable_layout::time::SECOND;
use tidetable_layout::{Group, KeyRange, Layout, Projection};
use tidetable_sql::{CellRef, SqlError, cells_of_block};
use tidetable_store::Snapshot;
use tidetable_store::load::LoadStats;

use crate::error::{AdvisorError, Result};
use crate::trial::counter::Counter;
use crate::trial::entity::key_columns;
use crate::trial::prepare::Sample;

/// Bytes of a cell's timestamp.
const TIMESTAMP: u64 = 8;

/// A layout with the rows of its source.
#[derive(Debug)]
pub struct TrialTable {
    /// Name of the layout.
    pub name: String,
    /// What the load counted.
    pub stats: LoadStats,
    /// The sample that was taken; `None` if all rows were.
    pub sample: Option<Sample>,
    /// By what to multiply counts to get those of all rows: 1 without a sample.
    pub factor: f64,
    /// First and last second that was written, since the epoch; `None` without rows.
    pub seconds: Option<(i64, i64)>,
    /// The layout.
    pub layout: Layout,
    pub(super) snapshot: Snapshot,
    /// The family of the counter, and its group.
    family: String,
    pub(super) group: usize,
}

/// Source rows that wrote to one row in one second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Write {
    /// Since the epoch. In a table with `upsert = "row"` the first second of the minute.
    pub second: i64,
    /// Source rows; of unpivoted columns, one for each value.
    pub rows: u64,
}

/// The bytes of cells as Bigtable is given them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PartBytes {
    /// Row keys, once a cell.
    pub key: u64,
    /// Names of families.
    pub family: u64,
    /// Qualifiers.
    pub qualifier: u64,
    /// Values.
    pub value: u64,
    /// Timestamps, 8 a cell.
    pub timestamp: u64,
}

impl PartBytes {
    /// The parts of one cell.
    pub fn of(cell: &CellRef<'_>) -> Self {
        let [key, family, qualifier, value] =
            [cell.row_key, cell.family.as_bytes(), cell.qualifier, cell.value].map(|part| part.len() as u64);
        Self { key, family, qualifier, value, timestamp: TIMESTAMP }
    }

    /// All parts.
    pub fn total(&self) -> u64 {
        self.key + self.family + self.qualifier + self.value + self.timestamp
    }
}

impl AddAssign for PartBytes {
    fn add_assign(&mut self, other: Self) {
        self.key += other.key;
        self.family += other.family;
        self.qualifier += other.qualifier;
        self.value += other.value;
        self.timestamp += other.timestamp;
    }
}

/// A row after its cells.
#[derive(Debug)]
pub struct Row<'a> {
    /// Row key.
    pub key: &'a [u8],
    /// Cells; 0 if all were expired, or all values were null: then the table has no such row.
    pub cells: u64,
    /// Their bytes.
    pub bytes: PartBytes,
    /// Source rows that wrote to it, by ascending second.
    pub writes: &'a [Write],
}

/// Called for the cells and rows of a layout, in key order.
pub trait Visitor {
    /// A cell: families by name, qualifiers by bytes, newest first.
    ///
    /// # Errors
    /// Ends the visit.
    fn cell(&mut self, cell: &CellRef<'_>) -> Result<()> {
        let _ = cell;
        Ok(())
    }

    /// A row, after its cells.
    ///
    /// # Errors
    /// Ends the visit.
    fn row(&mut self, row: &Row<'_>) -> Result<()>;
}

impl TrialTable {
    pub(super) fn new(layout: Layout, snapshot: Snapshot, counter: &Counter, stats: LoadStats) -> Result<Self> {
        let of_counter = |group: &Group| group.columns.iter().any(|column| column.family == counter.family);
        let group = snapshot.schema().groups.iter().position(of_counter).unwrap_or_default();
        let (name, family, factor) = (layout.spec().name.clone(), counter.family.clone(), 1.0);
        let mut table = Self { name, stats, sample: None, factor, seconds: None, layout, snapshot, family, group };
        let mut seconds: Option<(i64, i64)> = None;
        table.each_key(|_, writes| {
            for Write { second, .. } in writes {
                let (first, last) = seconds.unwrap_or((*second, *second));
                seconds = Some((first.min(*second), last.max(*second)));
            }
            Ok(())
        })?;
        table.seconds = seconds;
        // Rules of age hold as of the newest row: what is measured does not depend on the clock.
        if let Some((_, last)) = seconds {
            table.snapshot = table.snapshot.as_of_now((last + 1) * SECOND)?;
        }
        Ok(table)
    }

    pub(super) fn sampled(self, sample: Option<Sample>, seen: u64, kept: u64) -> Self {
        let factor = if sample.is_some() && kept > 0 { seen as f64 / kept as f64 } else { 1.0 };
        Self { sample, factor, ..self }
    }

    /// Columns of the row key other than times.
    pub(crate) fn key_columns(&self) -> Vec<String> {
        key_columns(self.layout.spec(), self.layout.source())
    }

    /// Calls `visitor` for all cells and rows in key order. Cells that garbage collection drops are left out: rules of
    /// age are applied as of the newest row.
    ///
    /// # Errors
    /// If the encoded layout cannot be read, or `visitor` fails.
    pub fn visit(&self, visitor: &mut impl Visitor) -> Result<()> {
        self.visit_in(&KeyRange::all(), visitor)
    }

    /// The same for the rows of a key range.
    ///
    /// # Errors
    /// As [`Self::visit`].
    pub fn visit_in(&self, keys: &KeyRange, visitor: &mut impl Visitor) -> Result<()> {
        let schema = self.snapshot.schema();
        let Some(range) = self.snapshot.whole(keys) else { return Ok(()) };
        let mut state = RowState::default();
        for block in self.snapshot.scan(&range, &Projection::all(schema))? {
            let block = block?;
            let mut failed = None;
            state.index = None;
            let visited = cells_of_block(schema, &block, |cell| {
                let seen = self.see(&cell, &mut state, visitor);
                seen.map_err(|error| {
                    failed = Some(error);
                    // Only ends the block; the error itself is returned below.
                    SqlError::Shape(ShapeError { what: "a visitor" })
                })
            });
            match failed {
                Some(error) => return Err(error),
                None => visited?,
            }
            state.end_row(visitor)?;
        }
        Ok(())
    }

    fn see(&self, cell: &CellRef<'_>, state: &mut RowState, visitor: &mut impl Visitor) -> Result<()> {
        if state.index != Some(cell.row) {
            state.end_row(visitor)?;
            state.index = Some(cell.row);
            state.key.extend_from_slice(cell.row_key);
        }
        if cell.family == self.family {
            let rows = <[u8; 8]>::try_from(cell.value).map_or(0, i64::from_be_bytes).unsigned_abs();
            state.writes.push(Write { second: Counter::second_of(cell.qualifier, cell.timestamp), rows });
            return Ok(());
        }
        state.cells += 1;
        state.bytes += PartBytes::of(cell);
        visitor.cell(cell)
    }

    /// Calls `visit` with the records of the rows of a key range, in batches of all columns of
    /// [`Layout::records_schema`].
    ///
    /// # Errors
    /// If the encoded layout cannot be read, or `visit` fails.
    pub fn each_record(&self, keys: &KeyRange, mut visit: impl FnMut(RecordBatch) -> Result<()>) -> Result<()> {
        let Some(range) = self.snapshot.whole(keys) else { return Ok(()) };
        let fields: Vec<usize> = (0..self.layout.records_schema().fields().len()).collect();
        for block in self.snapshot.scan(&range, &Projection::all(self.snapshot.schema()))? {
            let mut block = block?;
            // The layout itself has all groups but the counter's.
            block.groups.remove(self.group);
            let block = block.without_empty_rows();
            let records = self.layout.decode(block, &fields);
            visit(records.map_err(|source| AdvisorError::Decode { layout: self.name.clone(), source })?)?;
        }
        Ok(())
    }

    /// Calls `visit` for each row key in order, with the source rows that wrote to it by ascending second. Reads keys and
    /// counts only.
    ///
    /// # Errors
    /// If the encoded layout cannot be read, or `visit` fails.
    pub fn each_key(&self, mut visit: impl FnMut(&[u8], &[Write]) -> Result<()>) -> Result<()> {
        let snapshot = self.snapshot.including_expired();
        let mut projection = Projection { groups: vec![None; snapshot.schema().groups.len()] };
        if let Some(group) = projection.groups.get_mut(self.group) {
            *group = Some(GroupProjection { qualifiers: true, timestamps: true, columns: vec![true], sums: false });
        }
        let Some(range) = snapshot.whole(&KeyRange::all()) else { return Ok(()) };
        let (mut key, mut writes) = (Vec::new(), Vec::new());
        for block in snapshot.scan(&range, &projection)? {
            let block = block?;
            let Some(Some(group)) = block.groups.get(self.group) else { continue };
            let rows = group.columns.first().and_then(Option::as_ref);
            let Some(rows) = rows.and_then(|rows| rows.as_primitive_opt::<Int64Type>()) else { continue };
            for row in 0..block.keys.len() {
                writes.clear();
                for record in group.records(row) {
                    let timestamp = group.timestamps.as_ref().and_then(|times| times.get(record)).copied();
                    let names = group.qualifiers.as_ref();
                    let name = names.and_then(|names| names.dictionary.get(*names.codes.get(record)? as usize));
                    let second = Counter::second_of(name.map_or(&[][..], AsRef::as_ref), timestamp.unwrap_or(0));
                    writes.push(Write { second, rows: rows.value(record).unsigned_abs() });
                }
                if writes.is_empty() {
                    continue;
                }
                writes.sort_unstable_by_key(|write| write.second);
                key.clear();
                block.keys.write(row, &mut key);
                visit(&key, &writes)?;
            }
        }
        Ok(())
    }
}

/// The row that cells are collected for.
#[derive(Default)]
struct RowState {
    index: Option<usize>,
    key: Vec<u8>,
    cells: u64,
    bytes: PartBytes,
    writes: Vec<Write>,
}

impl RowState {
    fn end_row(&mut self, visitor: &mut impl Visitor) -> Result<()> {
        if self.index.take().is_none() {
            return Ok(());
        }
        self.writes.sort_unstable_by_key(|write| write.second);
        let row = Row { key: &self.key, cells: self.cells, bytes: self.bytes, writes: &self.writes };
        visitor.row(&row)?;
        self.key.clear();
        self.writes.clear();
        (self.cells, self.bytes) = (0, PartBytes::default());
        Ok(())
    }
}
