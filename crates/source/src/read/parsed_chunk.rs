//! What a chunk becomes.

use arrow::array::RecordBatch;

use crate::csv::TextNotes;
use crate::origin::Origin;
use crate::reject::Rejected;
use crate::time::TimeCounts;

/// A parsed chunk. `rows_read` = rows of `batch` + `rejected`.
#[derive(Debug, Clone)]
pub struct ParsedChunk {
    /// Index of the chunk in its file.
    pub index: u64,
    /// Accepted rows in file order: columns in declared order, of the types of [`FieldType::arrow`].
    ///
    /// [`FieldType::arrow`]: tidetable_layout::FieldType::arrow
    pub batch: RecordBatch,
    /// Rows read, without blank lines and comments.
    pub rows_read: u64,
    /// Rejected rows in the order of the file, with their reasons and texts.
    pub rejected: Vec<Rejected>,
    /// The origin of the rows of `batch`.
    pub origin: Origin,
    /// How many times of `batch` were adjusted, and how many NaN became null.
    pub times: TimeCounts,
    /// Unusual records that were read all the same.
    pub notes: TextNotes,
}

/// A chunk as it was parsed, before the order of its rows tells its times.
pub(super) struct Decoded {
    pub chunk: ParsedChunk,
    /// For each column, the rows of the batch whose local time occurs twice, in ascending order.
    pub repeated: Vec<Vec<u32>>,
}
