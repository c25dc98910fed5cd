//! Parquet: which columns, which rows of a group, and how their types become the declared ones.

mod coerce;
mod file;

pub(crate) use file::{Bits, ParquetFile, ParquetPlan};
