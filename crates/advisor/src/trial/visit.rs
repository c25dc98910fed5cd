//! The rows of a layout with their cells, and the writes that made them.

use arrow::array::{AsArray, Int64Array, RecordBatch};
use arrow::datatypes::Int64Type;
use tidetable_layout::block::{GroupBlock, GroupProjection};
use tidetable_layout::cell::{CellParts, CellRef, Passes, visit_cells};
use tidetable_layout::{Block, Group, KeyRange, Projection};

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

    /// The same for the rows of a key range.
    ///
    /// # Errors
    /// As [`Self::visit`].
    pub fn visit_in(&self, keys: &KeyRange, visitor: &mut impl Visitor) -> Result<()> {
        let Some(range) = self.snapshot.whole(keys) else { return Ok(()) };
        let mut row = OpenRow::default();
        for block in self.snapshot.scan(&range, &Projection::all(self.snapshot.schema()))? {
            let (block, counter) = self.without_counter(block?);
            let writes = counter.as_ref().and_then(Writes::new);
            visitor.block(&block);
            row.next = 0;
            let parts = CellParts { key: true, value: true };
            let all = |_: &Group, _: &GroupBlock, _: (&str, &[u8])| Ok(Passes::All);
            visit_cells(self.layout.stored(), &block, parts, all, |cell| {
                row.see(&cell, &block, writes.as_ref(), visitor)
            })?;
            row.go_to(block.keys.len(), &block, writes.as_ref(), visitor)?;
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

/// The row that cells are collected for.
#[derive(Default)]
struct OpenRow {
    /// Whether it has cells; otherwise no row is open.
    is_open: bool,
    /// Index of the row after it in its block: rows from there on have not been seen.
    next: usize,
    key: Vec<u8>,
    cells: u64,
    bytes: PartBytes,
    writes: Vec<Write>,
}

impl OpenRow {
    fn see(
        &mut self,
        cell: &CellRef<'_>,
        block: &Block,
        writes: Option<&Writes<'_>>,
        visitor: &mut impl Visitor,
    ) -> Result<()> {
        if !self.is_open || self.next != cell.row + 1 {
            self.go_to(cell.row, block, writes, visitor)?;
            (self.is_open, self.next) = (true, cell.row + 1);
            self.key.extend_from_slice(cell.row_key);
        }
        self.cells += 1;
        self.bytes += PartBytes::of(cell);
        visitor.cell(cell)
    }

    /// Ends the open row, and passes the rows before `row` that were written and have no cells.
    fn go_to(
        &mut self,
        row: usize,
        block: &Block,
        writes: Option<&Writes<'_>>,
        visitor: &mut impl Visitor,
    ) -> Result<()> {
        if self.is_open {
            self.end(self.next - 1, writes, visitor)?;
        }
        for empty in self.next..row {
            let is_written = writes.is_some_and(|writes| !writes.group.records(empty).is_empty());
            if is_written {
                block.keys.write(empty, &mut self.key);
                self.end(empty, writes, visitor)?;
            }
        }
        Ok(())
    }

    fn end(&mut self, row: usize, writes: Option<&Writes<'_>>, visitor: &mut impl Visitor) -> Result<()> {
        match writes {
            Some(writes) => writes.of_row(row, &mut self.writes),
            None => self.writes.clear(),
        }
        visitor.row(&Row { key: &self.key, cells: self.cells, bytes: self.bytes, writes: &self.writes })?;
        self.key.clear();
        (self.is_open, self.cells, self.bytes) = (false, 0, PartBytes::default());
        Ok(())
    }
}
