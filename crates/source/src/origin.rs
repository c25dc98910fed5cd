//! The origin of the rows of a batch, for stages that reject rows later.

use std::sync::OnceLock;

use arrow::array::{Array, RecordBatch};
use arrow::util::display::{ArrayFormatter, FormatOptions};
use bytes::Bytes;

use crate::csv::{Dialect, Scan};
use crate::reject::raw;

/// Line numbers and raw text of the rows of a batch. Keeps the chunk alive.
#[derive(Debug, Clone)]
pub struct Origin(Kind);

#[derive(Debug, Clone)]
enum Kind {
    Text {
        bytes: Bytes,
        first_line: u64,
        starts: Vec<u32>,
        dialect: Dialect,
        line_ends: OnceLock<Vec<u32>>,
    },
    Rows {
        first_row: u64,
        source: RecordBatch,
        /// For each row of `source` that of the file, counted from the first; `None` if they are the same.
        records: Option<Vec<u32>>,
        kept: Option<Vec<u32>>,
    },
}

impl Origin {
    pub(crate) fn text(bytes: Bytes, first_line: u64, starts: Vec<u32>, dialect: Dialect) -> Self {
        Self(Kind::Text { bytes, first_line, starts, dialect, line_ends: OnceLock::new() })
    }

    pub(crate) fn rows(first_row: u64, source: RecordBatch, records: Option<Vec<u32>>, kept: Option<Vec<u32>>) -> Self {
        Self(Kind::Rows { first_row, source, records, kept })
    }

    /// The origin of rows that are not from a file; the first has number `first_row`, from 1.
    pub fn of_rows(first_row: u64, batch: RecordBatch) -> Self {
        Self(Kind::Rows { first_row, source: batch, records: None, kept: None })
    }

    /// Text: the physical line, from 1, on which the record of `row` starts. Else: the number of the row, from 1.
    /// For a row that the batch does not have, the first line of the chunk.
    pub fn line(&self, row: usize) -> u64 {
        match &self.0 {
            Kind::Text { bytes, first_line, starts, line_ends, .. } => {
                let Some(start) = starts.get(row) else { return *first_line };
                let ends = line_ends.get_or_init(|| memchr::memchr_iter(b'\n', bytes).map(|end| end as u32).collect());
                first_line + ends.partition_point(|end| end < start) as u64
            }
            Kind::Rows { first_row, records, kept, .. } => {
                let row = source_row(kept.as_deref(), row).unwrap_or(0);
                first_row + source_row(records.as_deref(), row).unwrap_or(0) as u64
            }
        }
    }

    /// How many lines of text the record of `row` is on; 1 for rows that are not text.
    pub fn lines(&self, row: usize) -> u64 {
        match &self.0 {
            Kind::Text { bytes, starts, dialect, .. } => {
                let Some(start) = starts.get(row).map(|start| *start as usize) else { return 1 };
                let record = dialect.body(bytes.get(start..record_end(dialect, bytes, start)).unwrap_or_default());
                1 + memchr::memchr_iter(b'\n', record).count() as u64
            }
            Kind::Rows { .. } => 1,
        }
    }

    /// The raw record of `row`, truncated at 1 MiB; JSON-like for rows that are not text. Empty if there is no such row.
    pub fn raw(&self, row: usize) -> String {
        match &self.0 {
            Kind::Text { bytes, starts, dialect, .. } => {
                let Some(start) = starts.get(row).map(|start| *start as usize) else { return String::new() };
                let end = record_end(dialect, bytes, start);
                raw(&dialect.written(dialect.body(bytes.get(start..end).unwrap_or_default())))
            }
            Kind::Rows { source, kept, .. } => source_row(kept.as_deref(), row)
                .filter(|row| *row < source.num_rows())
                .map_or_else(String::new, |row| raw(row_text(source, row).as_bytes())),
        }
    }
}

/// The end of the record at `start`.
fn record_end(dialect: &Dialect, bytes: &[u8], start: usize) -> usize {
    match dialect.scan(bytes, start, true) {
        Scan::Record(end) => end,
        Scan::Open { .. } | Scan::More => bytes.len(),
    }
}

fn source_row(kept: Option<&[u32]>, row: usize) -> Option<usize> {
    match kept {
        None => Some(row),
        Some(kept) => kept.get(row).map(|row| *row as usize),
    }
}

/// A row as an object like JSON, for the log of rejected rows.
pub(crate) fn row_text(batch: &RecordBatch, row: usize) -> String {
    let options = FormatOptions::new().with_null("null");
    let mut text = String::from("{");
    for (field, array) in batch.schema_ref().fields().iter().zip(batch.columns()) {
        if text.len() > 1 {
            text.push_str(", ");
        }
        let value = ArrayFormatter::try_new(array.as_ref(), &options).map(|values| values.value(row).to_string());
        let value = value.unwrap_or_default();
        let bare = array.is_null(row) || array.data_type().is_numeric();
        text.push_str(&if bare {
            format!("{:?}: {value}", field.name())
        } else {
            format!("{:?}: {value:?}", field.name())
        });
    }
    text.push('}');
    text
}
