//! The rows of one query in one file anywhere, such as for the command `export`.

pub(crate) mod bigtable;
pub(crate) mod bigtable_avro;
pub(crate) mod cbt;
pub(crate) mod cell_query;
pub(crate) mod cells;
pub(crate) mod csv;
pub(crate) mod failures;
pub(crate) mod format;
pub(crate) mod ordering;
pub(crate) mod rows;
pub(crate) mod shape;
pub(crate) mod spec;
pub(crate) mod writer;

use std::io::Write;

use arrow::array::RecordBatch;
use arrow::error::ArrowError;
use arrow::ipc::writer::StreamWriter;
use datafusion::prelude::DataFrame;
use datafusion::scalar::ScalarValue;
use tidetable_blobs::BlobWriter;
use tidetable_sql::{Session, SqlError};

use crate::error::Result;
use crate::file::cell_query::{cell_columns, cells_in_order};
use crate::file::failures::Failures;
use crate::file::format::FileFormat;
use crate::file::rows::{Planned, RowSink};
use crate::file::shape::ColumnTypes;
use crate::file::spec::FileSpec;
use crate::file::writer::FileWriter;

/// A query whose rows are written to a file.
#[derive(Debug, Clone, Copy)]
pub struct QueryFile<'a> {
    /// The session of the query.
    pub session: &'a Session,
    /// The query. For the formats of cells, such as [`FileFormat::BigtableParquet`], it returns cells, as `cells.T` does.
    pub sql: &'a str,
    /// Values for its `$name` parameters.
    pub params: &'a [(&'a str, ScalarValue)],
    /// Format of the file; that of cells asks for a query of cells.
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
        let failures = self.failures(self.format.file_name().trim_start_matches("part-0."));
        let planned = self.planned(&failures, || ()).await?;
        let cells = match self.format {
            FileFormat::CbtCsv => cell_columns(self.session, self.sql, self.params).await,
            _ => Ok(Vec::new()),
        };

        let spec = FileSpec {
            format: self.format,
            schema: planned.schema.clone(),
            sorting: planned.sorting(),
            metadata: &[],
            columns: cells.map_err(|error| failures.query(error))?,
        };
        let writer = FileWriter::new(blob, &spec).map_err(|error| failures.write(error))?;
        let (writer, rows) = planned.write(writer, &failures).await?;

        let file = writer.finish().map_err(|error| failures.write(error))?;
        let bytes = file.bytes;
        file.publish()?;
        Ok((rows, bytes))
    }

    /// Writes the rows to `out` as an Arrow IPC stream, with the types that a file would have. Each batch is flushed, so that a
    /// program reads rows while the query runs. Returns their number.
    ///
    /// # Errors
    /// Those of the query and of writing.
    pub async fn stream(&self, out: impl Write) -> Result<u64> {
        let failures = self.failures("rows");
        let planned = self.planned(&failures, || ()).await?;
        let mut writer = StreamWriter::try_new(out, &planned.schema).map_err(|error| failures.write(error))?;
        writer.flush().map_err(|error| failures.write(error))?;

        let (_, rows) = planned
            .write(
                Sink(|batch: &RecordBatch| {
                    writer.write(batch)?;
                    writer.flush()
                }),
                &failures,
            )
            .await?;
        writer.finish().map_err(|error| failures.write(error))?;
        Ok(rows)
    }

    /// Passes the rows to `sink`, in the order and with the types that a file would have. Returns their number.
    ///
    /// # Errors
    /// Those of the query and of `sink`.
    pub async fn each(&self, sink: impl FnMut(&RecordBatch) -> Result<(), ArrowError>) -> Result<u64> {
        let failures = self.failures("rows");
        let planned = self.planned(&failures, || ()).await?;
        Ok(planned.write(Sink(sink), &failures).await?.1)
    }

    fn failures<'f>(&'f self, label: &'f str) -> Failures<'f> {
        Failures { export: self.name, label, path: self.name }
    }

    /// Plans the query and, if it reads exports, reads up to its first rows; again while files of exports are replaced meanwhile.
    /// Calls `is_planned` each time when the query is planned, and nothing is read yet.
    async fn planned(&self, failures: &Failures<'_>, is_planned: impl Fn()) -> Result<Planned> {
        let mut plans = 0;
        loop {
            plans += 1;
            match self.begun(failures, &is_planned).await {
                Err(_) if self.session.plans_again(plans) => {}
                begun => return begun,
            }
        }
    }

    /// Plans the query once, and reads up to its first rows if it reads exports.
    async fn begun(&self, failures: &Failures<'_>, is_planned: &impl Fn()) -> Result<Planned> {
        let frame = self.frame().await.map_err(|error| failures.query(error))?;
        let mut planned = Planned::of(frame, ColumnTypes::default(), failures).await?;
        is_planned();

        if self.session.reads_exports() {
            planned.begin().await.map_err(|error| failures.engine(error))?;
        }
        Ok(planned)
    }

    async fn frame(&self) -> Result<DataFrame, SqlError> {
        let frame = self.session.sql_with(self.sql, self.params).await?;
        if self.format.holds_rows() { Ok(frame) } else { cells_in_order(frame) }
    }
}

/// Passes rows to a function instead of a file.
struct Sink<F>(F);

impl<F: FnMut(&RecordBatch) -> Result<(), ArrowError>> RowSink for Sink<F> {
    fn write(&mut self, batch: &RecordBatch, failures: &Failures<'_>) -> Result<()> {
        (self.0)(batch).map_err(|error| failures.write(error))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    use tempfile::TempDir;
    use tidetable_blobs::LocalBlobs;
    use tidetable_sql::SessionOptions;
    use tidetable_store::Store;
    use tidetable_store::published::{Part, Published, file_checksum};

    use super::*;

    /// Publishes a part of so many rows, in the place of that before.
    fn publish(store: &Store, rows: u64) {
        let blobs = store.blobs().as_ref();
        let text: String = std::iter::once("n\n".to_owned()).chain((0..rows).map(|row| format!("{row}\n"))).collect();
        blobs.replace("exports/DAY_1/part-0.csv", text.as_bytes()).unwrap();
        let checksum = file_checksum(blobs, "exports/DAY_1/part-0.csv").unwrap();
        let (folder, file) = ("DAY_1".to_owned(), "part-0.csv".to_owned());
        let part = Part { folder, file, rows, bytes: text.len() as u64, checksum, ..Part::default() };
        let columns = vec![("n".to_owned(), "Int64".to_owned())];
        let parts = BTreeMap::from([("1".to_owned(), part)]);
        let mut list = Published { columns, parts, ..Published::load(blobs, "DAY").unwrap() };
        list.save(blobs).unwrap();
    }

    #[tokio::test]
    async fn a_file_of_an_export_that_is_published_meanwhile_is_planned_again() {
        let folder = TempDir::new().unwrap();
        let store = Store::new(Arc::new(LocalBlobs::new(folder.path().to_owned())));
        publish(&store, 100);
        let session = Session::open(&store, &SessionOptions::default()).unwrap();
        let sql = "SELECT n FROM exports.\"DAY\"";
        let file = QueryFile { session: &session, sql, params: &[], format: FileFormat::Parquet, name: "x.parquet" };
        let failures = file.failures("rows");
        let plans = AtomicU64::new(0);
        let publish_until = |last: u64| {
            let (plans, store) = (&plans, &store);
            move || {
                let plan = plans.fetch_add(1, Ordering::Relaxed) + 1;
                if plan <= last {
                    publish(store, 100 + plan);
                }
            }
        };

        let planned = file.planned(&failures, publish_until(2)).await.unwrap();
        let mut found = 0;
        let count = Sink(|batch: &RecordBatch| {
            found += batch.num_rows();
            Ok(())
        });
        let (_, rows) = planned.write(count, &failures).await.unwrap();
        assert_eq!((rows, plans.load(Ordering::Relaxed)), (102, 3));
        assert_eq!(found, 102);

        // It is not planned for ever.
        let error = file.planned(&failures, publish_until(u64::MAX)).await.err().unwrap().to_string();
        assert!(error.contains("published again"), "{error}");
    }
}
