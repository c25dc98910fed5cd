//! Finds functions that are not deterministic: stored and published data must follow from its inputs.

use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, LogicalPlan, Volatility};

/// The first such function in `expr`, if there is one.
pub(crate) fn volatile_function(expr: &Expr) -> Option<String> {
    let mut found = None;
    let looked = expr.apply(|expr| {
        found = match expr {
            Expr::ScalarFunction(function) if function.func.signature().volatility != Volatility::Immutable => {
                Some(function.name().to_owned())
            }
            _ => return Ok(TreeNodeRecursion::Continue),
        };
        Ok(TreeNodeRecursion::Stop)
    });
    looked.ok().and(found)
}

/// The first such function in `plan` and its subqueries, if there is one.
///
/// # Errors
/// Those of DataFusion.
pub(crate) fn volatile_function_in(plan: &LogicalPlan) -> Result<Option<String>> {
    let mut found = None;
    plan.apply_with_subqueries(|plan| {
        let looked = plan.apply_expressions(|expr| {
            found = volatile_function(expr);
            Ok(if found.is_some() { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
        })?;
        Ok(looked)
    })?;
    Ok(found)
}
