//! Batches of a sorted input with the bytes of their keys and times.

use std::cmp::Ordering;
use std::sync::{Arc, OnceLock};

use arrow::array::{Array, ArrayRef, RecordBatch};
use arrow::buffer::NullBuffer;
use arrow::compute::SortOptions;
use arrow::row::{RowConverter, Rows, SortField};
use datafusion::common::internal_err;
use datafusion::error::Result;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::physical_plan::PhysicalExpr;
use futures::StreamExt;

/// A batch, sorted by keys and time.
pub(super) struct SortedBatch {
    pub(super) batch: RecordBatch,
    /// `None` without keys.
    keys: Option<Rows>,
    times: Rows,
    /// Rows with all keys and a time.
    valid: Option<NullBuffer>,
    /// All columns, to choose among rows of one time; `None` if they cannot be sorted.
    columns: OnceLock<Option<Rows>>,
}

impl SortedBatch {
    pub(super) fn is_valid(&self, row: usize) -> bool {
        self.valid.as_ref().is_none_or(|valid| valid.is_valid(row))
    }

    /// The order of the keys of two rows.
    pub(super) fn compare_keys(&self, row: usize, other: &Self, of_other: usize) -> Ordering {
        match (&self.keys, &other.keys) {
            (Some(keys), Some(others)) => keys.row(row).cmp(&others.row(of_other)),
            _ => Ordering::Equal,
        }
    }

    /// The order of the times of two rows, in the direction of the sort.
    pub(super) fn compare_times(&self, row: usize, other: &Self, of_other: usize) -> Ordering {
        self.times.row(row).cmp(&other.times.row(of_other))
    }

    /// The order of the values of two rows, column by column.
    pub(super) fn compare_values(&self, row: usize, other: &Self, of_other: usize) -> Ordering {
        match (self.columns(), other.columns()) {
            (Some(columns), Some(others)) => columns.row(row).cmp(&others.row(of_other)),
            _ => Ordering::Equal,
        }
    }

    fn columns(&self) -> Option<&Rows> {
        let rows = || {
            let fields =
                self.batch.schema().fields().iter().map(|field| SortField::new(field.data_type().clone())).collect();
            RowConverter::new(fields).ok()?.convert_columns(self.batch.columns()).ok()
        };
        self.columns.get_or_init(rows).as_ref()
    }
}

/// The batches of one side.
pub(super) struct SortedInput {
    batches: SendableRecordBatchStream,
    /// The keys, and the time last.
    exprs: Vec<Arc<dyn PhysicalExpr>>,
    keys: Option<RowConverter>,
    times: RowConverter,
}

impl SortedInput {
    /// # Errors
    /// If a type cannot be sorted.
    pub(super) fn new(
        batches: SendableRecordBatchStream,
        exprs: Vec<Arc<dyn PhysicalExpr>>,
        options: &[SortOptions],
    ) -> Result<Self> {
        let schema = batches.schema();
        let mut fields = Vec::with_capacity(exprs.len());
        for (expr, options) in exprs.iter().zip(options) {
            fields.push(SortField::new_with_options(expr.data_type(&schema)?, *options));
        }
        let Some(time) = fields.pop() else { return internal_err!("an ASOF join compares times") };
        let keys = if fields.is_empty() { None } else { Some(RowConverter::new(fields)?) };
        Ok(Self { batches, exprs, keys, times: RowConverter::new(vec![time])? })
    }

    /// The next batch that has rows; `None` at the end.
    ///
    /// # Errors
    /// Those of the input.
    pub(super) async fn next(&mut self) -> Result<Option<Arc<SortedBatch>>> {
        while let Some(batch) = self.batches.next().await {
            let batch = batch?;
            if batch.num_rows() > 0 {
                return self.sorted(batch).map(|batch| Some(Arc::new(batch)));
            }
        }
        Ok(None)
    }

    fn sorted(&self, batch: RecordBatch) -> Result<SortedBatch> {
        let mut columns: Vec<ArrayRef> = Vec::with_capacity(self.exprs.len());
        let mut valid = None;
        for expr in &self.exprs {
            let column = expr.evaluate(&batch)?.into_array(batch.num_rows())?;
            valid = NullBuffer::union(valid.as_ref(), column.logical_nulls().as_ref());
            columns.push(column);
        }
        let Some(time) = columns.pop() else { return internal_err!("an ASOF join compares times") };
        let keys = self.keys.as_ref().map(|keys| keys.convert_columns(&columns)).transpose()?;
        let times = self.times.convert_columns(&[time])?;
        Ok(SortedBatch { batch, keys, times, valid, columns: OnceLock::new() })
    }
}
