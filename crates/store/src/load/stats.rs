//! What a load did, counted and timed.

use std::time::Duration;

use serde::Serialize;

/// Counts and times of a load. Times of work done on several cores add up over the cores' tasks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct LoadStats {
    /// Rows read of new and changed inputs.
    pub rows_read: u64,
    /// Rows laid out.
    pub rows_accepted: u64,
    /// Rows that the table's `where` left out.
    pub rows_filtered: u64,
    /// Rows that did not fit their declared columns or the layout.
    pub rows_rejected: u64,
    /// Rows of the table written to SSTs.
    pub rows_written: u64,
    /// Cells written to SSTs.
    pub cells: u64,
    /// Cells a later one of the same load wrote over.
    pub overwritten: u64,
    /// Bytes of inputs, as stored.
    pub bytes_in: u64,
    /// Bytes of SSTs.
    pub bytes_out: u64,
    /// Waiting for inputs.
    #[serde(serialize_with = "seconds")]
    pub read: Duration,
    /// Parsing and laying out.
    #[serde(serialize_with = "seconds")]
    pub parse: Duration,
    /// Ordering cells.
    #[serde(serialize_with = "seconds")]
    pub sort: Duration,
    /// Building and compressing stripes.
    #[serde(serialize_with = "seconds")]
    pub encode: Duration,
    /// Writing and syncing SSTs.
    #[serde(serialize_with = "seconds")]
    pub write: Duration,
}

impl LoadStats {
    /// Adds another load's counts and times.
    pub fn add(&mut self, other: &Self) {
        self.rows_read += other.rows_read;
        self.rows_accepted += other.rows_accepted;
        self.rows_filtered += other.rows_filtered;
        self.rows_rejected += other.rows_rejected;
        self.rows_written += other.rows_written;
        self.cells += other.cells;
        self.overwritten += other.overwritten;
        self.bytes_in += other.bytes_in;
        self.bytes_out += other.bytes_out;
        self.read += other.read;
        self.parse += other.parse;
        self.sort += other.sort;
        self.encode += other.encode;
        self.write += other.write;
    }
}

fn seconds<S: serde::Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(duration.as_secs_f64())
}
