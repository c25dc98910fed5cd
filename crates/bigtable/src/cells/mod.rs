//! Cells of a pinned version of a table, row by row, in columns.
//!
//! ```no_run
//! use tidetable_bigtable::cells::{BatchScan, CellBatch};
//! use tidetable_cells::CellScan;
//! # fn scan(snapshot: tidetable_store::Snapshot) -> Result<(), tidetable_bigtable::BigtableError> {
//! BatchScan::from(CellScan::new(snapshot)).run(&mut |batch: CellBatch| {
//!     for row in 0..batch.rows() {
//!         for cell in batch.cells(row) {
//!             let _ = (batch.key(row), batch.family(cell), batch.qualifier(cell), batch.timestamp(cell), batch.value(cell));
//!         }
//!     }
//!     true
//! })
//! # }
//! ```

mod batch;
mod batches;

pub use batch::{CellBatch, CellBatchBuilder, ColumnId};
pub use batches::BatchScan;
