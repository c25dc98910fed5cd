//! Parquet files: projected columns and slices of row groups.

mod file;
#[cfg(test)]
mod tests;

pub(crate) use file::{Bits, ParquetFile, ParquetPlan};
