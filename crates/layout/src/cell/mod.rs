//! The Bigtable bytes of cells.

mod json;
mod packed;
mod writer;

pub use packed::PackedWriter;
pub use writer::{CellWriter, write_cell};
