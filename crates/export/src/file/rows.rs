//! Plans a query and writes its rows in order, batch by batch.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion::error::DataFusionError;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};
use datafusion::prelude::DataFrame;
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt};
use parquet::file::metadata::SortingColumn;
use tidetable_sql::{PlannedQuery, plan_frame};

use crate::error::{ExportError, Result};
use crate::file::failures::Failures;
use crate::file::ordering::sorting_columns;
use crate::file::shape::{ColumnTypes, duplicate, file_schema, to_file};
use crate::file::writer::FileWriter;

/// Receives the rows of a file.
pub(crate) trait RowSink {
    /// Writes a batch.
    ///
    /// # Errors
    /// Those of writing, as `failures` names them.
    fn write(&mut self, batch: &RecordBatch, failures: &Failures<'_>) -> Result<()>;
}

impl RowSink for FileWriter {
    fn write(&mut self, batch: &RecordBatch, failures: &Failures<'_>) -> Result<()> {
        Self::write(self, batch).map_err(|error| failures.write(error))
    }
}

/// A query that is planned for a file: its plan yields rows in the order of the file.
pub(crate) struct Planned {
    query: PlannedQuery,
    /// The columns of the file.
    pub(crate) schema: SchemaRef,
    /// The rows of the first partition, if they are [being read](Self::begin).
    first: Option<BoxStream<'static, Result<RecordBatch, DataFusionError>>>,
}

impl Planned {
    /// Plans the query `frame`, whose errors `failures` names, for a file with columns of `types`.
    ///
    /// # Errors
    /// If the query cannot be planned, or two of its columns have the same name.
    pub(crate) async fn of(frame: DataFrame, types: ColumnTypes, failures: &Failures<'_>) -> Result<Self> {
        let mut query = plan_frame(frame).await.map_err(|error| failures.query(error))?;
        query.plan = in_order(query.plan);

        let schema = file_schema(&query.plan.schema(), types);
        if let Some(column) = duplicate(&schema) {
            let (export, column) = (failures.export.to_owned(), column.to_owned());
            return Err(ExportError::DuplicateColumn { export, column });
        }
        Ok(Self { query, schema, first: None })
    }

    /// The columns by which the rows are sorted.
    pub(crate) fn sorting(&self) -> Vec<SortingColumn> {
        sorting_columns(self.query.plan.as_ref(), &self.schema)
    }

    /// Reads up to the first rows, which [`Self::write`] then writes.
    ///
    /// # Errors
    /// If the query fails before.
    pub(crate) async fn begin(&mut self) -> Result<(), DataFusionError> {
        if self.query.plan.output_partitioning().partition_count() > 0 {
            let mut rows = self.query.stream_of(0);
            let batch = rows.try_next().await?;
            self.first = Some(futures::stream::iter(batch.map(Ok)).chain(rows).boxed());
        }
        Ok(())
    }

    /// Writes all rows. Returns their number.
    ///
    /// # Errors
    /// Those of the query and of writing.
    pub(crate) async fn write<R: RowSink>(mut self, mut to: R, failures: &Failures<'_>) -> Result<(R, u64)> {
        let mut rows = 0;
        // Sequential, so that the same rows come in the same order.
        for part in 0..self.query.plan.output_partitioning().partition_count() {
            let mut stream = self.first.take().unwrap_or_else(|| self.query.stream_of(part).boxed());
            while let Some(batch) = stream.try_next().await.map_err(|error| failures.engine(error))? {
                if batch.num_rows() == 0 {
                    continue;
                }
                rows += batch.num_rows() as u64;
                let batch = to_file(&batch, &self.schema).map_err(|error| failures.write(error))?;
                to.write(&batch, failures)?;
            }
        }

        Ok((to, rows))
    }
}

/// Merges sorted partitions into one: a union has several even in a session with one.
fn in_order(plan: Arc<dyn ExecutionPlan>) -> Arc<dyn ExecutionPlan> {
    if plan.output_partitioning().partition_count() == 1 {
        return plan;
    }
    match plan.output_ordering().cloned() {
        Some(ordering) => Arc::new(SortPreservingMergeExec::new(ordering, plan)),
        None => plan,
    }
}
