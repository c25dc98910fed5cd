//! Counts rows in `EXCEPT ALL` and `INTERSECT ALL`; row "Multisets" of `docs/datafusion-workarounds.md`.
//!
//! DataFusion 55.2 plans both as an anti or semi join of all columns, which asks only whether the other side has the
//! row. Here the copies of a row are numbered on both sides, and the number is one more key of the join: the third copy
//! is in the difference if the other side has two.

use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult};
use datafusion::common::{Column, NullEquality, Result};
use datafusion::functions_window::expr_fn::row_number;
use datafusion::logical_expr::{Distinct, Expr, ExprFunctionExt, Join, JoinType, LogicalPlan, Projection, Window};
use datafusion::optimizer::AnalyzerRule;

/// Numbers the copies of rows on both sides of `EXCEPT ALL` and `INTERSECT ALL`.
#[derive(Debug)]
pub(crate) struct Multisets;

impl AnalyzerRule for Multisets {
    fn name(&self) -> &str {
        "multisets"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        plan.transform_up_with_subqueries(|plan| match plan {
            LogicalPlan::Join(join) if is_of_multisets(&join) => by_copies(join).map(Transformed::yes),
            plan => Ok(Transformed::no(plan)),
        })
        .data()
    }
}

/// Whether `join` compares all columns of two relations, the first with its duplicates. Only set operations have keys
/// whose nulls are equal when a plan is analyzed.
fn is_of_multisets(join: &Join) -> bool {
    matches!(join.join_type, JoinType::LeftSemi | JoinType::LeftAnti)
        && join.null_equality == NullEquality::NullEqualsNull
        && join.filter.is_none()
        && join.on.len() == join.left.schema().fields().len()
        && !matches!(join.left.as_ref(), LogicalPlan::Distinct(Distinct::All(_)))
}

fn by_copies(join: Join) -> Result<LogicalPlan> {
    let columns = join.left.schema().columns().into_iter().map(Expr::Column).collect();
    let (lefts, rights): (Vec<Expr>, Vec<Expr>) = join.on.iter().cloned().unzip();
    let [left, right] = [("__copy_left", join.left, lefts), ("__copy_right", join.right, rights)]
        .map(|(name, side, keys)| numbered(name, side, keys));
    let mut on = join.on;
    let copies = ["__copy_left", "__copy_right"].map(|name| Expr::Column(Column::new_unqualified(name)));
    on.push(copies.into());
    let (join_type, constraint, nulls) = (join.join_type, join.join_constraint, join.null_equality);
    let join = Join::try_new(Arc::new(left?), Arc::new(right?), on, None, join_type, constraint, nulls, false)?;
    Projection::try_new(columns, Arc::new(LogicalPlan::Join(join))).map(LogicalPlan::Projection)
}

/// `side` with the number of each row among those with the same `keys`.
fn numbered(name: &str, side: Arc<LogicalPlan>, keys: Vec<Expr>) -> Result<LogicalPlan> {
    let number = row_number().partition_by(keys).build()?.alias(name);
    Window::try_new(vec![number], side).map(LogicalPlan::Window)
}
