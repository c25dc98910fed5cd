//! Parquet files: projected columns, in slices of row groups or in order.

mod file;
mod group_rows;
#[cfg(test)]
mod tests;

pub(crate) use file::{Bits, GroupSlice, ParquetFile, ParquetPlan};
pub(crate) use group_rows::GroupRows;
