//! Optimizer rules that rewrite comparisons in filters.

use std::fmt::{self, Formatter};
use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::{Expr, LogicalPlan};
use datafusion::optimizer::optimizer::ApplyOrder;
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};

/// DataFusion's logical rules, in the order in which they run.
pub type LogicalRules = Vec<Arc<dyn OptimizerRule + Send + Sync>>;

/// Replaces an expression over a schema; `None` keeps it.
type Rewrite = fn(&Expr, &DFSchema) -> Option<Expr>;

/// Inserts a rule that calls `rewrite` for each expression of each filter, bottom-up, once expressions are simplified
/// and constants folded.
pub fn insert(rules: &mut LogicalRules, name: &'static str, rewrite: Rewrite) {
    let place = rules.iter().position(|rule| rule.name() == "simplify_expressions").map_or(rules.len(), |at| at + 1);
    rules.insert(place, Arc::new(ComparisonRule { name, rewrite }));
}

struct ComparisonRule {
    name: &'static str,
    rewrite: Rewrite,
}

impl fmt::Debug for ComparisonRule {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl OptimizerRule for ComparisonRule {
    fn name(&self) -> &str {
        self.name
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::BottomUp)
    }

    fn supports_rewrite(&self) -> bool {
        true
    }

    fn rewrite(&self, plan: LogicalPlan, _: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        // Filters only: elsewhere a rewrite would rename output columns.
        let LogicalPlan::Filter(filter) = &plan else { return Ok(Transformed::no(plan)) };
        let schema = Arc::clone(filter.input.schema());
        plan.map_expressions(|expr| {
            expr.transform_up(|expr| {
                Ok(match (self.rewrite)(&expr, &schema) {
                    Some(rewritten) => Transformed::yes(rewritten),
                    None => Transformed::no(expr),
                })
            })
        })
    }
}
