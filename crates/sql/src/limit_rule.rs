//! Limits that stay above what they limit.
//!
//! Where a sort with a limit is left out because rows come in its order already, the engine (DataFusion 55.2) hands the limit to
//! the place where parts are brought together, whatever lies in between: a filter, a window, another limit. Then `(SELECT ts FROM t
//! OFFSET 10) ORDER BY ts LIMIT 5` gave no rows. So sorts have no limits while the engine decides about them: a limit stands
//! above each, and goes down afterwards as far as it may.

use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::error::Result;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_optimizer::limit_pushdown::LimitPushdown;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::limit::GlobalLimitExec;
use datafusion::physical_plan::sorts::sort::SortExec;

/// Puts [`LimitsAboveSorts`] before the engine's rule about sorts, and has limits go down after it.
pub(crate) fn insert(rules: &mut Vec<Arc<dyn PhysicalOptimizerRule + Send + Sync>>) {
    let about_sorts = rules.iter().position(|rule| rule.name() == "EnsureRequirements").unwrap_or(rules.len());
    rules.insert((about_sorts + 1).min(rules.len()), Arc::new(LimitPushdown::new()));
    rules.insert(about_sorts, Arc::new(LimitsAboveSorts));
}

/// Takes limits out of sorts and puts them above.
#[derive(Debug)]
struct LimitsAboveSorts;

impl PhysicalOptimizerRule for LimitsAboveSorts {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_up(|plan| {
            Ok(match limited_above(&plan) {
                Some(limited) => Transformed::yes(limited),
                None => Transformed::no(plan),
            })
        })
        .data()
    }

    fn name(&self) -> &str {
        "LimitsAboveSorts"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// A sort of all rows with a limit, as a limit over a sort.
fn limited_above(plan: &Arc<dyn ExecutionPlan>) -> Option<Arc<dyn ExecutionPlan>> {
    let sort = plan.downcast_ref::<SortExec>().filter(|sort| !sort.preserve_partitioning())?;
    let fetch = sort.fetch()?;
    let all = SortExec::new(sort.expr().clone(), Arc::clone(sort.input()));
    Some(Arc::new(GlobalLimitExec::new(Arc::new(all), 0, Some(fetch))))
}
