//! Rows of a scan, and what takes them.

use tidetable_layout::cell::{BlockCell, BlockCells, CellValues, ColumnName};
use tidetable_layout::error::ShapeError;
use tidetable_layout::schema::TimestampKind;
use tidetable_layout::{Block, StoredSchema};
use tidetable_store::StoreError;

/// Takes the rows of a scan, block after block.
pub trait RowSink {
    /// An error that ends the scan.
    type Error: From<StoreError> + From<ShapeError>;

    /// Begins a block, whose cells name columns by their index in `columns`. These ascend, and some may have no cell.
    ///
    /// # Errors
    /// Ends the scan.
    fn begin(&mut self, columns: &[ColumnName<'_>]) -> Result<(), Self::Error> {
        let _ = columns;
        Ok(())
    }

    /// Takes a row. Returns false if no more rows are wanted.
    ///
    /// # Errors
    /// Ends the scan.
    fn row(&mut self, row: &mut CellRow<'_, '_>) -> Result<bool, Self::Error>;

    /// Ends a block, also one without rows. Returns false if no more are wanted. Not called where a scan ends early.
    ///
    /// # Errors
    /// Ends the scan.
    fn end(&mut self) -> Result<bool, Self::Error> {
        Ok(true)
    }
}

/// A row and its selected cells. Keys and values are encoded when they are asked for.
pub struct CellRow<'r, 'b> {
    pub(crate) schema: &'b StoredSchema,
    pub(crate) block: &'b Block,
    /// Index in the block.
    pub(crate) index: usize,
    pub(crate) found: &'r BlockCells<'b>,
    pub(crate) cells: &'r [BlockCell],
    pub(crate) values: &'r mut CellValues<'b>,
}

impl<'r, 'b> CellRow<'r, 'b> {
    /// Appends the row key to `out`.
    pub fn write_key(&self, out: &mut Vec<u8>) {
        self.block.keys.write(self.index, out);
    }

    /// The cells: families by name, qualifiers by bytes, newest first.
    pub fn cells(&self) -> &'r [BlockCell] {
        self.cells
    }

    /// The column of a cell.
    pub fn column(&self, cell: &BlockCell) -> ColumnName<'b> {
        self.found.name(cell)
    }

    /// Appends the value of a cell to `out`.
    pub fn write_value(&mut self, cell: &BlockCell, out: &mut Vec<u8>) {
        self.values.write(cell, out);
    }

    /// Whether the row has records with timestamps of their own, in groups with selected columns.
    pub fn has_stored_timestamps(&self) -> bool {
        let mut groups = self.schema.groups.iter().zip(&self.block.groups);
        groups.any(|(group, records)| {
            let records = records.as_ref().filter(|_| group.timestamps == TimestampKind::Stored);
            records.is_some_and(|records| !records.records(self.index).is_empty())
        })
    }
}
