//! Blocks: sorted runs of rows in columns.

mod keys;
mod rows;

pub use keys::Keys;
pub use rows::{Block, GroupBlock, GroupProjection, Projection, Qualifiers};
