//! Keeps sorted scans sorted below a limit; row "Preserved order" of `docs/datafusion-workarounds.md`.
//!
//! A limit that DataFusion 55.2 pushes into a scan resets the scan's `preserve_order`. Partitions then steal files from each
//! other, and the merge above them reads unsorted input: the rows of `ORDER BY .. LIMIT` depended on timing.

use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::datasource::physical_plan::FileScanConfig;
use datafusion::datasource::source::DataSourceExec;
use datafusion::error::Result;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;

/// The name of [`OrderIsKept`].
pub(crate) const NAME: &str = "OrderIsKept";

/// Inserts [`OrderIsKept`] after the last rule that moves limits.
pub(crate) fn insert(rules: &mut Vec<Arc<dyn PhysicalOptimizerRule + Send + Sync>>) {
    let last = rules.iter().position(|rule| rule.name() == "SanityCheckPlan").unwrap_or(rules.len());
    rules.insert(last, Arc::new(OrderIsKept));
}

/// Sets `preserve_order` of sorted scans.
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
        NAME
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// Whether `plan` is a scan that declares an order but need not preserve it.
fn may_lose_order(plan: &Arc<dyn ExecutionPlan>) -> bool {
    let source = plan.downcast_ref::<DataSourceExec>().map(DataSourceExec::data_source);
    let config = source.and_then(|source| source.downcast_ref::<FileScanConfig>());
    config.is_some_and(|config| !config.output_ordering.is_empty() && !config.preserve_order)
}
