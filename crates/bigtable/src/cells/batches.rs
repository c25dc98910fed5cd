//! Scans whose rows come in batches of cells.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use tidetable_cells::{CellRow, CellScan, ColumnName, RowSink};

use crate::cells::batch::{CellBatch, CellBatchBuilder, ColumnId};
use crate::error::{BigtableError, Result};

/// Cells of the first batch, and of the largest ones: a scan that ends soon encodes little.
const FIRST_CELLS: usize = 1 << 10;
const MOST_CELLS: usize = 1 << 15;
/// Bytes of values at which a batch is full.
const MOST_BYTES: usize = 1 << 20;

/// A scan whose rows come in batches of about 1 MiB.
#[derive(Debug, Clone)]
pub struct BatchScan {
    /// What is read, and in which order.
    pub scan: CellScan,
    /// Whether values are returned; without, they are empty.
    pub values: bool,
    /// Greatest number of bytes of a row; a larger row is refused.
    pub most_row: usize,
}

impl From<CellScan> for BatchScan {
    /// With values, of rows of any size.
    fn from(scan: CellScan) -> Self {
        Self { scan, values: true, most_row: usize::MAX }
    }
}

impl BatchScan {
    /// Passes batches of whole rows to `send`, until it returns false. A batch without rows says that some were read and left
    /// out.
    ///
    /// # Errors
    /// If an SST cannot be read or does not match the schema, or a row is too large.
    pub fn run(&self, send: &mut dyn FnMut(CellBatch) -> bool) -> Result<()> {
        let mut batches = Batches {
            scan: self,
            send,
            builder: CellBatchBuilder::new(Arc::default()),
            full: FIRST_CELLS,
            known: KnownColumns::default(),
        };
        self.scan.run(&mut batches)
    }
}

/// Makes batches of rows.
struct Batches<'a> {
    scan: &'a BatchScan,
    send: &'a mut dyn FnMut(CellBatch) -> bool,
    builder: CellBatchBuilder,
    /// Cells at which the next batch is full.
    full: usize,
    known: KnownColumns,
}

impl RowSink for Batches<'_> {
    type Error = BigtableError;

    fn begin(&mut self, columns: &[ColumnName<'_>]) -> Result<()> {
        self.builder = CellBatchBuilder::new(self.known.columns(columns));
        Ok(())
    }

    fn row(&mut self, row: &mut CellRow<'_, '_>) -> Result<bool> {
        let before = self.builder.held_bytes();
        for cell in row.cells() {
            self.builder.cell(cell.name, cell.timestamp, |out| {
                if self.scan.values {
                    row.write_value(cell, out);
                }
            });
            if self.builder.held_bytes() - before > self.scan.most_row {
                let mut key = Vec::new();
                row.write_key(&mut key);
                let key = String::from_utf8_lossy(&key).escape_debug().to_string();
                return Err(BigtableError::LargeRow { key, most: self.scan.most_row });
            }
        }
        self.builder.end_row(|out| row.write_key(out));

        let (cells, bytes) = self.builder.size();
        if cells < self.full && bytes < MOST_BYTES {
            return Ok(true);
        }
        self.full = (self.full * 2).min(MOST_CELLS);
        Ok((self.send)(self.builder.take()))
    }

    /// Sends also an empty batch: who takes it may want no more.
    fn end(&mut self) -> Result<bool> {
        Ok((self.send)(self.builder.take()))
    }
}

/// The columns of the last block: those of the next one are mostly the same.
#[derive(Default)]
struct KnownColumns {
    families: HashMap<String, Arc<str>>,
    last: Arc<[ColumnId]>,
}

impl KnownColumns {
    fn columns(&mut self, names: &[ColumnName<'_>]) -> Arc<[ColumnId]> {
        let mut known = self.last.iter().zip(names);
        let is_known = self.last.len() == names.len() && known.all(|(column, name)| is_same(column, name));
        if !is_known {
            self.last = names.iter().map(|name| column_id(&mut self.families, name)).collect();
        }
        Arc::clone(&self.last)
    }
}

fn is_same(column: &ColumnId, name: &ColumnName<'_>) -> bool {
    *column.family == *name.family && column.qualifier == name.qualifier
}

fn column_id(families: &mut HashMap<String, Arc<str>>, name: &ColumnName<'_>) -> ColumnId {
    let family = match families.get(name.family) {
        Some(known) => Arc::clone(known),
        None => Arc::clone(families.entry(name.family.to_owned()).or_insert_with(|| name.family.into())),
    };
    ColumnId { family, qualifier: Bytes::copy_from_slice(name.qualifier) }
}
