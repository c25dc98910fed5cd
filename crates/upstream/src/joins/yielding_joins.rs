//! Joins that yield; row "Joins that do not yield" of `docs/datafusion-workarounds.md`.
//!
//! DataFusion 55.2 lets its leaves and exchanges yield to the runtime. A join whose inputs are read already makes batch after
//! batch without asking them, and an aggregation above it takes them all in one poll: a stop would wait for the end.

use std::sync::Arc;

use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::joins::{CrossJoinExec, HashJoinExec, NestedLoopJoinExec, SortMergeJoinExec};

use crate::rules::node_rule::{Rule, node_rule};

/// Inserts the rule after all that know joins by their inputs.
pub(crate) fn insert(rules: &mut Vec<Rule>) {
    let last = rules.iter().position(|rule| rule.name() == "SanityCheckPlan").unwrap_or(rules.len());
    rules.insert(last, node_rule("JoinsYield", |plan| Ok(yielding(plan))));
}

fn yielding(plan: &Arc<dyn ExecutionPlan>) -> Option<Arc<dyn ExecutionPlan>> {
    let is_join = plan.is::<CrossJoinExec>()
        || plan.is::<HashJoinExec>()
        || plan.is::<NestedLoopJoinExec>()
        || plan.is::<SortMergeJoinExec>();
    is_join.then(|| Arc::new(CooperativeExec::new(Arc::clone(plan))) as Arc<dyn ExecutionPlan>)
}
