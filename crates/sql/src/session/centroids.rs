//! Bounds the centroids of approximate percentiles: DataFusion makes room for as many as the last argument of the function says, and
//! the process ends where there is none.

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::common::plan_err;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, LogicalPlan};
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};
use datafusion::scalar::ScalarValue;

/// The most centroids of a percentile; 100 are the default.
const MAX_CENTROIDS: i64 = 10_000;

/// The functions with the number of their arguments when the last one is that of centroids.
const FUNCTIONS: [(&str, usize); 2] = [("approx_percentile_cont", 3), ("approx_percentile_cont_with_weight", 4)];

/// A rule that refuses queries with more centroids than [`MAX_CENTROIDS`]. It stands last, where constants have been computed.
pub(crate) fn bounded_centroids() -> Arc<dyn OptimizerRule + Send + Sync> {
    Arc::new(BoundedCentroids)
}

#[derive(Debug)]
struct BoundedCentroids;

impl OptimizerRule for BoundedCentroids {
    fn name(&self) -> &str {
        "bounded_centroids"
    }

    fn rewrite(&self, plan: LogicalPlan, _: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        plan.apply_with_subqueries(|node| {
            node.apply_expressions(|expr| {
                expr.apply(|expr| {
                    check(expr)?;
                    Ok(TreeNodeRecursion::Continue)
                })
            })
        })?;
        Ok(Transformed::no(plan))
    }
}

/// Refuses an approximate percentile with too many centroids, or with a number of them that is not known before the query runs.
fn check(expr: &Expr) -> Result<()> {
    let Expr::AggregateFunction(aggregate) = expr else { return Ok(()) };
    let (name, arguments) = (aggregate.func.name(), &aggregate.params.args);
    if !FUNCTIONS.contains(&(name, arguments.len())) {
        return Ok(());
    }

    let given = match arguments.last() {
        Some(Expr::Literal(value, _)) => value.cast_to(&DataType::Int64).ok(),
        _ => None,
    };
    match given {
        Some(ScalarValue::Int64(Some(centroids))) if (1..=MAX_CENTROIDS).contains(&centroids) => Ok(()),
        _ => plan_err!("the last argument of {name}, its centroids, is a number from 1 to {MAX_CENTROIDS}"),
    }
}
