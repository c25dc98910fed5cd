//! Logical rule that moves filters below ASOF joins.
//!
//! A filter on columns of the left side keeps or drops a row with its match, so it may precede the join. One on the keys alone may
//! also precede it on the right side, where other keys match nothing. A filter on other columns of the right side must not: without
//! the nearest row, the one before it would be the match.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::common::Column;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::error::Result;
use datafusion::logical_expr::utils::{conjunction, split_conjunction_owned};
use datafusion::logical_expr::{Expr, Extension, Filter, LogicalPlan, UserDefinedLogicalNodeCore};
use datafusion::optimizer::optimizer::ApplyOrder;
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};

use crate::asof::node::AsOfJoin;

#[derive(Debug)]
pub(super) struct FilterBelowAsOf;

impl OptimizerRule for FilterBelowAsOf {
    fn name(&self) -> &str {
        "filter_below_asof_join"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::TopDown)
    }

    fn rewrite(&self, plan: LogicalPlan, _: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        let LogicalPlan::Filter(filter) = &plan else { return Ok(Transformed::no(plan)) };
        let LogicalPlan::Extension(extension) = filter.input.as_ref() else { return Ok(Transformed::no(plan)) };
        let Some(join) = extension.node.as_any().downcast_ref::<AsOfJoin>() else { return Ok(Transformed::no(plan)) };

        let (below, above): (Vec<Expr>, Vec<Expr>) =
            split_conjunction_owned(filter.predicate.clone()).into_iter().partition(|part| is_of_left(part, join));
        if below.is_empty() {
            return Ok(Transformed::no(plan));
        }
        let of_right = below.iter().filter_map(|part| with_right_keys(part, join)).collect::<Vec<Expr>>();
        let inputs = vec![filtered(join.left.clone(), below)?, filtered(join.right.clone(), of_right)?];
        let node = join.with_exprs_and_inputs(join.expressions(), inputs)?;
        let joined = LogicalPlan::Extension(Extension { node: Arc::new(node) });
        Ok(Transformed::yes(filtered(joined, above)?))
    }
}

/// Whether `part` has columns of the left side only, at least one, and the same value each time.
fn is_of_left(part: &Expr, join: &AsOfJoin) -> bool {
    let columns = part.column_refs();
    let is_plain = !part.is_volatile() && !has_subquery(part);
    is_plain && !columns.is_empty() && columns.iter().all(|column| join.left.schema().has_column(column))
}

/// `part` over the keys of the right side; `None` if it has other columns than keys.
fn with_right_keys(part: &Expr, join: &AsOfJoin) -> Option<Expr> {
    let keys: HashMap<&Column, &Expr> = join
        .keys
        .iter()
        .filter_map(|(left, right)| match (left, right) {
            (Expr::Column(left), Expr::Column(_)) => Some((left, right)),
            _ => None,
        })
        .collect();
    if !part.column_refs().iter().all(|column| keys.contains_key(column)) {
        return None;
    }
    let replaced = part.clone().transform(|part| match &part {
        Expr::Column(column) => Ok(match keys.get(column) {
            Some(key) => Transformed::yes((*key).clone()),
            None => Transformed::no(part),
        }),
        _ => Ok(Transformed::no(part)),
    });
    replaced.ok().map(|replaced| replaced.data)
}

fn filtered(input: LogicalPlan, parts: Vec<Expr>) -> Result<LogicalPlan> {
    match conjunction(parts) {
        Some(predicate) => Ok(LogicalPlan::Filter(Filter::try_new(predicate, Arc::new(input))?)),
        None => Ok(input),
    }
}

fn has_subquery(part: &Expr) -> bool {
    let is_subquery = |part: &Expr| {
        matches!(
            part,
            Expr::ScalarSubquery(_)
                | Expr::InSubquery(_)
                | Expr::Exists(_)
                | Expr::SetComparison(_)
                | Expr::OuterReferenceColumn(..)
        )
    };
    part.exists(|part| Ok(is_subquery(part))).unwrap_or(true)
}
