//! Keeps `sum(decimal)` beside `count(DISTINCT ..)` in one aggregation; row "Distinct decimals" of
//! `docs/datafusion-workarounds.md`.
//!
//! DataFusion 55.2 splits `sum(price), count(DISTINCT meter)` into two aggregations. A sum of decimals has ten more
//! digits than its argument, so the sum of sums has twenty more, while expressions above still expect ten: a `HAVING`
//! compares decimals of different types and fails.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::tree_node::Transformed;
use datafusion::logical_expr::expr::AggregateFunction;
use datafusion::logical_expr::{Aggregate, Expr, ExprSchemable, LogicalPlan};
use datafusion::optimizer::optimizer::ApplyOrder;
use datafusion::optimizer::single_distinct_to_groupby::SingleDistinctToGroupBy;
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};

/// Replaces the rule of DataFusion by [`DistinctInOneType`].
pub(crate) fn replace(rules: &mut [Arc<dyn OptimizerRule + Send + Sync>]) {
    let inner = SingleDistinctToGroupBy::new();
    if let Some(rule) = rules.iter_mut().find(|rule| rule.name() == inner.name()) {
        *rule = Arc::new(DistinctInOneType { inner });
    }
}

/// DataFusion's rule, applied only where it preserves types.
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

/// Whether a function over its own results keeps its type.
fn keeps_type(expr: &Expr, aggregate: &Aggregate) -> bool {
    let Expr::AggregateFunction(AggregateFunction { func, params }) = expr else { return true };
    if params.distinct {
        return true;
    }
    let given = expr.get_type(aggregate.input.schema());
    given.is_ok_and(|given| func.return_type(std::slice::from_ref(&given)).is_ok_and(|again| again == given))
}
