//! Keeps limits in place while sorts are planned; rows "Limits" of `docs/datafusion-workarounds.md`.
//!
//! `EnsureRequirements` of DataFusion 55.2 mishandles limits in three ways. If it removes a sort with a limit because
//! its input is already sorted, it moves the limit to the merge of the partitions, past filters, windows and other
//! limits. It moves a sort below a limit. It removes a sort that only an offset needs.
//! `(SELECT ts FROM t OFFSET 10) ORDER BY ts LIMIT 5` gave no rows.
//!
//! `FixLimits` therefore takes the limit out of each sort and places it above. Each limit requires the order of the
//! sort below it, and lies below a filter on `true`, through which no sort is moved. `FreeLimits` removes the filters
//! afterwards, and `LimitPushdown` moves the limits down as far as is correct.

use std::sync::Arc;

use datafusion::error::Result;
use datafusion::physical_expr::expressions::{Literal, lit};
use datafusion::physical_expr::{Distribution, OrderingRequirements, Partitioning};
use datafusion::physical_optimizer::limit_pushdown::LimitPushdown;
use datafusion::physical_optimizer::output_requirements::OutputRequirementExec;
use datafusion::physical_plan::execution_plan::replace_children_if_necessary;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::limit::{GlobalLimitExec, LocalLimitExec};
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};
use datafusion::scalar::ScalarValue;

use crate::rules::node_rule::{Rule, node_rule};

type Plan = Arc<dyn ExecutionPlan>;

/// Inserts `FixLimits` before the rule that plans sorts, and `FreeLimits` with a limit pushdown after it.
pub(crate) fn insert(rules: &mut Vec<Rule>) {
    let met = rules.iter().rposition(|rule| rule.name() == "OutputRequirements").map_or(rules.len(), |at| at + 1);
    let freeing = node_rule("FreeLimits", |plan| Ok(free_limits(plan)));
    rules.splice(met..met, [freeing, Arc::new(LimitPushdown::new()) as Rule]);
    let about_sorts = rules.iter().position(|rule| rule.name() == "EnsureRequirements").unwrap_or(0);
    rules.insert(about_sorts, node_rule("FixLimits", fix_limits));
}

/// Separates limits from sorts, and fences them with filters.
fn fix_limits(plan: &Plan) -> Result<Option<Plan>> {
    let limit = limit_above(plan);
    limit.as_ref().unwrap_or(plan).downcast_ref::<GlobalLimitExec>().map(fenced_limit).transpose()
}

/// Rewrites a sort of one partition with a limit to a limit over a sort.
fn limit_above(plan: &Plan) -> Option<Plan> {
    let sort = plan.downcast_ref::<SortExec>().filter(|sort| !sort.preserve_partitioning())?;
    let fetch = sort.fetch()?;
    let all = SortExec::new(sort.expr().clone(), Arc::clone(sort.input()));
    Some(Arc::new(GlobalLimitExec::new(Arc::new(all), 0, Some(fetch))))
}

fn fenced_limit(limit: &GlobalLimitExec) -> Result<Plan> {
    let input = requiring_order(limit.input())?.unwrap_or_else(|| Arc::clone(limit.input()));
    let limit = GlobalLimitExec::new(input, limit.skip(), limit.fetch());
    Ok(Arc::new(FilterExec::try_new(lit(true), Arc::new(limit))?))
}

/// Adds the order of the sort as a requirement; `None` without a sort.
fn requiring_order(plan: &Plan) -> Result<Option<Plan>> {
    if let Some(sort) = plan.downcast_ref::<SortExec>() {
        let order = OrderingRequirements::from(sort.expr().clone());
        let wanted = OutputRequirementExec::new(Arc::clone(plan), Some(order), Distribution::SinglePartition, None);
        return Ok(Some(Arc::new(wanted)));
    }
    if !plan.is::<ProjectionExec>() && !plan.is::<LocalLimitExec>() {
        return Ok(None);
    }
    let children = plan.children();
    let Some(wanted) = children.first().map(|input| requiring_order(input)).transpose()?.flatten() else {
        return Ok(None);
    };
    replace_children_if_necessary(Arc::clone(plan), vec![wanted]).map(Some)
}

/// Removes a repartitioning that was inserted for such a filter.
fn without_repartition(plan: &Plan) -> Plan {
    let dealt = plan.downcast_ref::<RepartitionExec>().filter(|dealt| {
        matches!(dealt.partitioning(), Partitioning::RoundRobinBatch(_))
            && dealt.input().output_partitioning().partition_count() == 1
    });
    Arc::clone(dealt.map_or(plan, RepartitionExec::input))
}

/// Removes a filter that `FixLimits` added: one that all rows pass.
fn free_limits(plan: &Plan) -> Option<Plan> {
    let filter = plan.downcast_ref::<FilterExec>()?;
    let literal = filter.predicate().downcast_ref::<Literal>().map(Literal::value);
    let passes_all = literal == Some(&ScalarValue::Boolean(Some(true)));
    (passes_all && filter.projection().is_none()).then(|| without_repartition(filter.input()))
}
