//! What may happen to parsed rows before they are laid out: columns derived, rows filtered.

use std::fmt::Debug;

use arrow::array::RecordBatch;
use arrow::error::ArrowError;
use tidetable_source::TimeCounts;

/// Turns a parsed batch into the batch to lay out. Runs on many cores at once.
pub trait Prepare: Debug + Send + Sync {
    /// Prepares `batch`. A row that cannot be is in `rejected`; that is no error.
    ///
    /// # Errors
    /// If columns cannot be combined.
    fn prepare(&self, batch: RecordBatch) -> Result<Prepared, ArrowError>;
}

/// A prepared batch, and what became of the rows that are not in it.
#[derive(Debug, Clone)]
pub struct Prepared {
    /// Rows to lay out, in the order they came.
    pub batch: RecordBatch,
    /// For each of them, its row in the batch before; `None` if none was taken out.
    pub rows: Option<Vec<u32>>,
    /// How many rows the filter took out.
    pub filtered: u64,
    /// Rows whose expression failed, ascending.
    pub rejected: Vec<UnpreparedRow>,
    /// Times that expressions made and that are not quite what was written.
    pub times: TimeCounts,
}

/// A row that an expression could not be worked out for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnpreparedRow {
    /// Row of the batch before.
    pub row: usize,
    /// The derived column; `None` if the filter failed.
    pub column: Option<String>,
    /// What went wrong.
    pub reason: String,
}

impl Prepared {
    /// The batch as it is.
    pub fn whole(batch: RecordBatch) -> Self {
        Self { batch, rows: None, filtered: 0, rejected: Vec::new(), times: TimeCounts::default() }
    }

    /// The row of the batch before that row `row` of the batch was.
    pub fn origin(&self, row: usize) -> usize {
        self.rows.as_ref().and_then(|rows| rows.get(row)).map_or(row, |row| *row as usize)
    }
}
