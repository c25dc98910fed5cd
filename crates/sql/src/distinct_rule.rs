//! Distinct values counted beside sums of decimals.
//!
//! `sum(price), count(DISTINCT meter)` may be worked out in two groupings, one over the other. A sum of decimals has ten more digits than what
//! it adds up, so a sum of sums has twenty, while the rest of the plan still counts on ten (DataFusion 55.2): a `HAVING` of it then
//! compares unlike decimals, and fails. Such aggregates are left to one grouping.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::tree_node::Transformed;
use datafusion::logical_expr::expr::AggregateFunction;
use datafusion::logical_expr::{Aggregate, Expr, ExprSchemable, LogicalPlan};
use datafusion::optimizer::optimizer::ApplyOrder;
use datafusion::optimizer::single_distinct_to_groupby::SingleDistinctToGroupBy;
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};

/// Puts [`DistinctInOneType`] in the place of the engine's rule.
pub(crate) fn replace(rules: &mut [Arc<dyn OptimizerRule + Send + Sync>]) {
    let inner = SingleDistinctToGroupBy::new();
    if let Some(rule) = rules.iter_mut().find(|rule| rule.name() == inner.name()) {
        *rule = Arc::new(DistinctInOneType { inner });
    }
}

/// The engine's rule, where it leaves types as they are.
#[derive(Debug)]
struct DistinctInOneType {
    inner: SingleDistinctToGroupBy,
}

impl OptimizerRule for DistinctInOneType {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        self.inner.apply_order()
    }

    fn supports_rewrite(&self) -> bool {
        true
    }

    fn rewrite(&self, plan: LogicalPlan, config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        match &plan {
            LogicalPlan::Aggregate(aggregate)
                if !aggregate.aggr_expr.iter().all(|expr| keeps_type(expr, aggregate)) =>
            {
                Ok(Transformed::no(plan))
            }
            _ => self.inner.rewrite(plan, config),
        }
    }
}

/// Whether a function gives over its own results what it gives over values.
fn keeps_type(expr: &Expr, aggregate: &Aggregate) -> bool {
    let Expr::AggregateFunction(AggregateFunction { func, params }) = expr else { return true };
    if params.distinct {
        return true;
    }
    let given = expr.get_type(aggregate.input.schema());
    given.is_ok_and(|given| func.return_type(std::slice::from_ref(&given)).is_ok_and(|again| again == given))
}
