//! Window functions of a stream of batches, sorted by partition and order.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch};
use arrow::compute::{concat, partition};
use arrow::datatypes::SchemaRef;
use datafusion::error::Result;
use datafusion::physical_expr::window::WindowExpr;
use datafusion::physical_plan::PhysicalExpr;

use crate::grouping::exec::evaluate;
use crate::row_windows::function::{Partitions, RowFunction};

/// The window functions of a plan that have one list of partition expressions.
pub(crate) struct RowWindows {
    /// Schema of the output: that of the input, followed by the functions.
    schema: SchemaRef,
    partition_by: Vec<Arc<dyn PhysicalExpr>>,
    functions: Vec<RowFunction>,
    /// Partition of the last row; empty before the first batch.
    last: Vec<ArrayRef>,
    /// Rows of that partition that were added so far.
    rows: usize,
}

impl RowWindows {
    /// `None` if a function is not evaluated by batch.
    pub(crate) fn new(windows: &[Arc<dyn WindowExpr>], schema: &SchemaRef) -> Option<Self> {
        let functions = windows.iter().map(|window| RowFunction::of(window.as_ref())).collect::<Option<_>>()?;
        let partition_by = windows.first()?.partition_by().to_vec();
        Some(Self { schema: Arc::clone(schema), partition_by, functions, last: Vec::new(), rows: 0 })
    }

    /// The batch with a column behind it for each function.
    pub(crate) fn add(&mut self, batch: &RecordBatch) -> Result<RecordBatch> {
        if batch.num_rows() == 0 {
            return Ok(RecordBatch::new_empty(Arc::clone(&self.schema)));
        }
        let keys = evaluate(&self.partition_by, batch)?;
        let runs = match keys.is_empty() {
            true => std::iter::once(0..batch.num_rows()).collect(),
            false => partition(&keys)?.ranges(),
        };
        let before = if self.continues(&keys)? { self.rows } else { 0 };
        let partitions = Partitions { runs: &runs, before };
        let mut columns = batch.columns().to_vec();
        for function in &mut self.functions {
            columns.push(function.add(batch, &partitions)?);
        }
        let last = runs.last().map_or(0, Range::len);
        self.rows = if runs.len() == 1 { before + last } else { last };
        self.last = keys.iter().map(|key| key.slice(batch.num_rows() - 1, 1)).collect();
        Ok(RecordBatch::try_new(Arc::clone(&self.schema), columns)?)
    }

    /// Whether the partition of the first row is that of the last row before.
    fn continues(&self, keys: &[ArrayRef]) -> Result<bool> {
        if keys.is_empty() {
            return Ok(true);
        }

        let mut pairs = Vec::with_capacity(keys.len());
        for (last, key) in self.last.iter().zip(keys) {
            pairs.push(concat(&[last.as_ref(), key.slice(0, 1).as_ref()])?);
        }
        Ok(!pairs.is_empty() && partition(&pairs)?.len() == 1)
    }
}
