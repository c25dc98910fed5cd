//! Hides constants and orders that a node above does not keep; rows "Grouping sets", "Outer joins" and "Constants of joins" of
//! `docs/datafusion-workarounds.md`.
//!
//! After `WHERE meter = 42` a plan declares `meter` constant. `GROUP BY ROLLUP (meter)` then makes it NULL in some rows, and a
//! `LEFT JOIN` in rows without a match, but DataFusion 55.2 keeps declaring the constant, the order and the hash partitioning
//! of the input. A node above that groups by a "constant" or "sorted" column ends a group at the first other value: groups came
//! out in parts. A sort by it is removed. In turn a join forgets constants of its right side: a sort that was moved below it,
//! without them, no longer gives the order that is required above, and the plan is refused.
//!
//! A [`PropertyBarrierExec`] stands above the aggregation by grouping sets, and above each input of a join whose constants the join
//! does not keep rightly. It passes batches on, and declares nothing that rules could rely on. It is placed once the sides of joins
//! are decided, before sorts and exchanges are planned.

use std::fmt::{self, Formatter};
use std::sync::Arc;

use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{JoinSide, JoinType, Statistics, internal_err};
use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::EquivalenceProperties;
use datafusion::physical_expr::expressions::Literal;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::execution_plan::CardinalityEffect;
use datafusion::physical_plan::filter_pushdown::{
    ChildPushdownResult, FilterDescription, FilterPushdownPhase, FilterPushdownPropagation,
};
use datafusion::physical_plan::joins::{CrossJoinExec, HashJoinExec, NestedLoopJoinExec, SortMergeJoinExec};
use datafusion::physical_plan::projection::{ProjectionExec, make_with_child};
use datafusion::physical_plan::statistics::{ChildStats, StatisticsArgs, StatisticsContext};
use datafusion::physical_plan::{
    ChildrenPropertiesMode, DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, Partitioning,
    PhysicalExpr, PlanProperties, ReplaceChildrenOptions, replace_children_if_necessary,
};

use crate::rules::node_rule::{Rule, node_rule};

type Plan = Arc<dyn ExecutionPlan>;

/// Inserts the rule after the one that decides on the sides of joins.
pub(crate) fn insert(rules: &mut Vec<Rule>) {
    let decided = rules.iter().position(|rule| rule.name() == "join_selection").map_or(0, |at| at + 1);
    rules.insert(decided, node_rule("PropertyBarriers", with_barriers));
}

/// Places the barriers that `plan` needs, above or below it; `None` if it needs none.
fn with_barriers(plan: &Plan) -> Result<Option<Plan>> {
    if let Some(aggregation) = plan.downcast_ref::<AggregateExec>() {
        let has_sets = aggregation.group_expr().has_grouping_set();
        return Ok(has_sets.then(|| PropertyBarrierExec::over(Arc::clone(plan), Hidden::All)));
    }
    let children = plan.children();
    let ([left, right], Some(join_type)) = (children.as_slice(), join_type(plan)) else { return Ok(None) };

    let is_nullable = |side: JoinSide| {
        let of_side = if side == JoinSide::Left { JoinType::Right } else { JoinType::Left };
        join_type == of_side || join_type == JoinType::Full
    };
    let of_left = is_nullable(JoinSide::Left) && declares_constants(left)?;
    let of_right = match is_nullable(JoinSide::Right) {
        true => declares_constants(right)?,
        false => has_both_sides(join_type) && declares_constants_without_literal(right),
    };
    if !of_left && !of_right {
        return Ok(None);
    }
    let barrier = |input: &Plan, is_needed: bool| match is_needed {
        true => PropertyBarrierExec::over(Arc::clone(input), Hidden::Order),
        false => Arc::clone(input),
    };
    let inputs = vec![barrier(left, of_left), barrier(right, of_right)];
    replace_children_if_necessary(Arc::clone(plan), inputs).map(Some)
}

/// The type of a join; `None` for other nodes.
fn join_type(plan: &Plan) -> Option<JoinType> {
    if let Some(join) = plan.downcast_ref::<HashJoinExec>() {
        Some(*join.join_type())
    } else if let Some(join) = plan.downcast_ref::<NestedLoopJoinExec>() {
        Some(*join.join_type())
    } else if let Some(join) = plan.downcast_ref::<SortMergeJoinExec>() {
        Some(join.join_type())
    } else {
        plan.is::<CrossJoinExec>().then_some(JoinType::Inner)
    }
}

/// Whether rows of a join have the columns of both inputs.
fn has_both_sides(join_type: JoinType) -> bool {
    matches!(join_type, JoinType::Inner | JoinType::Left | JoinType::Right | JoinType::Full)
}

/// Whether `plan` declares constants or equal expressions, or has statistics from which DataFusion derives constants.
fn declares_constants(plan: &Plan) -> Result<bool> {
    if plan.equivalence_properties().eq_group().iter().next().is_some() {
        return Ok(true);
    }
    let statistics = StatisticsContext::new().compute(plan.as_ref(), &StatisticsArgs::default())?;
    Ok(statistics.column_statistics.iter().any(|column| column.is_singleton()))
}

/// Whether `plan` declares constants that a join forgets: it keeps those of its right side only as equal to a literal.
fn declares_constants_without_literal(plan: &Plan) -> bool {
    plan.equivalence_properties().eq_group().iter().any(|class| {
        let is_constant = class.iter().any(|expr| plan.equivalence_properties().is_expr_constant(expr).is_some());
        is_constant && !class.iter().any(|expr| expr.is::<Literal>())
    })
}

/// What a [`PropertyBarrierExec`] hides of the properties of its input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Hidden {
    /// What is known of values: constants, equal expressions and orders.
    Order,
    /// These, and how the rows are partitioned.
    All,
}

/// A node that passes the batches of its input on, without the properties that are [`Hidden`].
#[derive(Debug, Clone)]
struct PropertyBarrierExec {
    input: Plan,
    hidden: Hidden,
    properties: Arc<PlanProperties>,
}

impl PropertyBarrierExec {
    /// A barrier above `input`, which hides these properties of it.
    fn over(input: Plan, hidden: Hidden) -> Plan {
        let nothing = EquivalenceProperties::new(input.schema());
        let mut properties = PlanProperties::clone(input.properties()).with_eq_properties(nothing);
        if hidden == Hidden::All {
            let partitions = properties.output_partitioning().partition_count();
            properties = properties.with_partitioning(Partitioning::UnknownPartitioning(partitions));
        }
        Arc::new(Self { input, hidden, properties: Arc::new(properties) })
    }
}

impl DisplayAs for PropertyBarrierExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("PropertyBarrierExec")
    }
}

impl ExecutionPlan for PropertyBarrierExec {
    fn name(&self) -> &'static str {
        "PropertyBarrierExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    /// Not declared, so that no sort is moved below it, where constants would be left out of its order.
    fn maintains_input_order(&self) -> Vec<bool> {
        vec![false]
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
            (Some(input), true) => Ok(Self::over(input, self.hidden)),
            _ => internal_err!("a PropertyBarrierExec has one input"),
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
        let statistics = inputs.first().map(|input| input.as_ref().clone().to_inexact());
        Ok(Arc::new(statistics.unwrap_or_else(|| Statistics::new_unknown(&self.schema()))))
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
        if projection.expr().len() >= self.input.schema().fields().len() {
            return Ok(None);
        }
        Ok(Some(Self::over(make_with_child(projection, &self.input)?, self.hidden)))
    }

    fn gather_filters_for_pushdown(
        &self,
        _: FilterPushdownPhase,
        filters: Vec<Arc<dyn PhysicalExpr>>,
        _: &ConfigOptions,
    ) -> Result<FilterDescription> {
        FilterDescription::from_children(filters, &self.children())
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
