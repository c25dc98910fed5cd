//! Hides constants and orders that a node above does not keep; rows "Grouping sets", "Outer joins" and "Constants of joins" of
//! `docs/datafusion-workarounds.md`.
//!
//! After `WHERE meter = 42` a plan declares `meter` constant. `GROUP BY ROLLUP (meter)` then makes it NULL in some rows, and a
//! `LEFT JOIN` in rows without a match, but DataFusion 55.2 keeps declaring the constant, the order and the hash partitioning
//! of the input. A node above that groups by a "constant" or "sorted" column ends a group at the first other value: groups came
//! out in parts. A sort by it is removed. In turn a join forgets constants of its right side: a sort that was moved below it,
//! without them, no longer gives the order that is required above, and the plan is refused.
//!
//! A [`BarrierExec`] stands above the aggregation by grouping sets, and above each input of a join whose constants the join
//! does not keep rightly. It passes batches on, and declares nothing that rules could rely on. It is placed once the sides of joins
//! are decided, before sorts and exchanges are planned.

use std::sync::Arc;

use datafusion::common::{JoinSide, JoinType};
use datafusion::error::Result;
use datafusion::physical_expr::expressions::Literal;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::joins::{CrossJoinExec, HashJoinExec, NestedLoopJoinExec, SortMergeJoinExec};
use datafusion::physical_plan::statistics::{StatisticsArgs, StatisticsContext};
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties, replace_children_if_necessary};

use crate::barrier::{BarrierExec, Stopped};
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
        return Ok(has_sets.then(|| BarrierExec::over(Arc::clone(plan), Stopped::Properties)));
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
        true => BarrierExec::over(Arc::clone(input), Stopped::Order),
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
