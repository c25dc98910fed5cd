//! Dumps of Bigtable tables: files of rows with their cells, in Avro, Parquet or the CSV of `cbt`.
//!
//! All three give batches of Google's `BigtableRow`: a key and a list of cells. `cells` reads such a batch, `raw` makes a row of
//! each cell, and `records` reads rows back into records by the layout of a table; `plan` chooses. `cbt` reads the CSV into such batches.

mod cbt;
mod cells;
mod plan;
mod raw;
mod records;
mod rows;
#[cfg(test)]
mod tests;

pub(crate) use cbt::CbtRows;
pub(crate) use cells::{TIME_TYPES, UnlikeColumn, is_dump, unlike_column};
pub(crate) use plan::Dump;
pub(crate) use rows::DumpRows;

/// The columns of the cells of a dump, beside those of families.
pub const CELL_COLUMNS: [&str; 5] = [raw::ROW_KEY, cells::FAMILY, cells::QUALIFIER, cells::TIMESTAMP, cells::VALUE];
