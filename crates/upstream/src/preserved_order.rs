//! Keeps sorted scans sorted below a limit; row "Preserved order" of `docs/datafusion-workarounds.md`.
//!
//! A limit that DataFusion 55.2 pushes into a scan resets the scan's `preserve_order`. Partitions then steal files from
//! each other, and the merge above them reads unsorted input: the rows of `ORDER BY .. LIMIT` depended on timing.

use std::sync::Arc;

use datafusion::datasource::physical_plan::FileScanConfig;
use datafusion::datasource::source::DataSourceExec;
use datafusion::physical_plan::ExecutionPlan;

use crate::rules::node_rule::{Rule, node_rule};

/// The name of the rule that sets `preserve_order` of sorted scans.
pub(crate) const NAME: &str = "OrderIsKept";

/// Inserts `OrderIsKept` after the last rule that moves limits.
pub(crate) fn insert(rules: &mut Vec<Rule>) {
    let last = rules.iter().position(|rule| rule.name() == "SanityCheckPlan").unwrap_or(rules.len());
    rules.insert(last, node_rule(NAME, |plan| Ok(plan.with_preserve_order(true).filter(|_| may_lose_order(plan)))));
}

/// Whether `plan` is a scan that declares an order but need not preserve it.
fn may_lose_order(plan: &Arc<dyn ExecutionPlan>) -> bool {
    let source = plan.downcast_ref::<DataSourceExec>().map(DataSourceExec::data_source);
    let config = source.and_then(|source| source.downcast_ref::<FileScanConfig>());
    config.is_some_and(|config| !config.output_ordering.is_empty() && !config.preserve_order)
}
