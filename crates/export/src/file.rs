//! The rows of one query in one file anywhere, such as for the command `export`.

pub(crate) mod bigtable;
pub(crate) mod cbt;
pub(crate) mod cells;
pub(crate) mod csv;
pub(crate) mod format;
pub(crate) mod ordering;
pub(crate) mod rows;
pub(crate) mod shape;
pub(crate) mod spec;
pub(crate) mod writer;

use arrow::array::RecordBatch;
use arrow::error::ArrowError;
use datafusion::error::DataFusionError;
use datafusion::prelude::DataFrame;
use datafusion::scalar::ScalarValue;
use tidetable_blobs::BlobWriter;
use tidetable_sql::{Session, SqlError};

use crate::error::{ExportError, Result};
use crate::file::format::FileFormat;
use crate::file::rows::{Planned, RowSink};
use crate::file::spec::FileSpec;
use crate::file::writer::FileWriter;
use crate::part::mode::{cell_columns, cells_in_order};

/// A query whose rows are written to a file.
#[derive(Debug, Clone, Copy)]
pub struct QueryFile<'a> {
    /// The session of the query.
    pub session: &'a Session,
    /// The query. For [`FileFormat::BigtableParquet`] and [`FileFormat::CbtCsv`] it returns cells, as `cells.T` does.
    pub sql: &'a str,
    /// Values for its `$name` parameters.
    pub params: &'a [(&'a str, ScalarValue)],
    /// The file format.
    pub format: FileFormat,
    /// The file in messages.
    pub name: &'a str,
}

impl QueryFile<'_> {
    /// Writes the file, which becomes visible when complete. Returns the number of rows and of bytes.
    ///
    /// # Errors
    /// Those of the query and of writing; then no file is created, or the existing one is unchanged.
    pub async fn write(&self, blob: Box<dyn BlobWriter>) -> Result<(u64, u64)> {
        let failed = |source: SqlError| ExportError::Query {
            export: self.name.to_owned(),
            label: self.format.file_name().trim_start_matches("part-0.").to_owned(),
            source: Box::new(source),
        };
        let engine = |source: DataFusionError| failed(source.into());
        let write = |source| ExportError::Write { path: self.name.to_owned(), source };
        let frame = self.frame().await.map_err(failed)?;
        let planned = Planned::of(frame, self.name, failed).await?;
        let spec = FileSpec {
            format: self.format,
            schema: planned.schema.clone(),
            sorting: planned.sorting(),
            metadata: &[],
            columns: match self.format {
                FileFormat::CbtCsv => cell_columns(self.session, self.sql, self.params).await.map_err(failed)?,
                _ => Vec::new(),
            },
        };
        let writer = FileWriter::new(blob, &spec).map_err(write)?;
        let (writer, rows) = planned.write(writer, (engine, write)).await?;
        let file = writer.finish().map_err(write)?;
        let bytes = file.bytes;
        file.publish()?;
        Ok((rows, bytes))
    }

    /// Passes the rows to `sink`, in the order and with the types that a file would have. Returns their number.
    ///
    /// # Errors
    /// Those of the query and of `sink`.
    pub async fn each(&self, sink: impl FnMut(&RecordBatch) -> Result<(), ArrowError>) -> Result<u64> {
        let failed = |source: SqlError| ExportError::Query {
            export: self.name.to_owned(),
            label: "rows".to_owned(),
            source: Box::new(source),
        };
        let engine = |source: DataFusionError| failed(source.into());
        let write = |source| ExportError::Write { path: self.name.to_owned(), source };
        let frame = self.frame().await.map_err(failed)?;
        let planned = Planned::of(frame, self.name, failed).await?;
        Ok(planned.write(Sink(sink), (engine, write)).await?.1)
    }

    async fn frame(&self) -> Result<DataFrame, SqlError> {
        let frame = self.session.sql_with(self.sql, self.params).await?;
        if self.format.holds_rows() { Ok(frame) } else { cells_in_order(frame) }
    }
}

/// Passes rows to a function instead of a file.
struct Sink<F>(F);

impl<F: FnMut(&RecordBatch) -> Result<(), ArrowError>> RowSink for Sink<F> {
    fn write(&mut self, batch: &RecordBatch, wrap: &dyn Fn(ArrowError) -> ExportError) -> Result<()> {
        (self.0)(batch).map_err(wrap)
    }
}
