//! Corrections of DataFusion.
//!
//! Each module but `barrier`, `rules` and `semantics` works around one defect. `docs/datafusion-workarounds.md` lists them with
//! the upstream issues; a test `still_broken_*` of `tidetable-sql` for each fails when the defect is fixed. Nothing here knows a
//! table or a store.

mod barrier;
mod bounded_filters;
mod date_comparisons;
mod dependencies;
pub mod directory_patterns;
mod distinct_decimals;
mod flat_unions;
pub mod floats;
pub mod joins;
mod limits;
mod multisets;
mod preserved_order;
mod property_barriers;
mod rounded_decimals;
pub mod rules;
mod same_names;
mod semantics;
mod subqueries;

use std::sync::Arc;

use datafusion::optimizer::optimizer::Optimizer;
use datafusion::optimizer::{AnalyzerRule, OptimizerRule};
use datafusion::physical_optimizer::optimizer::PhysicalOptimizer;

use rules::node_rule::Rule;

/// Name of the rule that keeps orders, before which rules that change scans are inserted.
pub const LAST: &str = preserved_order::NAME;

/// DataFusion's analyzer rules with the workarounds. Those for subqueries follow type coercion, which gives the types of
/// what they compare.
pub fn analyzer_rules() -> Vec<Arc<dyn AnalyzerRule + Send + Sync>> {
    let mut rules = floats::analyzer_rules();
    rules.push(Arc::new(multisets::Multisets));
    rules.push(Arc::new(subqueries::Subqueries));
    rules.push(Arc::new(flat_unions::FlatUnions));
    rules.push(Arc::new(dependencies::Dependencies));
    rules
}

/// DataFusion's logical rules, with the workarounds among them.
pub fn logical_rules() -> Vec<Arc<dyn OptimizerRule + Send + Sync>> {
    let mut rules = Optimizer::new().rules;
    date_comparisons::insert(&mut rules);
    distinct_decimals::replace(&mut rules);
    joins::null_equal_keys::replace(&mut rules);
    joins::long_join_chains::replace(&mut rules);
    bounded_filters::replace(&mut rules);
    rules
}

/// DataFusion's physical rules, with the workarounds among them.
pub fn physical_rules() -> Vec<Rule> {
    let mut rules = PhysicalOptimizer::new().rules;
    property_barriers::insert(&mut rules);
    limits::insert(&mut rules);
    preserved_order::insert(&mut rules);
    joins::yielding_joins::insert(&mut rules);
    same_names::replace(&mut rules);
    bounded_filters::replace_physical(&mut rules);
    rules
}
