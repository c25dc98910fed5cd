//! Workarounds of defects of DataFusion, one file each. `docs/datafusion-workarounds.md` lists them with the upstream
//! issues; a test `still_broken_*` for each fails when the defect is fixed.

pub(crate) mod date_comparisons;
pub(crate) mod dependencies;
pub(crate) mod directory_patterns;
pub(crate) mod distinct_decimals;
pub(crate) mod floats;
pub(crate) mod limits;
pub(crate) mod merge_joins;
pub(crate) mod multisets;
pub(crate) mod preserved_order;
pub mod property_barriers;
pub(crate) mod rounded_decimals;
pub(crate) mod subqueries;
pub(crate) mod yielding_joins;

use std::sync::Arc;

use datafusion::optimizer::optimizer::Optimizer;
use datafusion::optimizer::{AnalyzerRule, OptimizerRule};
use datafusion::physical_optimizer::optimizer::PhysicalOptimizer;

use crate::rules::node_rule::Rule;

/// Name of the last rule that changes scans.
pub(crate) const LAST: &str = preserved_order::NAME;

/// DataFusion's analyzer rules with the workarounds. Those for subqueries follow type coercion, which gives the types of
/// what they compare.
pub(crate) fn analyzer_rules() -> Vec<Arc<dyn AnalyzerRule + Send + Sync>> {
    let mut rules = floats::analyzer_rules();
    rules.push(Arc::new(multisets::Multisets));
    rules.push(Arc::new(subqueries::Subqueries));
    rules.push(Arc::new(dependencies::Dependencies));
    rules
}

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
