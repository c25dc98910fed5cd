//! Physical optimizer rules that replace single nodes of a plan.

use std::fmt::{self, Formatter};
use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::error::Result;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;

/// A physical rule that looks at each node of a plan and replaces some.
pub type Rule = Arc<dyn PhysicalOptimizerRule + Send + Sync>;

type Plan = Arc<dyn ExecutionPlan>;

/// Calls `replace` for each node, bottom-up; `None` keeps the node.
pub fn node_rule(name: &'static str, replace: impl Fn(&Plan) -> Result<Option<Plan>> + Send + Sync + 'static) -> Rule {
    Arc::new(NodeRule { name, replace })
}

struct NodeRule<F> {
    name: &'static str,
    replace: F,
}

impl<F> fmt::Debug for NodeRule<F> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl<F: Fn(&Plan) -> Result<Option<Plan>> + Send + Sync + 'static> PhysicalOptimizerRule for NodeRule<F> {
    fn optimize(&self, plan: Plan, _: &ConfigOptions) -> Result<Plan> {
        plan.transform_up(|plan| {
            Ok(match (self.replace)(&plan)? {
                Some(replaced) => Transformed::yes(replaced),
                None => Transformed::no(plan),
            })
        })
        .data()
    }

    fn name(&self) -> &str {
        self.name
    }

    fn schema_check(&self) -> bool {
        true
    }
}
