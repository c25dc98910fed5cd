//! The Bigtable bytes of cells.

mod json;
mod packed;
mod text;
mod writer;

pub use packed::PackedWriter;
pub use text::ColumnText;
pub use writer::{CellWriter, write_cell};
