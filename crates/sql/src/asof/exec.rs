//! The physical node of an ASOF join: a merge of inputs that are sorted by keys and time.

use std::fmt::{self, Formatter};
use std::sync::Arc;

use arrow::compute::SortOptions;
use arrow::datatypes::SchemaRef;
use datafusion::common::internal_err;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::Operator;
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

use crate::asof::merge::Merge;
use crate::asof::sorted::SortedInput;

type Plan = Arc<dyn ExecutionPlan>;

/// An ASOF join. Both inputs are partitioned by the keys, and sorted by the keys and the time, so that the match of a row is the last
/// row of the right side that is not behind it: where the right time is the later one, times are sorted in descending order.
#[derive(Debug)]
pub(crate) struct AsOfJoinExec {
    inputs: [Plan; 2],
    /// The keys of each side, and its time last.
    sides: [Vec<Arc<dyn PhysicalExpr>>; 2],
    comparison: Operator,
    keeps_left: bool,
    schema: SchemaRef,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl AsOfJoinExec {
    /// # Errors
    /// If `sides` do not have as many expressions.
    pub(crate) fn try_new(
        inputs: [Plan; 2],
        sides: [Vec<Arc<dyn PhysicalExpr>>; 2],
        comparison: Operator,
        keeps_left: bool,
        schema: SchemaRef,
    ) -> Result<Self> {
        if sides[0].is_empty() || sides[0].len() != sides[1].len() {
            return internal_err!("the sides of an ASOF join have different expressions");
        }
        let partitions = inputs[0].output_partitioning().partition_count();
        let properties = PlanProperties::new(
            EquivalenceProperties::new(Arc::clone(&schema)),
            Partitioning::UnknownPartitioning(partitions),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        let (properties, metrics) = (Arc::new(properties), ExecutionPlanMetricsSet::new());
        Ok(Self { inputs, sides, comparison, keeps_left, schema, properties, metrics })
    }

    /// The sort order of an expression of a side: the time is the last of `count`.
    fn sort_options(&self, at: usize, count: usize) -> SortOptions {
        let is_descending = matches!(self.comparison, Operator::Lt | Operator::LtEq) && at + 1 == count;
        SortOptions { descending: is_descending, nulls_first: false }
    }

    fn ordering(&self, side: &[Arc<dyn PhysicalExpr>]) -> Option<OrderingRequirements> {
        let exprs = side
            .iter()
            .enumerate()
            .map(|(at, expr)| PhysicalSortExpr::new(Arc::clone(expr), self.sort_options(at, side.len())));
        LexOrdering::new(exprs).map(OrderingRequirements::from)
    }
}

impl DisplayAs for AsOfJoinExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut Formatter<'_>) -> fmt::Result {
        let kind = if self.keeps_left { "Left" } else { "Inner" };
        write!(f, "AsOfJoinExec: {kind}")?;
        let [left, right] = &self.sides;
        for (at, (left, right)) in left.iter().zip(right).enumerate() {
            let op = if at + 1 == self.sides[0].len() { self.comparison } else { Operator::Eq };
            write!(f, ", {left} {op} {right}")?;
        }
        Ok(())
    }
}

impl ExecutionPlan for AsOfJoinExec {
    fn name(&self) -> &'static str {
        "AsOfJoinExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Plan> {
        self.inputs.iter().collect()
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        for expr in self.sides.iter().flatten() {
            if f(expr)? == TreeNodeRecursion::Stop {
                return Ok(TreeNodeRecursion::Stop);
            }
        }
        Ok(TreeNodeRecursion::Continue)
    }

    fn required_input_ordering(&self) -> Vec<Option<OrderingRequirements>> {
        self.sides.iter().map(|side| self.ordering(side)).collect()
    }

    fn required_input_distribution(&self) -> Vec<Distribution> {
        self.input_distribution_requirements().into_per_child()
    }

    fn input_distribution_requirements(&self) -> InputDistributionRequirements {
        let distribution = |side: &Vec<Arc<dyn PhysicalExpr>>| match side.as_slice() {
            [] | [_] => Distribution::SinglePartition,
            [keys @ .., _] => Distribution::KeyPartitioned(keys.to_vec()),
        };
        InputDistributionRequirements::co_partitioned(self.sides.iter().map(distribution).collect())
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![false, false]
    }

    fn replace_children(self: Arc<Self>, mut children: Vec<Plan>, _: ReplaceChildrenOptions) -> Result<Plan> {
        let (Some(right), Some(left)) = (children.pop(), children.pop()) else {
            return internal_err!("an ASOF join has two inputs");
        };
        let schema = Arc::clone(&self.schema);
        Ok(Arc::new(Self::try_new([left, right], self.sides.clone(), self.comparison, self.keeps_left, schema)?))
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Plan>) -> Result<Plan> {
        self.replace_children(children, ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let [left, right] = &self.inputs;
        let [left_side, right_side] = &self.sides;
        let count = left_side.len();
        let options: Vec<SortOptions> = (0..count).map(|at| self.sort_options(at, count)).collect();

        let input = |plan: &Plan, side: &[Arc<dyn PhysicalExpr>]| {
            let batches = plan.execute(partition, Arc::clone(&context))?;
            SortedInput::new(batches, side.to_vec(), &options)
        };
        let is_strict = matches!(self.comparison, Operator::Lt | Operator::Gt);
        let (left, right) = (input(left, left_side)?, input(right, right_side)?);
        let merge = Merge::new(left, right, is_strict, self.keeps_left, Arc::clone(&self.schema));

        let metrics = BaselineMetrics::new(&self.metrics, partition);
        let batches = stream::try_unfold((merge, metrics), |(mut merge, metrics)| async move {
            match merge.next().await? {
                Some(batch) => Ok(Some((batch.record_output(&metrics), (merge, metrics)))),
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
