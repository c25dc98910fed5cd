//! Batches of cells, in columns.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;

/// A column of a table: family and qualifier.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ColumnId {
    /// The id of its family.
    pub family: Arc<str>,
    /// Qualifier; may be empty.
    pub qualifier: Bytes,
}

/// What a cell takes beside its value.
const BYTES_OF_CELL: usize = 2 * size_of::<u32>() + size_of::<i64>();

/// Whole rows in the order of a scan: the cells of a row by family, qualifier and descending timestamp. Slices of it share
/// its memory.
#[derive(Debug, Clone, Default)]
pub struct CellBatch {
    columns: Arc<[ColumnId]>,
    keys: Bytes,
    key_ends: Vec<u32>,
    row_ends: Vec<u32>,
    column_of: Vec<u32>,
    timestamps: Vec<i64>,
    values: Bytes,
    value_ends: Vec<u32>,
}

/// The part of a list that ends at `ends[index]` and begins where the one before ends.
fn span(ends: &[u32], index: usize) -> Range<usize> {
    let before = index.checked_sub(1).and_then(|before| ends.get(before)).copied().unwrap_or_default();
    before as usize..ends.get(index).copied().unwrap_or_default() as usize
}

impl CellBatch {
    /// Rows; each has a cell at least.
    pub fn rows(&self) -> usize {
        self.row_ends.len()
    }

    /// Cells of all rows.
    pub fn len(&self) -> usize {
        self.column_of.len()
    }

    /// Whether it has no cell.
    pub fn is_empty(&self) -> bool {
        self.column_of.is_empty()
    }

    /// Bytes of keys and values.
    pub fn bytes(&self) -> usize {
        self.keys.len() + self.values.len()
    }

    /// The columns its cells may be of, ascending.
    pub fn columns(&self) -> &Arc<[ColumnId]> {
        &self.columns
    }

    /// The row key of a row.
    pub fn key(&self, row: usize) -> &[u8] {
        self.keys.get(span(&self.key_ends, row)).unwrap_or_default()
    }

    /// The row key of a row, which keeps the memory of the whole batch.
    pub fn shared_key(&self, row: usize) -> Bytes {
        self.keys.slice(span(&self.key_ends, row))
    }

    /// The cells of a row.
    pub fn cells(&self, row: usize) -> Range<usize> {
        span(&self.row_ends, row)
    }

    /// Index in [`Self::columns`] of the column of each cell.
    pub fn column_of(&self) -> &[u32] {
        &self.column_of
    }

    /// Timestamp of each cell, microseconds.
    pub fn timestamps(&self) -> &[i64] {
        &self.timestamps
    }

    fn column(&self, cell: usize) -> Option<&ColumnId> {
        self.columns.get(*self.column_of.get(cell)? as usize)
    }

    /// The family of a cell.
    pub fn family(&self, cell: usize) -> &str {
        self.column(cell).map_or("", |column| &column.family)
    }

    /// The qualifier of a cell.
    pub fn qualifier(&self, cell: usize) -> &Bytes {
        static EMPTY: Bytes = Bytes::new();
        self.column(cell).map_or(&EMPTY, |column| &column.qualifier)
    }

    /// The timestamp of a cell, microseconds.
    pub fn timestamp(&self, cell: usize) -> i64 {
        self.timestamps.get(cell).copied().unwrap_or_default()
    }

    /// The value of a cell; empty if values were not asked for.
    pub fn value(&self, cell: usize) -> &[u8] {
        self.values.get(span(&self.value_ends, cell)).unwrap_or_default()
    }

    /// The value of a cell, which keeps the memory of the whole batch.
    pub fn shared_value(&self, cell: usize) -> Bytes {
        self.values.slice(span(&self.value_ends, cell))
    }
}

/// Builds a batch, cell by cell.
#[derive(Debug)]
pub struct CellBatchBuilder {
    columns: Arc<[ColumnId]>,
    keys: Vec<u8>,
    key_ends: Vec<u32>,
    row_ends: Vec<u32>,
    column_of: Vec<u32>,
    timestamps: Vec<i64>,
    values: Vec<u8>,
    value_ends: Vec<u32>,
}

impl CellBatchBuilder {
    /// A batch of cells of `columns`, which ascend.
    pub fn new(columns: Arc<[ColumnId]>) -> Self {
        Self {
            columns,
            keys: Vec::new(),
            key_ends: Vec::new(),
            row_ends: Vec::new(),
            column_of: Vec::new(),
            timestamps: Vec::new(),
            values: Vec::new(),
            value_ends: Vec::new(),
        }
    }

    /// Appends a cell to the current row; `value` appends its value.
    pub fn cell(&mut self, column: u32, timestamp: i64, value: impl FnOnce(&mut Vec<u8>)) {
        self.column_of.push(column);
        self.timestamps.push(timestamp);
        value(&mut self.values);
        self.value_ends.push(self.values.len() as u32);
    }

    /// Ends the current row, if it has a cell; `key` appends its key.
    pub fn end_row(&mut self, key: impl FnOnce(&mut Vec<u8>)) {
        if self.row_ends.last().copied().unwrap_or_default() as usize == self.column_of.len() {
            return;
        }
        key(&mut self.keys);
        self.key_ends.push(self.keys.len() as u32);
        self.row_ends.push(self.column_of.len() as u32);
    }

    /// Cells, and bytes of values, so far.
    pub fn size(&self) -> (usize, usize) {
        (self.column_of.len(), self.values.len())
    }

    /// Bytes that the cells so far hold.
    pub(super) fn held_bytes(&self) -> usize {
        self.values.len() + self.column_of.len() * BYTES_OF_CELL
    }

    /// Takes the batch built so far; the next one has the same columns.
    pub fn take(&mut self) -> CellBatch {
        let next = Self::new(Arc::clone(&self.columns));
        std::mem::replace(self, next).finish()
    }

    /// The batch of the rows that were ended.
    pub fn finish(self) -> CellBatch {
        CellBatch {
            columns: self.columns,
            keys: self.keys.into(),
            key_ends: self.key_ends,
            row_ends: self.row_ends,
            column_of: self.column_of,
            timestamps: self.timestamps,
            values: self.values.into(),
            value_ends: self.value_ends,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_without_cells_are_none() {
        let column = |name: &str| ColumnId { family: "f".into(), qualifier: Bytes::copy_from_slice(name.as_bytes()) };
        let mut builder = CellBatchBuilder::new([column("a"), column("b")].into());
        builder.cell(0, 2, |value| value.extend_from_slice(b"one"));
        builder.cell(1, 0, |_| {});
        builder.end_row(|key| key.extend_from_slice(b"r1"));
        builder.end_row(|key| key.extend_from_slice(b"a row without cells is none"));
        builder.cell(0, 1, |value| value.extend_from_slice(b"three"));
        builder.end_row(|key| key.extend_from_slice(b"r2"));
        let batch = builder.take();
        assert_eq!((batch.rows(), batch.len(), batch.bytes()), (2, 3, 12));
        assert_eq!((batch.key(0), batch.key(1)), (&b"r1"[..], &b"r2"[..]));
        assert_eq!((batch.value(0), batch.value(1), batch.value(2)), (&b"one"[..], &b""[..], &b"three"[..]));
        assert_eq!((batch.cells(0), batch.timestamp(0), batch.qualifier(1).as_ref()), (0..2, 2, &b"b"[..]));
        assert_eq!(batch.shared_value(2), "three");
        assert!(builder.finish().is_empty());
    }
}
