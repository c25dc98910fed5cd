//! Columns of Arrow, from files that have columns, to the declared ones: where they are, and the ways to their types.

mod coerce;
mod columns;
mod explode;
mod int96;
mod plan;
#[cfg(test)]
mod tests;

pub(crate) use columns::{FileColumn, columns, in_micros};
pub(crate) use explode::Lists;
pub(crate) use int96::{Leaf, read as read_int96};
pub(crate) use plan::{ColumnarPlan, Int96Values, Parsed};
