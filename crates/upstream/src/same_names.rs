//! Keeps filters from columns of the same name; row "Filters by name" of `docs/datafusion-workarounds.md`.
//!
//! DataFusion 55.2 finds the columns of a filter that it moves down a physical plan by their names. Above a join of two tables that
//! have a column of one name, the filter comes to the other table. The logical optimizer, which knows tables, has moved all others
//! before; these are the filters above outer joins, and those that sorts and joins make while they run.

use std::collections::HashSet;
use std::fmt::{self, Formatter};
use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;

use crate::barrier::{BarrierExec, Stopped};
use crate::rules::node_rule::Rule;

/// The start of the names of DataFusion's rules.
const NAME: &str = "FilterPushdown";

/// Puts the rules that move no filter through columns of the same name in the places of DataFusion's.
pub(crate) fn replace(rules: &mut [Rule]) {
    for rule in rules.iter_mut().filter(|rule| rule.name().starts_with(NAME)) {
        *rule = Arc::new(OfDistinctNames(Arc::clone(rule)));
    }
}

/// DataFusion's rule, which no filter takes to a node with columns of the same name.
struct OfDistinctNames(Rule);

impl fmt::Debug for OfDistinctNames {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.name())
    }
}

impl PhysicalOptimizerRule for OfDistinctNames {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        let stopped = plan.transform_up(stop)?;
        let moved = self.0.optimize(stopped.data, config)?;
        match stopped.transformed {
            true => moved.transform_up(go_on).data(),
            false => Ok(moved),
        }
    }

    fn name(&self) -> &str {
        self.0.name()
    }

    fn schema_check(&self) -> bool {
        self.0.schema_check()
    }
}

fn stop(plan: Arc<dyn ExecutionPlan>) -> Result<Transformed<Arc<dyn ExecutionPlan>>> {
    let mut names = HashSet::new();
    match plan.schema().fields().iter().all(|field| names.insert(field.name())) {
        true => Ok(Transformed::no(plan)),
        false => Ok(Transformed::yes(BarrierExec::over(plan, Stopped::Filters))),
    }
}

fn go_on(plan: Arc<dyn ExecutionPlan>) -> Result<Transformed<Arc<dyn ExecutionPlan>>> {
    match plan.downcast_ref::<BarrierExec>().and_then(BarrierExec::below_filters) {
        Some(input) => Ok(Transformed::yes(Arc::clone(input))),
        None => Ok(Transformed::no(plan)),
    }
}
