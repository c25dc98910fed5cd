//! What rows of a dump became.

use arrow::array::RecordBatch;

use crate::reject::RejectReason;

/// The rows of a source that rows of a dump became.
pub(crate) struct DumpRows {
    pub batch: RecordBatch,
    /// For each row that of the dump, counted from the first of its batch.
    pub records: Vec<u32>,
    /// Rows of the dump, or cells of them, that are left out.
    pub faults: Vec<(u32, RejectReason)>,
    /// Rows of the dump without cells.
    pub empty: Vec<u32>,
}
