//! Optimizer rules, physical but for those of comparisons.

pub(crate) mod aggregate_below_join;
pub(crate) mod any_order;
pub(crate) mod balanced_filters;
pub(crate) mod filter_below_asof;
pub(crate) mod fixed_intervals;
pub(crate) mod group_top_k;
pub(crate) mod interval_comparisons;
pub(crate) mod key_order;
pub(crate) mod newest_windows;
pub(crate) mod partial_aggregate;
pub(crate) mod record_scan;
pub(crate) mod sort_merge_join;

use std::sync::Arc;

use datafusion::optimizer::OptimizerRule;

use crate::gapfill::rule;

/// DataFusion's logical rules with the workarounds, and the rule without which `time_bucket_gapfill` has no meaning.
pub(crate) fn plain_rules() -> Vec<Arc<dyn OptimizerRule + Send + Sync>> {
    let mut rules = tidetable_upstream::logical_rules();
    rule::insert(&mut rules);
    rules
}

/// DataFusion's logical rules with the workarounds and those of this crate.
pub(crate) fn logical_rules() -> Vec<Arc<dyn OptimizerRule + Send + Sync>> {
    let mut rules = plain_rules();
    interval_comparisons::insert(&mut rules);
    // After it: what is left is not compared with constants.
    rules.push(Arc::new(fixed_intervals::FixedIntervals));
    // Before a projection comes between; the next pass takes the filters on.
    let pushed = rules.iter().position(|rule| rule.name() == "push_down_filter").map_or(rules.len(), |at| at + 1);
    rules.insert(pushed, Arc::new(filter_below_asof::FilterBelowAsOf));
    rules
}
