//! Physical optimizer rule for aggregations that no scan can take over: the scan below reads records in any order.
//!
//! A scan in key order merges the SSTs of a window. In any order it reads them one after the other, but for the rows of which two
//! hold the same cell.

use std::sync::Arc;

use datafusion::datasource::physical_plan::FileScanConfigBuilder;
use datafusion::datasource::source::DataSourceExec;
use datafusion::error::Result;
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::{ExecutionPlan, InputOrderMode, replace_children_if_necessary};
use tidetable_layout::KeyRange;

use crate::scan::file_groups::a_file_each;
use crate::source::sst_source::SstSource;

type Plan = Arc<dyn ExecutionPlan>;

/// Functions whose result does not depend on the order of records, nor on how a group is split into partial states.
pub(crate) const BY_ANY_STATES: [&str; 27] = [
    "arg_max",
    "arg_min",
    "avg",
    "bit_and",
    "bit_or",
    "bit_xor",
    "bool_and",
    "bool_or",
    "corr",
    "count",
    "covar_pop",
    "covar_samp",
    "delta",
    "derivative",
    "first",
    "histogram",
    "increase",
    "last",
    "max",
    "min",
    "mode",
    "rate",
    "stddev",
    "stddev_pop",
    "sum",
    "var",
    "var_pop",
];

/// Functions whose result does not depend on the order of records, but that get no more partial states than they have to.
const BY_ANY_ORDER: [&str; 2] = ["approx_distinct", "median"];

/// `aggregation` over a scan in any order; `None` if its result may depend on the order, or its input is no scan of records.
pub(crate) fn over_any_order(plan: &Plan, aggregation: &AggregateExec) -> Result<Option<Plan>> {
    let needs_order = *aggregation.input_order_mode() != InputOrderMode::Linear
        || aggregation.limit_options().is_some()
        || !aggregation.aggr_expr().iter().all(|function| takes_any_order(function));
    if needs_order {
        return Ok(None);
    }
    let Some(input) = in_any_order(aggregation.input())? else { return Ok(None) };
    replace_children_if_necessary(Arc::clone(plan), vec![input]).map(Some)
}

fn takes_any_order(function: &AggregateFunctionExpr) -> bool {
    let name = function.fun().name();
    function.order_bys().is_empty() && (BY_ANY_STATES.contains(&name) || BY_ANY_ORDER.contains(&name))
}

/// `plan`, filters and projections of a scan, with the scan in any order.
fn in_any_order(plan: &Plan) -> Result<Option<Plan>> {
    if plan.is::<ProjectionExec>() || plan.is::<FilterExec>() {
        let [child] = plan.children()[..] else { return Ok(None) };
        let Some(child) = in_any_order(child)? else { return Ok(None) };
        return replace_children_if_necessary(Arc::clone(plan), vec![child]).map(Some);
    }
    let Some(exec) = plan.downcast_ref::<DataSourceExec>() else { return Ok(None) };
    let Some((config, source)) = exec.downcast_to_file_source::<SstSource>() else { return Ok(None) };
    let Some(unordered) = source.unordered().filter(|_| config.limit.is_none()) else { return Ok(None) };
    let groups = match source.scan().keys == [KeyRange::all()] {
        true => a_file_each(&config.file_groups),
        false => config.file_groups.clone(),
    };
    let config = FileScanConfigBuilder::from(config.clone())
        .with_source(Arc::new(unordered))
        .with_file_groups(groups)
        .with_output_ordering(Vec::new())
        .with_preserve_order(false)
        .build();
    Ok(Some(DataSourceExec::from_data_source(config)))
}
