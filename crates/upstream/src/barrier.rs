//! A node that passes the batches of its input on, and stops what rules would move or conclude through it.

use std::fmt::{self, Formatter};
use std::sync::Arc;

use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Statistics, internal_err};
use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::EquivalenceProperties;
use datafusion::physical_plan::execution_plan::CardinalityEffect;
use datafusion::physical_plan::filter_pushdown::{
    ChildPushdownResult, FilterDescription, FilterPushdownPhase, FilterPushdownPropagation,
};
use datafusion::physical_plan::projection::{ProjectionExec, make_with_child};
use datafusion::physical_plan::statistics::{ChildStats, StatisticsArgs};
use datafusion::physical_plan::{
    ChildrenPropertiesMode, DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PhysicalExpr, PlanProperties,
    ReplaceChildrenOptions,
};

type Plan = Arc<dyn ExecutionPlan>;

/// What a [`BarrierExec`] lets no rule carry through it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stopped {
    /// What is known of values: constants, equal expressions and orders.
    Order,
    /// These, and how the rows are partitioned.
    Properties,
    /// Projections and filters on their way down. All properties pass.
    Projections,
    /// Filters on their way down, while a rule is applied. All properties pass.
    Filters,
}

/// A node that passes the batches of its input on, without what is [`Stopped`].
#[derive(Debug, Clone)]
pub(crate) struct BarrierExec {
    input: Plan,
    stopped: Stopped,
    properties: Arc<PlanProperties>,
}

impl BarrierExec {
    /// A barrier above `input`.
    pub(crate) fn over(input: Plan, stopped: Stopped) -> Plan {
        let nothing = EquivalenceProperties::new(input.schema());
        let properties = input.properties();
        let properties = match stopped {
            Stopped::Projections | Stopped::Filters => Arc::clone(properties),
            Stopped::Order => Arc::new(PlanProperties::clone(properties).with_eq_properties(nothing)),
            Stopped::Properties => {
                let partitions = properties.output_partitioning().partition_count();
                let unknown = Partitioning::UnknownPartitioning(partitions);
                Arc::new(PlanProperties::clone(properties).with_eq_properties(nothing).with_partitioning(unknown))
            }
        };
        Arc::new(Self { input, stopped, properties })
    }

    /// The input of a barrier that stops filters only.
    pub(crate) fn below_filters(&self) -> Option<&Plan> {
        (self.stopped == Stopped::Filters).then_some(&self.input)
    }

    /// Whether what is known of the input is known here.
    fn passes_properties(&self) -> bool {
        matches!(self.stopped, Stopped::Projections | Stopped::Filters)
    }
}

impl DisplayAs for BarrierExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "BarrierExec: {:?}", self.stopped)
    }
}

impl ExecutionPlan for BarrierExec {
    fn name(&self) -> &'static str {
        "BarrierExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    /// Not declared where orders stop, so that no sort is moved below, where constants would be left out of its order.
    fn maintains_input_order(&self) -> Vec<bool> {
        vec![self.passes_properties()]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    fn children(&self) -> Vec<&Plan> {
        vec![&self.input]
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn replace_children(self: Arc<Self>, mut children: Vec<Plan>, _: ReplaceChildrenOptions) -> Result<Plan> {
        match (children.pop(), children.is_empty()) {
            (Some(input), true) => Ok(Self::over(input, self.stopped)),
            _ => internal_err!("a BarrierExec has one input"),
        }
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Plan>) -> Result<Plan> {
        self.replace_children(children, ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        self.input.execute(partition, context)
    }

    fn child_stats_requests(&self, partition: Option<usize>) -> Vec<ChildStats> {
        vec![ChildStats::At(partition)]
    }

    fn statistics_from_inputs(&self, inputs: &[Arc<Statistics>], _: &StatisticsArgs) -> Result<Arc<Statistics>> {
        Ok(match inputs.first() {
            Some(input) if self.passes_properties() => Arc::clone(input),
            // Exact statistics of one value are a constant.
            Some(input) => Arc::new(Statistics::clone(input).to_inexact()),
            None => Arc::new(Statistics::new_unknown(&self.schema())),
        })
    }

    fn supports_limit_pushdown(&self) -> bool {
        true
    }

    fn cardinality_effect(&self) -> CardinalityEffect {
        CardinalityEffect::Equal
    }

    fn try_swapping_with_projection(&self, projection: &ProjectionExec) -> Result<Option<Plan>> {
        // As nodes of DataFusion that pass batches on: fewer columns pass. The input's own method would answer for a projection
        // above itself, and may give that back.
        let is_narrower = projection.expr().len() < self.input.schema().fields().len();
        if self.stopped == Stopped::Projections || !is_narrower {
            return Ok(None);
        }
        Ok(Some(Self::over(make_with_child(projection, &self.input)?, self.stopped)))
    }

    fn gather_filters_for_pushdown(
        &self,
        _: FilterPushdownPhase,
        filters: Vec<Arc<dyn PhysicalExpr>>,
        _: &ConfigOptions,
    ) -> Result<FilterDescription> {
        let children = self.children();
        if self.passes_properties() {
            return Ok(FilterDescription::all_unsupported(&filters, &children));
        }
        FilterDescription::from_children(filters, &children)
    }

    fn handle_child_pushdown_result(
        &self,
        _: FilterPushdownPhase,
        result: ChildPushdownResult,
        _: &ConfigOptions,
    ) -> Result<FilterPushdownPropagation<Plan>> {
        Ok(FilterPushdownPropagation::if_all(result))
    }
}
