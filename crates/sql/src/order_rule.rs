//! Scans that say how their rows are sorted, and keep to it.
//!
//! A limit that the engine (DataFusion 55.2, issue 24272) hands down to such a scan takes from it that it must keep the order:
//! then parts that run side by side take files from each other, and what is merged above them is not sorted. Which rows `ORDER
//! BY .. LIMIT` gives was a matter of time.

use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::datasource::physical_plan::FileScanConfig;
use datafusion::datasource::source::DataSourceExec;
use datafusion::error::Result;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;

/// Puts [`OrderIsKept`] where limits are where they belong.
pub(crate) fn insert(rules: &mut Vec<Arc<dyn PhysicalOptimizerRule + Send + Sync>>) {
    let last = rules.iter().position(|rule| rule.name() == "SanityCheckPlan").unwrap_or(rules.len());
    rules.insert(last, Arc::new(OrderIsKept));
}

/// Has sorted scans keep their order.
#[derive(Debug)]
struct OrderIsKept;

impl PhysicalOptimizerRule for OrderIsKept {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        let kept = |plan: Arc<dyn ExecutionPlan>| {
            Ok(match plan.with_preserve_order(true).filter(|_| may_lose_order(&plan)) {
                Some(kept) => Transformed::yes(kept),
                None => Transformed::no(plan),
            })
        };
        plan.transform_up(kept).data()
    }

    fn name(&self) -> &str {
        "OrderIsKept"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// Whether `plan` reads files that it says are sorted, and need not stay so.
fn may_lose_order(plan: &Arc<dyn ExecutionPlan>) -> bool {
    let source = plan.downcast_ref::<DataSourceExec>().map(DataSourceExec::data_source);
    let config = source.and_then(|source| source.downcast_ref::<FileScanConfig>());
    config.is_some_and(|config| !config.output_ordering.is_empty() && !config.preserve_order)
}
