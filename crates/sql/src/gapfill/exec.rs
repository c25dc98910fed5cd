//! The physical node that fills gaps of groups, whose rows are sorted by the keys and the time.

use std::fmt::{self, Formatter};
use std::sync::Arc;

use arrow::compute::SortOptions;
use arrow::datatypes::SchemaRef;
use datafusion::common::internal_err;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{
    Distribution, EquivalenceProperties, LexOrdering, OrderingRequirements, PhysicalSortExpr,
};
use datafusion::physical_plan::coop::cooperative;
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet, RecordOutput};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    ChildrenPropertiesMode, DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties,
    InputDistributionRequirements, Partitioning, PhysicalExpr, PlanProperties, ReplaceChildrenOptions,
};
use futures::stream;

use crate::gapfill::fill::Filler;
use crate::gapfill::filling::Filling;

type Plan = Arc<dyn ExecutionPlan>;

/// Adds rows for missing buckets, one group after the other.
#[derive(Debug)]
pub(crate) struct GapFillExec {
    input: Plan,
    filling: Filling,
    schema: SchemaRef,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl GapFillExec {
    pub(crate) fn new(input: Plan, filling: Filling, schema: SchemaRef) -> Self {
        let partitions = input.output_partitioning().partition_count();
        let properties = PlanProperties::new(
            EquivalenceProperties::new(Arc::clone(&schema)),
            Partitioning::UnknownPartitioning(partitions),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        Self { input, filling, schema, properties: Arc::new(properties), metrics: ExecutionPlanMetricsSet::new() }
    }
}

impl DisplayAs for GapFillExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "GapFillExec: every {}", self.filling.grid.width)
    }
}

impl ExecutionPlan for GapFillExec {
    fn name(&self) -> &'static str {
        "GapFillExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Plan> {
        vec![&self.input]
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        let filling = &self.filling;
        let values = filling.fills.iter().map(|(_, value)| value);
        for expr in filling.keys.iter().chain([&filling.time]).chain(values) {
            if f(expr)? == TreeNodeRecursion::Stop {
                return Ok(TreeNodeRecursion::Stop);
            }
        }
        Ok(TreeNodeRecursion::Continue)
    }

    fn required_input_ordering(&self) -> Vec<Option<OrderingRequirements>> {
        let options = SortOptions { descending: false, nulls_first: false };
        let exprs = self.filling.keys.iter().chain([&self.filling.time]);
        let ordering = LexOrdering::new(exprs.map(|expr| PhysicalSortExpr::new(Arc::clone(expr), options)));
        vec![ordering.map(OrderingRequirements::from)]
    }

    fn required_input_distribution(&self) -> Vec<Distribution> {
        self.input_distribution_requirements().into_per_child()
    }

    fn input_distribution_requirements(&self) -> InputDistributionRequirements {
        InputDistributionRequirements::new(vec![match self.filling.keys.as_slice() {
            [] => Distribution::SinglePartition,
            keys => Distribution::KeyPartitioned(keys.to_vec()),
        }])
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![false]
    }

    fn replace_children(self: Arc<Self>, mut children: Vec<Plan>, _: ReplaceChildrenOptions) -> Result<Plan> {
        let Some(input) = children.pop() else { return internal_err!("a GapFillExec has one input") };
        Ok(Arc::new(Self::new(input, self.filling.clone(), Arc::clone(&self.schema))))
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Plan>) -> Result<Plan> {
        self.replace_children(children, ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let input = self.input.execute(partition, context)?;
        let filler = Filler::new(input, self.filling.clone(), Arc::clone(&self.schema))?;
        let metrics = BaselineMetrics::new(&self.metrics, partition);
        let batches = stream::try_unfold((filler, metrics), |(mut filler, metrics)| async move {
            match filler.next().await? {
                Some(batch) => Ok(Some((batch.record_output(&metrics), (filler, metrics)))),
                None => Ok(None),
            }
        });
        let batches = RecordBatchStreamAdapter::new(Arc::clone(&self.schema), Box::pin(batches));
        Ok(Box::pin(cooperative(batches)))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }
}
