//! Parquet files: projected columns, slices of row groups, and coercion to the declared types.

mod coerce;
mod columns;
mod file;
mod int96;
#[cfg(test)]
mod tests;

pub(crate) use columns::FileColumn;
pub(crate) use file::{Bits, ParquetFile, ParquetPlan};
