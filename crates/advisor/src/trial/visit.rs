//! The rows of a layout with their cells, and the writes that made them.

use arrow::array::{AsArray, Int64Array, RecordBatch};
use arrow::datatypes::Int64Type;
use tidetable_layout::block::{GroupBlock, GroupProjection};
use tidetable_layout::cell::{BlockCells, CellRef, ColumnName, Passes};
use tidetable_layout::error::ShapeError;
use tidetable_layout::{Block, KeyRange, Projection};

use crate::error::{AdvisorError, Result};
use crate::trial::counter::Counter;
use crate::trial::table::{PartBytes, TrialTable};

/// Source rows that wrote to one row in one second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Write {
    /// Since the epoch. In a table with `upsert = "row"` the first second of the minute.
    pub second: i64,
    /// Source rows; of unpivoted columns, one for each value.
    pub rows: u64,
}

/// A row after its cells.
#[derive(Debug)]
pub struct Row<'a> {
    /// Its row key, as bytes.
    pub key: &'a [u8],
    /// Cells; 0 if all were expired, or all values were null: then the table has no such row.
    pub cells: u64,
    /// The bytes of these cells, by part.
    pub bytes: PartBytes,
    /// Source rows that wrote to it, by ascending second.
    pub writes: &'a [Write],
}

/// Called for the cells and rows of a layout, in key order.
pub trait Visitor {
    /// A block of rows, before its cells: groups of records, as the layout has them.
    fn block(&mut self, block: &Block) {
        let _ = block;
    }

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
    /// Calls `visitor` for all cells and rows in key order. Cells that garbage collection drops are left out: rules of
    /// age are applied as of the newest row.
    ///
    /// # Errors
    /// If the encoded layout cannot be read, or `visitor` fails.
    pub fn visit(&self, visitor: &mut impl Visitor) -> Result<()> {
        self.visit_in(&KeyRange::all(), visitor)
    }

    /// Calls `visitor` for the cells and rows of a key range, as [`Self::visit`] does for all.
    ///
    /// # Errors
    /// As [`Self::visit`].
    pub fn visit_in(&self, keys: &KeyRange, visitor: &mut impl Visitor) -> Result<()> {
        let Some(range) = self.snapshot.whole(keys) else { return Ok(()) };
        for block in self.snapshot.scan(&range, &Projection::all(self.snapshot.schema()))? {
            let (block, counter) = self.without_counter(block?);
            visitor.block(&block);
            self.visit_rows(&block, counter.as_ref().and_then(Writes::new), visitor)?;
        }
        Ok(())
    }

    /// Visits the rows of a block that have cells or were written.
    fn visit_rows(&self, block: &Block, writes: Option<Writes<'_>>, visitor: &mut impl Visitor) -> Result<()> {
        let found = BlockCells::new::<ShapeError>(self.layout.stored(), block, |_, _, _| Ok(Passes::All))?;
        let mut values = found.values()?;
        let (mut cells, mut written) = (Vec::new(), Vec::new());
        let (mut key, mut value) = (Vec::new(), Vec::new());
        for row in 0..block.keys.len() {
            found.row(row, &mut cells)?;
            if let Some(writes) = &writes {
                writes.of_row(row, &mut written);
            }
            if cells.is_empty() && written.is_empty() {
                continue;
            }

            key.clear();
            block.keys.write(row, &mut key);
            let mut bytes = PartBytes::default();
            for cell in &cells {
                value.clear();
                values.write(cell, &mut value);
                let ColumnName { family, qualifier } = found.name(cell);
                let cell = CellRef { row_key: &key, family, qualifier, timestamp: cell.timestamp, value: &value };
                bytes += PartBytes::of(&cell);
                visitor.cell(&cell)?;
            }
            visitor.row(&Row { key: &key, cells: cells.len() as u64, bytes, writes: &written })?;
        }
        Ok(())
    }

    /// A block as the layout itself has it, and the records of the counter.
    pub(super) fn without_counter(&self, mut block: Block) -> (Block, Option<GroupBlock>) {
        let counter = if self.group < block.groups.len() { block.groups.remove(self.group) } else { None };
        (block, counter)
    }

    /// Calls `visit` with the records of the rows of a key range, in batches of all columns of
    /// [`tidetable_layout::Layout::records_schema`].
    ///
    /// # Errors
    /// If the encoded layout cannot be read, or `visit` fails.
    pub fn each_record(&self, keys: &KeyRange, mut visit: impl FnMut(RecordBatch) -> Result<()>) -> Result<()> {
        let Some(range) = self.snapshot.whole(keys) else { return Ok(()) };
        let fields: Vec<usize> = (0..self.layout.records_schema().fields().len()).collect();
        for block in self.snapshot.scan(&range, &Projection::all(self.snapshot.schema()))? {
            let block = self.without_counter(block?).0.without_empty_rows();
            let records = self.layout.decode(block, &fields);
            visit(records.map_err(|source| AdvisorError::Decode { layout: self.name.clone(), source })?)?;
        }
        Ok(())
    }

    /// First and last second of all rows, which not all source rows have become.
    pub(super) fn seconds_of_keys(&self) -> Result<Option<(i64, i64)>> {
        let mut seconds: Option<(i64, i64)> = None;
        self.each_key(|_, writes| {
            for Write { second, .. } in writes {
                let (first, last) = seconds.unwrap_or((*second, *second));
                seconds = Some((first.min(*second), last.max(*second)));
            }
            Ok(())
        })?;
        Ok(seconds)
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
        let (mut key, mut own) = (Vec::new(), Vec::new());
        for block in snapshot.scan(&range, &projection)? {
            let block = block?;
            let Some(writes) = block.groups.get(self.group).and_then(Option::as_ref).and_then(Writes::new) else {
                continue;
            };
            for row in 0..block.keys.len() {
                writes.of_row(row, &mut own);
                if own.is_empty() {
                    continue;
                }
                key.clear();
                block.keys.write(row, &mut key);
                visit(&key, &own)?;
            }
        }
        Ok(())
    }
}

/// The records of the counter in a block.
struct Writes<'a> {
    group: &'a GroupBlock,
    rows: &'a Int64Array,
}

impl<'a> Writes<'a> {
    fn new(group: &'a GroupBlock) -> Option<Self> {
        let rows = group.columns.first()?.as_ref()?.as_primitive_opt::<Int64Type>()?;
        Some(Self { group, rows })
    }

    /// Replaces `out` by the writes of a row, by ascending second.
    fn of_row(&self, row: usize, out: &mut Vec<Write>) {
        out.clear();
        for record in self.group.records(row) {
            let timestamp = self.group.timestamps.as_ref().and_then(|times| times.get(record)).copied();
            let names = self.group.qualifiers.as_ref();
            let name = names.and_then(|names| names.dictionary.get(*names.codes.get(record)? as usize));
            let second = Counter::second_of(name.map_or(&[][..], AsRef::as_ref), timestamp.unwrap_or(0));
            out.push(Write { second, rows: self.rows.value(record).unsigned_abs() });
        }
        if !out.is_sorted_by_key(|write| write.second) {
            out.sort_unstable_by_key(|write| write.second);
        }
    }
}
