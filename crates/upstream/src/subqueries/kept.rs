//! The subqueries that DataFusion answers rightly.

use std::collections::HashSet;

use arrow::datatypes::DataType;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema};
use datafusion::logical_expr::expr::{Exists, InSubquery};
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::logical_expr::{BinaryExpr, Distinct, Expr, ExprSchemable, JoinType, LogicalPlan, Operator, Subquery};

use super::expressions::{has_subquery, is_subquery};

/// Whether `expr` can stay in a filter over `rows`: `EXISTS`, `NOT EXISTS`, `IN` and an uncorrelated `NOT IN` become semi
/// and anti joins.
pub(super) fn condition(expr: &Expr, rows: &DFSchema) -> bool {
    match expr {
        Expr::Not(inner) => match inner.as_ref() {
            Expr::Exists(exists) => {
                condition(&Expr::Exists(Exists { negated: !exists.negated, ..exists.clone() }), rows)
            }
            Expr::InSubquery(inside) => {
                condition(&Expr::InSubquery(InSubquery { negated: !inside.negated, ..inside.clone() }), rows)
            }
            _ => value(expr, rows),
        },
        Expr::Exists(exists) => is_filtered(&exists.subquery, rows),
        Expr::InSubquery(inside) => {
            let is_uncorrelated = outer_references(&inside.subquery.subquery) == 0;
            let is_column = inside.expr.any_column_refs() && value(&inside.expr, rows);
            is_column && is_filtered(&inside.subquery, rows) && (is_uncorrelated || !inside.negated)
        }
        expr => value(expr, rows),
    }
}

/// Whether all subqueries of `expr` can stay in a filter or a projection over `rows`: those that give one value are either
/// uncorrelated or aggregate rows that are filtered by equality.
pub(super) fn value(expr: &Expr, rows: &DFSchema) -> bool {
    let has_other = expr.exists(|expr| {
        Ok(match expr {
            Expr::ScalarSubquery(subquery) if outer_references(&subquery.subquery) == 0 => {
                is_wrongly_not_null(subquery)
            }
            Expr::ScalarSubquery(subquery) => {
                let plan = &subquery.subquery;
                !(uses_only(plan, rows) && is_aggregate_of_equal(plan) && names_tell_columns(plan))
            }
            expr => is_subquery(expr),
        })
    });
    has_other.is_ok_and(|found| !found)
}

/// Whether DataFusion takes the value of an uncorrelated subquery for never null, though the subquery may have no row.
pub(super) fn is_wrongly_not_null(subquery: &Subquery) -> bool {
    let is_nullable = subquery.subquery.schema().fields().iter().any(|field| field.is_nullable());
    !is_nullable && !has_a_row(&subquery.subquery)
}

/// Whether `plan` has at least one row in any case.
fn has_a_row(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Aggregate(aggregate) => aggregate.group_expr.is_empty(),
        LogicalPlan::EmptyRelation(empty) => empty.produce_one_row,
        LogicalPlan::Values(values) => !values.values.is_empty(),
        LogicalPlan::Projection(_)
        | LogicalPlan::SubqueryAlias(_)
        | LogicalPlan::Sort(_)
        | LogicalPlan::Window(_)
        | LogicalPlan::Distinct(_) => plan.inputs().into_iter().all(has_a_row),
        _ => false,
    }
}

/// Whether only filters below projections and inner joins use outer values, and those of `rows` alone.
fn is_filtered(subquery: &Subquery, rows: &DFSchema) -> bool {
    let plan = &subquery.subquery;
    uses_only(plan, rows) && pulls_up(plan, |_, _| true) && names_tell_columns(plan)
}

/// Whether the columns in correlated filters of `plan` have other names than all columns beside them in a join with the outer
/// rows: those of these filters and of the result. DataFusion gives them all one qualifier there.
fn names_tell_columns(plan: &LogicalPlan) -> bool {
    let mut filtered = HashSet::new();
    let looked = plan.apply(|node| {
        if let LogicalPlan::Filter(filter) = node {
            let correlated = split_conjunction(&filter.predicate).into_iter().filter(|expr| expr.contains_outer());
            filtered.extend(correlated.flat_map(|expr| expr.column_refs().into_iter().cloned()));
        }
        Ok(TreeNodeRecursion::Continue)
    });

    let columns: HashSet<Column> = plan.schema().columns().into_iter().chain(filtered.iter().cloned()).collect();
    let has_other = |own: &Column| columns.iter().any(|column| column.name == own.name && column != own);
    looked.is_ok() && !filtered.iter().any(|own| has_other(own) || computes(plan, own))
}

/// Whether a result of `plan` has the name of a column and is another value, as a cast of it is.
fn computes(plan: &LogicalPlan, column: &Column) -> bool {
    let LogicalPlan::Projection(projection) = plan else { return false };
    let name = column.flat_name();
    projection.expr.iter().any(|expr| !matches!(expr, Expr::Column(_)) && expr.schema_name().to_string() == name)
}

fn uses_only(plan: &LogicalPlan, rows: &DFSchema) -> bool {
    plan.all_out_ref_exprs().iter().all(|expr| match expr {
        Expr::OuterReferenceColumn(_, column) => rows.has_column(column),
        _ => false,
    })
}

fn outer_references(plan: &LogicalPlan) -> usize {
    plan.all_out_ref_exprs().len()
}

/// Whether the correlated filters of `plan` can be moved to a join above it, and `is_fit` for each of their conditions.
fn pulls_up(plan: &LogicalPlan, is_fit: fn(&Expr, &DFSchema) -> bool) -> bool {
    if outer_references(plan) == 0 {
        return true;
    }
    match plan {
        LogicalPlan::Filter(filter) => {
            let conditions = split_conjunction(&filter.predicate).into_iter().filter(|expr| expr.contains_outer());
            let conditions: Vec<&Expr> = conditions.collect();
            // Conditions below a projection that renames their columns are lost sight of beside others above it.
            let is_one_filter = conditions.is_empty() || outer_references(&filter.input) == 0;
            is_one_filter
                && conditions.into_iter().all(|expr| is_known(expr) && is_fit(expr, filter.input.schema()))
                && pulls_up(&filter.input, is_fit)
        }
        LogicalPlan::Projection(_) | LogicalPlan::SubqueryAlias(_) | LogicalPlan::Distinct(Distinct::All(_)) => {
            !own_outer_references(plan) && plan.inputs().into_iter().all(|input| pulls_up(input, is_fit))
        }
        LogicalPlan::Join(join) => {
            join.join_type == JoinType::Inner
                && !own_outer_references(plan)
                && [&join.left, &join.right].iter().all(|side| pulls_up(side, is_fit) && !is_grouped_apart(side))
        }
        _ => false,
    }
}

/// Whether a side of a join without outer values has an aggregate. DataFusion takes it for one over the rows that the conditions of
/// the other side filter.
fn is_grouped_apart(side: &LogicalPlan) -> bool {
    let has_aggregate = || side.exists(|plan| Ok(matches!(plan, LogicalPlan::Aggregate(_))));
    outer_references(side) == 0 && has_aggregate().unwrap_or(true)
}

/// Whether a condition is one that DataFusion moves as it is. It drops a comparison of a value with itself, which is null
/// for null.
fn is_known(expr: &Expr) -> bool {
    let compares_itself = matches!(expr, Expr::BinaryExpr(BinaryExpr { left, right, .. }) if left == right);
    !has_subquery(expr) && expr.any_column_refs() && !compares_itself
}

/// Whether expressions of the node itself use outer values.
fn own_outer_references(plan: &LogicalPlan) -> bool {
    let mut found = false;
    let looked = plan.apply_expressions(|expr| {
        found |= expr.contains_outer();
        Ok(TreeNodeRecursion::Continue)
    });
    looked.is_err() || found
}

/// Whether `plan` aggregates, without groups, rows that are filtered by columns that equal outer values.
fn is_aggregate_of_equal(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Projection(projection) => {
            !own_outer_references(plan)
                && projection.expr.iter().all(|expr| expr.any_column_refs())
                && is_aggregate_of_equal(&projection.input)
        }
        LogicalPlan::SubqueryAlias(alias) => is_aggregate_of_equal(&alias.input),
        LogicalPlan::Aggregate(aggregate) => {
            aggregate.group_expr.is_empty()
                && !own_outer_references(plan)
                && pulls_up(&aggregate.input, is_column_equal_to_outer)
                && !has_distinct(&aggregate.input)
        }
        _ => false,
    }
}

/// Whether a node below removes duplicates, which more columns would change.
fn has_distinct(plan: &LogicalPlan) -> bool {
    outer_references(plan) > 0
        && (matches!(plan, LogicalPlan::Distinct(_)) || plan.inputs().into_iter().any(has_distinct))
}

/// Whether `expr` compares a column of `rows`, or a cast that keeps its values apart, with an expression of outer values.
fn is_column_equal_to_outer(expr: &Expr, rows: &DFSchema) -> bool {
    let Expr::BinaryExpr(BinaryExpr { left, op: Operator::Eq, right }) = expr else { return false };
    (is_injective(left, rows) && !right.any_column_refs()) || (is_injective(right, rows) && !left.any_column_refs())
}

fn is_injective(expr: &Expr, rows: &DFSchema) -> bool {
    match expr {
        Expr::Column(_) => true,
        Expr::Cast(cast) if matches!(cast.expr.as_ref(), Expr::Column(_)) => {
            cast.expr.get_type(rows).is_ok_and(|from| widens(&from, cast.field.data_type()))
        }
        _ => false,
    }
}

/// Whether a cast gives different values for different values.
fn widens(from: &DataType, to: &DataType) -> bool {
    let is_text = |kind: &DataType| matches!(kind, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View);
    match (from, to) {
        (from, to) if is_text(from) => is_text(to),
        (from, to) if from.is_integer() && to.is_integer() => from.primitive_width() < to.primitive_width(),
        (DataType::Float32, DataType::Float64) | (DataType::Date32, DataType::Timestamp(..)) => true,
        (DataType::Timestamp(from, one), DataType::Timestamp(to, other)) => from <= to && one == other,
        _ => false,
    }
}
