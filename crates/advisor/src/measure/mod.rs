//! What a layout holds, counted from its cells.

mod distribution;
mod measured;
mod packed;

pub use distribution::{Distribution, Quantiles};
pub(crate) use measured::Counts;
pub use measured::{LargestRow, Measured, measure};
pub use packed::PackedSize;
