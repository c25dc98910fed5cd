//! The Bigtable bytes of cells.

mod block_cells;
mod json;
mod packed;
mod selection;
mod text;
mod writer;

pub use block_cells::{BlockCell, BlockCells, CellRef, CellValues, ColumnName, Passes};
pub use packed::PackedWriter;
pub use selection::{CellSelection, GroupsWithout};
pub use text::ColumnText;
pub use writer::{CellWriter, write_cell};
