//! The plan node that runs units: each row of its input is a unit, each row of its output the answer.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use arrow::array::{ArrayRef, AsArray, BinaryArray, RecordBatch, UInt32Array};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, UInt32Type};
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, Partitioning, PlanProperties,
};
use futures::{StreamExt, TryStreamExt};
use tidetable_runner::Stop;
use tidetable_runner::{Worker, WorkerError};

/// The signal with which a unit is stopped whose task was cancelled: that of a terminated process.
const CANCELLED: usize = 15;

/// Rows of units, and of answers: the index of the unit in the job, and its bytes.
pub(crate) fn schema() -> SchemaRef {
    let fields = [Field::new("unit", DataType::UInt32, false), Field::new("bytes", DataType::Binary, false)];
    Arc::new(Schema::new(fields.to_vec()))
}

/// A batch of one row: a unit, or the answer to one.
pub(crate) fn row(unit: u32, bytes: &[u8]) -> Result<RecordBatch> {
    let columns: Vec<ArrayRef> =
        vec![Arc::new(UInt32Array::from(vec![unit])), Arc::new(BinaryArray::from(vec![bytes]))];
    Ok(RecordBatch::try_new(schema(), columns)?)
}

/// The rows of a batch: units, or answers, with their indices in the job.
pub(crate) fn rows(batch: &RecordBatch) -> Result<Vec<(u32, Vec<u8>)>> {
    let units = batch.columns().first().and_then(|column| column.as_primitive_opt::<UInt32Type>());
    let bytes = batch.columns().get(1).and_then(|column| column.as_binary_opt::<i32>());
    let Some((units, bytes)) = units.zip(bytes) else {
        return Err(DataFusionError::Internal("a batch of other columns than units have".to_owned()));
    };
    Ok(units.values().iter().copied().zip(bytes.iter().map(|bytes| bytes.unwrap_or_default().to_vec())).collect())
}

/// Runs the units that are the rows of its input, one after the other in each partition.
#[derive(Debug)]
pub(crate) struct UnitExec {
    input: Arc<dyn ExecutionPlan>,
    /// `None` where plans are only passed on.
    worker: Option<Arc<Worker>>,
    properties: Arc<PlanProperties>,
}

impl UnitExec {
    pub(crate) fn new(input: Arc<dyn ExecutionPlan>, worker: Option<Arc<Worker>>) -> Self {
        // As many partitions as the input: a scheduler that trims the input trims this node.
        let properties = PlanProperties::new(
            EquivalenceProperties::new(schema()),
            Partitioning::UnknownPartitioning(input.output_partitioning().partition_count()),
            input.pipeline_behavior(),
            input.boundedness(),
        );
        Self { input, worker, properties: Arc::new(properties) }
    }
}

impl DisplayAs for UnitExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("UnitExec")
    }
}

impl ExecutionPlan for UnitExec {
    fn name(&self) -> &str {
        "UnitExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        let Some(input) = children.into_iter().next() else {
            return Err(DataFusionError::Internal("UnitExec without an input".to_owned()));
        };
        Ok(Arc::new(Self::new(input, self.worker.clone())))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let worker = self.worker.clone().ok_or_else(|| {
            DataFusionError::Execution("this process runs no units: start `tidetable executor`".to_owned())
        })?;
        let input = self.input.execute(partition, context)?;
        let answers = input.map_ok(move |batch| {
            let worker = Arc::clone(&worker);
            let units = rows(&batch).map(|rows| futures::stream::iter(rows.into_iter().map(Ok)));
            futures::stream::once(async move { units })
                .try_flatten()
                .and_then(move |(unit, bytes)| answer(Arc::clone(&worker), unit, bytes))
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema(), answers.try_flatten().boxed())))
    }
}

/// Stops a unit when its task is dropped: a thread that blocks does not end by itself.
struct StopOnDrop(Stop);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.signal().store(CANCELLED, Ordering::Relaxed);
    }
}

/// Runs a unit on a thread that may block. What may go better elsewhere is an I/O error, which Ballista retries.
async fn answer(worker: Arc<Worker>, unit: u32, bytes: Vec<u8>) -> Result<RecordBatch> {
    let guard = StopOnDrop(Stop::default());
    let stop = guard.0.clone();
    let done = tokio::task::spawn_blocking(move || worker.run(&bytes, &stop)).await;
    let done = done.map_err(|error| DataFusionError::IoError(std::io::Error::other(error)))?;
    let bytes = done.map_err(|error: WorkerError| DataFusionError::IoError(error.into_io()))?;
    row(unit, &bytes)
}

#[cfg(test)]
mod tests {
    use datafusion::datasource::memory::MemorySourceConfig;
    use datafusion::physical_plan::replace_children_if_necessary;

    use super::*;

    #[test]
    fn rows_survive() {
        let batch = row(7, b"\x00unit").unwrap();
        assert_eq!(rows(&batch).unwrap(), [(7, b"\x00unit".to_vec())]);
        assert!(rows(&RecordBatch::new_empty(Arc::new(Schema::empty()))).is_err());
    }

    #[test]
    fn it_has_the_partitions_of_its_input() {
        let input = |parts: u32| -> Arc<dyn ExecutionPlan> {
            let parts: Vec<_> = (0..parts).map(|unit| vec![row(unit, b"u").unwrap()]).collect();
            MemorySourceConfig::try_new_exec(&parts, schema(), None).unwrap()
        };
        let exec: Arc<dyn ExecutionPlan> = Arc::new(UnitExec::new(input(5), None));
        assert_eq!(exec.output_partitioning().partition_count(), 5);
        let trimmed = replace_children_if_necessary(exec, vec![input(1)]).unwrap();
        assert_eq!(trimmed.output_partitioning().partition_count(), 1);
        assert!(trimmed.execute(0, Arc::new(TaskContext::default())).is_err());
    }
}
