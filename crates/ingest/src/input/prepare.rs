//! Preparation of parsed rows before encoding: derived columns and row filters.

use std::fmt::Debug;

use arrow::array::RecordBatch;
use arrow::error::ArrowError;
use tidetable_source::TimeCounts;

/// Turns a parsed batch into the batch to encode. Called on many cores at once.
pub trait Prepare: Debug + Send + Sync {
    /// Prepares `batch`. Rows that fail are in `rejected`; that is no error.
    ///
    /// # Errors
    /// If columns cannot be combined.
    fn prepare(&self, batch: RecordBatch) -> Result<Prepared, ArrowError>;
}

/// A prepared batch, with counts of the rows that are not in it.
#[derive(Debug, Clone)]
pub struct Prepared {
    /// Rows to encode, in their original order, with derived columns behind those of the file.
    pub batch: RecordBatch,
    /// For each of them, its row in the parsed batch; `None` if no row was removed.
    pub rows: Option<Vec<u32>>,
    /// Number of rows that the filter removed; they are neither in the batch nor rejected.
    pub filtered: u64,
    /// Rows whose expression failed, ascending by row; they are not in the batch.
    pub rejected: Vec<UnpreparedRow>,
    /// Counts of inexact times that expressions made, beside those of the parser.
    pub times: TimeCounts,
}

/// A row for which an expression failed, and so is not loaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnpreparedRow {
    /// Row of the parsed batch, from 0.
    pub row: usize,
    /// Name of the derived column; `None` if the filter failed.
    pub column: Option<String>,
    /// The error of the expression, for the list of rejected rows.
    pub reason: String,
}

impl Prepared {
    /// All rows of `batch`, for a table without derived columns or filter.
    pub fn whole(batch: RecordBatch) -> Self {
        Self { batch, rows: None, filtered: 0, rejected: Vec::new(), times: TimeCounts::default() }
    }

    /// The row of the parsed batch that became row `row`.
    pub fn origin(&self, row: usize) -> usize {
        self.rows.as_ref().and_then(|rows| rows.get(row)).map_or(row, |row| *row as usize)
    }
}
