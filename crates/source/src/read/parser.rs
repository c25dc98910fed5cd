//! Parses chunks to typed batches. One parser is shared by all threads that parse chunks of its file.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow::datatypes::{Field, Schema, SchemaRef};
use arrow::error::ArrowError;
use bytes::Bytes;
use tidetable_layout::FieldType;

use crate::blocks::AvroPlan;
use crate::column_diff::ColumnDiff;
use crate::columnar::{self, ColumnarPlan};
use crate::csv::{self, Block, CsvPlan, Dialect, TextNotes};
use crate::error::{SourceError, at_boundary};
use crate::json::{self, JsonPlan};
use crate::origin::Origin;
use crate::parquet::ParquetPlan;
use crate::plan::PathColumn;
use crate::read::chunk::{Body, Chunk};
use crate::read::parsed_chunk::{Decoded, ParsedChunk};
use crate::reject::Rejected;
use crate::spec::SourceSpec;
use crate::time::{Adjusted, EpochColumn};
use crate::value::ColumnPlan;

/// Parses chunks of one file, with its columns matched to the declared ones.
#[derive(Debug)]
pub struct Parser {
    path: String,
    schema: SchemaRef,
    plan: Plan,
    diff: ColumnDiff,
    path_columns: Vec<PathColumn>,
    epochs: Vec<EpochColumn>,
}

#[derive(Debug)]
pub(crate) enum Plan {
    Csv(CsvPlan),
    Json(JsonPlan),
    Parquet(ParquetPlan),
    Arrow(ColumnarPlan),
    Avro(AvroPlan),
}

/// The schema of the batches of these columns.
pub(crate) fn schema_of(columns: &[ColumnPlan]) -> SchemaRef {
    let fields = columns.iter().map(|column| Field::new(&column.name, column.kind.arrow(), true));
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

impl Parser {
    pub(crate) fn new(path: String, schema: SchemaRef, plan: Plan, diff: ColumnDiff) -> Self {
        Self { path, schema, plan, diff, path_columns: Vec::new(), epochs: Vec::new() }
    }

    /// The same, with the columns that the path of the file names.
    pub(crate) fn with_path_columns(self, path_columns: Vec<PathColumn>) -> Self {
        Self { path_columns, ..self }
    }

    /// The same, with a look at the epoch times that `spec` declares.
    pub(crate) fn with_epochs(self, spec: &SourceSpec) -> Self {
        let columns = spec.columns.iter().enumerate().filter(|(_, column)| column.kind == FieldType::Timestamp);
        let epochs = columns.filter_map(|(index, column)| EpochColumn::new(index, column.format.as_deref()?));
        Self { epochs: epochs.collect(), ..self }
    }

    pub(crate) fn plan(&self) -> &Plan {
        &self.plan
    }

    /// How the columns of the file differ from the declared ones; empty if the schema mode ignores the differences.
    pub fn diff(&self) -> &ColumnDiff {
        &self.diff
    }

    /// The schema of every batch: the declared columns, all of them nullable.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Parses a chunk of the same file.
    ///
    /// # Errors
    /// [`SourceError::Parquet`], [`SourceError::Io`] or [`SourceError::Changed`] if a slice of a Parquet file does not
    /// decode, [`SourceError::DamagedBlock`] if blocks of Avro do not; [`SourceError::RowCount`] and [`SourceError::Arrow`] only for faults of this crate. Text never fails: a
    /// row that cannot be read is rejected. A panic of a library is [`SourceError::Panicked`].
    pub fn parse(&self, chunk: Chunk) -> Result<ParsedChunk, SourceError> {
        at_boundary(&self.path, || self.decode(chunk)).map(|decoded| decoded.chunk)
    }

    /// As [`Self::parse`], with the rows whose times depend on their order.
    pub(super) fn decode(&self, chunk: Chunk) -> Result<Decoded, SourceError> {
        let Chunk { index, first_line, body, header, .. } = chunk;
        let parsed = match (&self.plan, body) {
            (Plan::Csv(plan), Body::Text { bytes, lines, plain }) => {
                let later_header = header.as_deref();
                let parsed = csv::parse(plan, Block { bytes: &bytes, first_line, lines, plain, later_header });
                columns_of_text(parsed.map_err(|source| self.arrow(source))?, bytes, first_line, plan.dialect)
            }
            (Plan::Json(plan), Body::Text { bytes, lines, plain }) => {
                let parsed = json::parse(plan, Block { bytes: &bytes, first_line, lines, plain, later_header: None });
                columns_of_text(parsed.map_err(|source| self.arrow(source))?, bytes, first_line, plan.dialect)
            }
            (Plan::Parquet(plan), Body::Parquet(slice)) => columns_of(plan.parse(slice, first_line)?, first_line),
            (Plan::Arrow(plan), Body::Batch { batch, ends_unmarked }) => {
                let last_row = first_line + (batch.num_rows() as u64).saturating_sub(1);
                let mut parsed = columns_of(plan.parse(batch, first_line, &|_| Ok(Vec::new()))?, first_line);
                if ends_unmarked {
                    parsed.notes.unmarked_ends.add(last_row);
                }
                parsed
            }
            (Plan::Avro(plan), Body::Avro(blocks)) => columns_of(plan.parse(&blocks, first_line)?, first_line),
            (_, Body::Parsed(parsed)) => return Ok(Decoded { chunk: *parsed, repeated: Vec::new() }),
            // A chunk of another file.
            (Plan::Csv(_) | Plan::Json(_) | Plan::Parquet(_) | Plan::Arrow(_) | Plan::Avro(_), _) => {
                return Err(SourceError::Changed { path: self.path.clone() });
            }
        };

        let ParsedColumns { mut columns, read: rows_read, rejected, origin, times, mut notes } = parsed;
        let accepted = rows_read.saturating_sub(rejected.len() as u64);
        for of_path in &self.path_columns {
            if let Some(column) = columns.get_mut(of_path.index) {
                *column = of_path.column(accepted as usize).map_err(|source| self.arrow(source))?;
            }
        }

        let batch = self.batch(columns, accepted).map_err(|source| self.arrow(source))?;
        let (accepted, count) = (batch.num_rows() as u64, rejected.len() as u64);
        if accepted + count != rows_read {
            return Err(SourceError::RowCount { path: self.path.clone(), read: rows_read, accepted, rejected: count });
        }
        for column in &self.epochs {
            notes.epochs.add_rows(*column, &batch, &|row| origin.line(row));
        }
        let repeated = times.repeated;
        let chunk = ParsedChunk { index, batch, rows_read, rejected, origin, times: times.counts, notes };
        Ok(Decoded { chunk, repeated })
    }

    /// Whether a chunk has any row, accepted or not. Text is parsed for it: blank lines and repeated headers are no rows.
    ///
    /// # Errors
    /// As [`Self::parse`].
    pub(crate) fn holds_rows(&self, chunk: Chunk) -> Result<bool, SourceError> {
        match &chunk.body {
            Body::Text { .. } => Ok(self.parse(chunk)?.rows_read > 0),
            Body::Parquet(_) | Body::Batch { .. } | Body::Avro(_) | Body::Parsed(_) => Ok(chunk.rows_at_most() > 0),
        }
    }

    fn batch(&self, columns: Vec<ArrayRef>, rows: u64) -> Result<RecordBatch, ArrowError> {
        // Without columns the row count must be explicit.
        let rows = columns.is_empty().then_some(rows as usize);
        let options = RecordBatchOptions::new().with_row_count(rows);
        RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options)
    }

    fn arrow(&self, source: ArrowError) -> SourceError {
        SourceError::Arrow { path: self.path.clone(), source }
    }
}

/// What a part of a text became.
fn columns_of_text(parsed: csv::Parsed, bytes: Bytes, first_line: u64, dialect: Dialect) -> ParsedColumns {
    let csv::Parsed { columns, starts, rejected, read, times, notes } = parsed;
    let origin = Origin::text(bytes, first_line, starts, dialect);
    ParsedColumns { columns, read, rejected, origin, times, notes }
}

/// What a batch became: columns, rows read and rejected, origin, times and notes.
fn columns_of(parsed: columnar::Parsed, first_row: u64) -> ParsedColumns {
    let columnar::Parsed { columns, source, records, kept, rejected, read, times, notes } = parsed;
    let origin = Origin::rows(first_row, source, records, kept);
    ParsedColumns { columns, read, rejected, origin, times, notes }
}

/// What became of a chunk, column by column.
struct ParsedColumns {
    columns: Vec<ArrayRef>,
    read: u64,
    rejected: Vec<Rejected>,
    origin: Origin,
    times: Adjusted,
    notes: TextNotes,
}
