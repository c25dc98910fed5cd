//! The Bigtable bytes of cells.

mod block_cells;
mod json;
mod packed;
mod selection;
mod text;
mod visit;
mod writer;

pub use block_cells::{BlockCell, BlockCells, CellValues, ColumnName, Passes};
pub use packed::PackedWriter;
pub use selection::{CellSelection, GroupsWithout};
pub use text::ColumnText;
pub use visit::{CellParts, CellRef, visit_cells};
pub use writer::{CellWriter, write_cell};
