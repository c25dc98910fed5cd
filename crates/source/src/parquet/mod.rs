//! Parquet files: projected columns, slices of row groups, and coercion to the declared types.

mod coerce;
mod file;

pub(crate) use file::{Bits, ParquetFile, ParquetPlan};
