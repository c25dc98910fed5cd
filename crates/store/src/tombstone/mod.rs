//! What tombstones hide in blocks of cells: the filter of a read, and the count of a delete.

pub(crate) mod count;
pub(crate) mod filter;
#[cfg(test)]
mod tests;

pub use count::cells_of;
pub use filter::TombstoneFilter;
