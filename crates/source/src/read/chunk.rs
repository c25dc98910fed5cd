//! Chunks: parts of a file that any thread can parse.

use std::sync::Arc;

use arrow::array::RecordBatch;
use bytes::Bytes;
use memchr::{memchr, memchr_iter};

use crate::blocks::Blocks;
use crate::column_diff::ColumnDiff;
use crate::csv::{Dialect, LaterHeader};
use crate::parquet::GroupSlice;
use crate::read::parsed_chunk::ParsedChunk;

/// Whole records of a text, a slice of a row group of a Parquet file, rows of Arrow IPC, or blocks of an Avro file.
#[derive(Debug, Clone)]
pub struct Chunk {
    pub(crate) index: u64,
    pub(crate) first_line: u64,
    pub(crate) offset: u64,
    pub(crate) body: Body,
    /// The header of its records, if it is not the first of a CSV.
    pub(crate) header: Option<Arc<LaterHeader>>,
}

#[derive(Debug, Clone)]
pub(crate) enum Body {
    Text {
        bytes: Bytes,
        lines: usize,
        plain: bool,
    },
    Parquet(GroupSlice),
    /// Rows of a batch of Arrow IPC.
    Batch {
        batch: RecordBatch,
        /// Whether the stream ends behind them without the mark of its end.
        ends_unmarked: bool,
    },
    Avro(Blocks),
    /// Rows that the reader had to parse itself, because their meaning depends on the rows before them.
    Parsed(Box<ParsedChunk>),
}

impl Body {
    /// Whole records of a text in this dialect, with what the parser wants to know of them.
    pub fn of_text(bytes: Bytes, dialect: &Dialect) -> Self {
        let lines = memchr_iter(b'\n', &bytes).count();
        let plain = dialect.quote.is_none_or(|quote| memchr(quote, &bytes).is_none());
        Self::Text { bytes, lines, plain }
    }
}

impl Chunk {
    /// The index of the chunk in its file, from 0.
    pub fn index(&self) -> u64 {
        self.index
    }

    /// Text: the physical line of the first byte, from 1. Else: the number of the first row, from 1.
    pub fn first_line(&self) -> u64 {
        self.first_line
    }

    /// Text: offset of the chunk in the text, in bytes. Else: number of rows before it.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// How the columns of its header differ from the declared ones, if that is not the first header of the file.
    pub fn diff(&self) -> Option<&ColumnDiff> {
        self.header.as_ref().map(|later| &later.diff)
    }

    /// An upper bound of the number of rows.
    pub fn rows_at_most(&self) -> usize {
        match &self.body {
            Body::Text { lines, .. } => lines + 1,
            Body::Parquet(slice) => slice.rows,
            Body::Batch { batch, .. } => batch.num_rows(),
            Body::Avro(blocks) => blocks.records,
            Body::Parsed(parsed) => parsed.rows_read as usize,
        }
    }
}
