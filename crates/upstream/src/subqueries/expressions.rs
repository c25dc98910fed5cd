//! Subqueries in expressions.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::{Expr, LogicalPlan, Subquery};

pub(super) fn subquery_mut(expr: &mut Expr) -> Option<&mut Subquery> {
    match expr {
        Expr::ScalarSubquery(subquery) => Some(subquery),
        Expr::Exists(exists) => Some(&mut exists.subquery),
        Expr::InSubquery(inside) => Some(&mut inside.subquery),
        Expr::SetComparison(compared) => Some(&mut compared.subquery),
        _ => None,
    }
}

pub(super) fn is_subquery(expr: &Expr) -> bool {
    matches!(expr, Expr::ScalarSubquery(_) | Expr::Exists(_) | Expr::InSubquery(_) | Expr::SetComparison(_))
}

pub(super) fn has_subquery(expr: &Expr) -> bool {
    expr.exists(|expr| Ok(is_subquery(expr))).unwrap_or(true)
}

pub(super) fn node_has_subqueries(plan: &LogicalPlan) -> Result<bool> {
    let mut found = false;
    plan.apply_expressions(|expr| {
        found |= has_subquery(expr);
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(found)
}

pub(super) fn has_subqueries(plan: &LogicalPlan) -> Result<bool> {
    plan.exists(|plan| Ok(matches!(plan, LogicalPlan::Subquery(_)) || node_has_subqueries(plan)?))
}

/// `subquery` with another plan, and the outer columns that it uses.
pub(super) fn with_plan(subquery: &Subquery, plan: LogicalPlan) -> Subquery {
    let outer_ref_columns = plan.all_out_ref_exprs();
    Subquery { subquery: Arc::new(plan), outer_ref_columns, spans: subquery.spans.clone() }
}
