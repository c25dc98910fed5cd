//! Rows of a pinned version, read by a thread of its own.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};

use bytes::Bytes;
use tidetable_cells::CellScan;

use crate::cells::{BatchScan, CellBatch};
use crate::client::{Cell, Row};
use crate::error::Result;

/// Batches that wait to be taken; then the scan waits, too.
const BATCHES: usize = 4;

/// An iterator over the rows of a scan.
#[derive(Debug)]
pub struct LocalRows {
    batches: Receiver<Result<CellBatch>>,
    batch: CellBatch,
    next: usize,
}

impl LocalRows {
    /// Begins the scan. It ends with its first error, or when the iterator is dropped.
    pub fn new(scan: CellScan) -> Self {
        let (sender, batches) = sync_channel(BATCHES);
        std::thread::spawn(move || {
            if let Err(error) = BatchScan::from(scan).run(&mut |batch| sender.send(Ok(batch)).is_ok()) {
                // Nobody may listen any more.
                let _ = sender.send(Err(error));
            }
        });
        Self { batches, batch: CellBatch::default(), next: 0 }
    }
}

impl Iterator for LocalRows {
    type Item = Result<Row>;

    fn next(&mut self) -> Option<Self::Item> {
        while self.next >= self.batch.rows() {
            self.next = 0;
            match self.batches.recv() {
                Ok(Ok(batch)) => self.batch = batch,
                Ok(Err(error)) => {
                    self.batch = CellBatch::default();
                    return Some(Err(error));
                }
                Err(_) => return None,
            }
        }
        self.next += 1;
        Some(Ok(row_of(&self.batch, self.next - 1)))
    }
}

/// A row of a batch; its bytes are shared.
pub fn row_of(batch: &CellBatch, row: usize) -> Row {
    let columns = batch.columns();
    let mut cells = Vec::with_capacity(batch.cells(row).len());
    for cell in batch.cells(row) {
        let column = batch.column_of().get(cell).and_then(|column| columns.get(*column as usize));
        let (family, qualifier) = match column {
            Some(column) => (Arc::clone(&column.family), column.qualifier.clone()),
            None => (Arc::from(""), Bytes::new()),
        };
        cells.push(Cell { family, qualifier, timestamp: batch.timestamp(cell), value: batch.shared_value(cell) });
    }
    Row { key: batch.shared_key(row), cells }
}
