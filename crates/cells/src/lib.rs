//! Scans of the cells of a table, as Bigtable returns them: rows by key, families by name, qualifiers by bytes, newest first.
//!
//! A [`CellScan`] says which rows, columns, timestamps and versions are wanted, and in which order. It skips SSTs and stripes
//! that hold none of them, decodes only the wanted columns, and passes row after row to a [`RowSink`]. In memory are the
//! blocks of about one stripe of each SST that overlaps others, whichever the direction.
//!
//! A filter that names and a range of timestamps cannot express implements [`CellFilter`].
//!
//! ```no_run
//! use tidetable_cells::{CellRow, CellScan, RowSink};
//! # use tidetable_store::StoreError;
//! struct Count(usize);
//!
//! impl RowSink for Count {
//! #   type Error = Error;
//!     fn row(&mut self, row: &mut CellRow<'_, '_>) -> Result<bool, Self::Error> {
//!         self.0 += row.cells().len();
//!         Ok(true)
//!     }
//! }
//! # enum Error { Store(StoreError), Shape(tidetable_layout::error::ShapeError) }
//! # impl From<StoreError> for Error { fn from(error: StoreError) -> Self { Self::Store(error) } }
//! # impl From<tidetable_layout::error::ShapeError> for Error {
//! #     fn from(error: tidetable_layout::error::ShapeError) -> Self { Self::Shape(error) }
//! # }
//! # fn count(snapshot: tidetable_store::Snapshot) -> Result<(), Error> {
//! CellScan { newest: 1, ..CellScan::new(snapshot) }.run(&mut Count(0))
//! # }
//! ```

mod filter;
mod key_pattern;
mod pieces;
mod row;
mod scan;

pub use filter::{CellFilter, Columns, has_stored_timestamps, is_at_zero};
pub use key_pattern::{KeyPattern, intersection, literal_ranges};
pub use row::{CellRow, RowSink};
pub use scan::{CellScan, Rows};
pub use tidetable_layout::cell::{BlockCell, ColumnName, Passes};
