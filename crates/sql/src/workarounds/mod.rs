//! Workarounds of defects of DataFusion, one file each. `docs/datafusion-workarounds.md` lists them with the upstream
//! issues; a test `still_broken_*` for each fails when the defect is fixed.

pub(crate) mod date_comparisons;
pub(crate) mod directory_patterns;
pub(crate) mod distinct_decimals;
pub(crate) mod floats;
pub(crate) mod limits;
pub(crate) mod merge_joins;
pub(crate) mod preserved_order;
pub mod property_barriers;
pub(crate) mod rounded_decimals;
pub(crate) mod yielding_joins;

use std::sync::Arc;

use datafusion::optimizer::OptimizerRule;
use datafusion::optimizer::optimizer::Optimizer;
use datafusion::physical_optimizer::optimizer::PhysicalOptimizer;

use crate::optimizer::node_rule::Rule;

/// Name of the last rule that changes scans.
pub(crate) const LAST: &str = preserved_order::NAME;

/// DataFusion's logical rules with the workarounds.
pub(crate) fn logical_rules() -> Vec<Arc<dyn OptimizerRule + Send + Sync>> {
    let mut rules = Optimizer::new().rules;
    date_comparisons::insert(&mut rules);
    distinct_decimals::replace(&mut rules);
    rules
}

/// DataFusion's physical rules with the workarounds.
pub(crate) fn physical_rules() -> Vec<Rule> {
    let mut rules = PhysicalOptimizer::new().rules;
    property_barriers::insert(&mut rules);
    limits::insert(&mut rules);
    preserved_order::insert(&mut rules);
    yielding_joins::insert(&mut rules);
    rules
}
