//! Rows of a table here and of one in Bigtable, side by side in key order.

mod gc;
mod join;
mod local;
mod remote;

pub use gc::GcView;
pub use join::{CellDifference, Joined, Pair, cell_differences};
pub use local::{LocalRows, row_of};
pub use remote::RemoteRows;
