//! Physical optimizer rule that moves the partial stage of an aggregation into the scan.

use std::sync::Arc;

use datafusion::datasource::source::DataSourceExec;
use datafusion::error::Result;
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode};
use tidetable_upstream::rules::node_rule::{Rule, node_rule};

use crate::optimizer::aggregate_below_join::below_join;
use crate::optimizer::any_order::{BY_ANY_STATES, over_any_order};
use crate::optimizer::record_scan::RecordScan;
use crate::source::sst_source::SstSource;

/// Moves partial aggregations into the scans below them, or has these read in any order.
pub(crate) fn aggregate_in_scan() -> Rule {
    node_rule("AggregateInScan", |plan| match plan.downcast_ref::<AggregateExec>() {
        Some(aggregation) if *aggregation.mode() == AggregateMode::FinalPartitioned => in_one_partition(aggregation),
        Some(aggregation) => match in_scan(aggregation)? {
            Some(in_scan) => Ok(Some(in_scan)),
            None => over_any_order(plan, aggregation),
        },
        None => Ok(None),
    })
}

/// The last stage of an aggregation in one partition, if the scan below is one: it reads a stripe or two, or it would have been
/// divided. Other partitions would be tasks, and threads to wake.
fn in_one_partition(last: &AggregateExec) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let mut below = last.input();
    while let (None, [only]) = (below.downcast_ref::<DataSourceExec>(), below.children().as_slice()) {
        below = only;
    }
    let scan = below.downcast_ref::<DataSourceExec>().and_then(DataSourceExec::downcast_to_file_source::<SstSource>);
    if scan.is_none_or(|(config, _)| config.file_groups.len() != 1) {
        return Ok(None);
    }
    let (functions, filters) = (last.aggr_expr().to_vec(), last.filter_expr().to_vec());
    let (input, schema) = (Arc::clone(last.input()), last.input_schema());
    let whole =
        AggregateExec::try_new(AggregateMode::Final, last.group_expr().clone(), functions, filters, input, schema)?;
    Ok(Some(Arc::new(whole.with_limit_options(last.limit_options()))))
}

/// `aggregation` with its partial stage in the scan; `None` if the scan cannot do it.
fn in_scan(aggregation: &AggregateExec) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let whole = match aggregation.mode() {
        AggregateMode::Partial => false,
        AggregateMode::Single => true,
        _ => return Ok(None),
    };

    let groups = aggregation.group_expr();
    if !(groups.is_single() || groups.is_true_no_grouping()) || aggregation.limit_options().is_some() {
        return Ok(None);
    }
    if !aggregation.aggr_expr().iter().all(|function| has_stages(function, !groups.is_empty())) {
        return Ok(None);
    }

    let (input, functions) = (Arc::clone(aggregation.input()), aggregation.aggr_expr().to_vec());
    let (filters, schema) = (aggregation.filter_expr().to_vec(), aggregation.input_schema());
    let first = AggregateExec::try_new(AggregateMode::Partial, groups.clone(), functions, filters, input, schema)?;

    let aggregated = match RecordScan::below(first.input())? {
        Some(scan) => scan.aggregate(&first)?.map(|plan| scan.with(plan)).transpose()?,
        None => below_join(&first)?,
    };
    let Some(aggregated) = aggregated else { return Ok(None) };
    if !whole {
        return Ok(Some(aggregated));
    }
    let none = vec![None; first.aggr_expr().len()];
    let (functions, schema) = (first.aggr_expr().to_vec(), first.input_schema());
    let last = AggregateExec::try_new(AggregateMode::Final, groups.as_final(), functions, none, aggregated, schema)?;
    Ok((last.schema() == aggregation.schema()).then(|| Arc::new(last) as Arc<dyn ExecutionPlan>))
}

/// Whether the partial stage of a function may see records in any order.
fn has_stages(function: &AggregateFunctionExpr, grouped: bool) -> bool {
    let name = function.fun().name();
    let by_order = matches!(name, "first_value" | "last_value");
    (by_order || BY_ANY_STATES.contains(&name))
        && !function.is_distinct()
        // `first_value` without ORDER BY depends on the order of records, which this rule changes.
        && by_order != function.order_bys().is_empty()
        && (!grouped || function.groups_accumulator_supported())
}
