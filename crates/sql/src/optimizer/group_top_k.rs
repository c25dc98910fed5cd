//! Physical optimizer rule for top-k by group: `row_number() OVER (PARTITION BY g ORDER BY o) <= k` needs k rows of each group.
//!
//! DataFusion 55.2 has the operator, and a rule that is off by default. That rule drops the filter and matches windows
//! with other functions beside the rank, whose frames lose rows. This one keeps the filter, matches a rank alone, and
//! takes `= k` as well.

use std::sync::Arc;

use datafusion::error::Result;
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::expressions::{BinaryExpr, Column, Literal};
use datafusion::physical_expr::utils::split_conjunction;
use datafusion::physical_expr::window::StandardWindowExpr;
use datafusion::physical_expr::{LexOrdering, PhysicalSortExpr};
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::sorts::partitioned_topk::{PartitionedTopKExec, WindowFnKind};
use datafusion::physical_plan::windows::{BoundedWindowAggExec, WindowUDFExpr};
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties, PhysicalExpr, replace_children_if_necessary};

use tidetable_upstream::rules::node_rule::{Rule, node_rule};

type Plan = Arc<dyn ExecutionPlan>;

/// Largest k. Beyond it the heaps hold about as much as a sort.
const MAX_K: usize = 1000;

/// Limits the rows of each group below a window of ranks. It precedes the rules that add sorts and partitions, and is not for
/// sessions with a memory limit: the heaps do not spill.
pub(crate) fn top_by_group() -> Rule {
    node_rule("TopByGroup", |plan| {
        let Some(filter) = plan.downcast_ref::<FilterExec>() else { return Ok(None) };
        let bounds = split_conjunction(filter.predicate()).into_iter().filter_map(upper_bound);
        for (column, most) in bounds.filter(|(_, most)| *most <= MAX_K) {
            if let Some(input) = limited(filter.input(), column, most)? {
                return replace_children_if_necessary(Arc::clone(plan), vec![input]).map(Some);
            }
        }
        Ok(None)
    })
}

/// The column that `predicate` bounds, and its greatest value.
fn upper_bound(predicate: &Arc<dyn PhysicalExpr>) -> Option<(usize, usize)> {
    let comparison = predicate.downcast_ref::<BinaryExpr>()?;
    let (left, right) = (comparison.left(), comparison.right());
    let (column, operator, bound) = match (left.downcast_ref::<Column>(), right.downcast_ref::<Column>()) {
        (Some(column), None) => (column, *comparison.op(), right),
        (None, Some(column)) => (column, comparison.op().swap()?, left),
        _ => return None,
    };
    let bound = bound.downcast_ref::<Literal>()?.value();
    let bound = bound.data_type().is_integer().then(|| bound.to_string().parse::<usize>().ok()).flatten()?;
    match operator {
        Operator::Eq | Operator::LtEq => Some((column.index(), bound)),

        Operator::Lt => Some((column.index(), bound.saturating_sub(1))),
        _ => None,
    }
}

/// `plan` with at most `most` rows of each group below the rank that is its column `column`; `None` if it is none.
fn limited(plan: &Plan, column: usize, most: usize) -> Result<Option<Plan>> {
    if let Some(projection) = plan.downcast_ref::<ProjectionExec>() {
        let source = projection.expr().get(column).and_then(|output| output.expr.downcast_ref::<Column>());
        let Some(source) = source.map(Column::index) else { return Ok(None) };
        let Some(input) = limited(projection.input(), source, most)? else { return Ok(None) };
        return replace_children_if_necessary(Arc::clone(plan), vec![input]).map(Some);
    }
    let Some(window) = plan.downcast_ref::<BoundedWindowAggExec>() else { return Ok(None) };
    let ([rank], true) = (window.window_expr(), column == window.input().schema().fields().len()) else {
        return Ok(None);
    };

    let function = rank.as_any().downcast_ref::<StandardWindowExpr>().map(StandardWindowExpr::get_standard_func_expr);
    let function = function.and_then(|function| function.as_any().downcast_ref::<WindowUDFExpr>());
    let kind = match function.map(|function| function.fun().name()) {
        Some("row_number") => WindowFnKind::RowNumber,
        Some("rank") => WindowFnKind::Rank,
        _ => return Ok(None),
    };

    let (groups, order) = (rank.partition_by(), rank.order_by());
    if groups.is_empty() || order.is_empty() || most == 0 {
        return Ok(None);
    }
    let keys = groups.iter().map(|group| PhysicalSortExpr::new_default(Arc::clone(group))).chain(order.iter().cloned());
    let Some(keys) = LexOrdering::new(keys) else { return Ok(None) };

    // Rows that come in this order need no heap.
    if window.input().equivalence_properties().ordering_satisfy(keys.iter().cloned())? {
        return Ok(None);
    }
    let top = PartitionedTopKExec::try_new(Arc::clone(window.input()), keys, groups.len(), most, kind)?;
    replace_children_if_necessary(Arc::clone(plan), vec![Arc::new(top)]).map(Some)
}
