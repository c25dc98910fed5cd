//! The outer values that a subquery uses.

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, Result, plan_err};
use datafusion::logical_expr::{
    Distinct, Expr, ExprSchemable, Join, JoinType, LogicalPlan, Projection, SubqueryAlias, Volatility,
};

use super::expressions::{is_subquery, subquery_mut};

/// The outer values that a subquery uses, as expressions over outer columns. Most are a column; a value inside of a map
/// is used in place of the map, which cannot be grouped by.
#[derive(Debug, Clone)]
pub(super) struct Outer {
    values: Vec<Expr>,
}

/// A relation that has each distinct combination of the outer values once.
pub(super) struct Domain {
    pub(super) plan: LogicalPlan,
    /// The columns of the relation, in the order of the values.
    pub(super) keys: Vec<Column>,
}

impl Outer {
    /// The values that `plan` takes from a row of `schema`.
    ///
    /// # Errors
    /// If one of them has a type that cannot be grouped by.
    pub(super) fn of(plan: &LogicalPlan, schema: &DFSchema) -> Result<Self> {
        let mut values = Vec::new();
        plan.apply(|plan| {
            plan.apply_expressions(|expr| expr.apply(|expr| collect(expr, schema, &mut values)))?;
            Ok(TreeNodeRecursion::Continue)
        })?;
        Ok(Self { values })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.values.len()
    }

    /// The place of an expression of the subquery among the values.
    fn place(&self, expr: &Expr) -> Option<usize> {
        self.values.iter().position(|value| match (value, expr) {
            (Expr::OuterReferenceColumn(_, one), Expr::OuterReferenceColumn(_, other)) => one == other,
            (value, expr) => value == expr,
        })
    }

    /// Whether `expr` uses one of the outer values.
    pub(super) fn is_in(&self, expr: &Expr) -> bool {
        expr.exists(|expr| Ok(self.place(expr).is_some())).unwrap_or(true)
    }

    /// Whether an expression of `plan` uses one of the values.
    pub(super) fn is_in_plan(&self, plan: &LogicalPlan) -> Result<bool> {
        plan.exists(|plan| {
            let mut found = false;
            plan.apply_expressions(|expr| {
                found |= self.is_in(expr);
                Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
            })?;
            Ok(found)
        })
    }

    /// `expr` with the columns `keys` in place of the values.
    pub(super) fn replaced(&self, expr: Expr, keys: &[Column]) -> Result<Expr> {
        expr.transform_down(|expr| match self.place(&expr).and_then(|place| keys.get(place)) {
            Some(key) => Ok(Transformed::new(Expr::Column(key.clone()), true, TreeNodeRecursion::Jump)),
            None => Ok(Transformed::no(expr)),
        })
        .data()
    }

    /// The values as expressions over the rows of the outer query.
    fn over_rows(&self) -> impl Iterator<Item = Result<Expr>> {
        self.values.iter().map(|value| value.clone().transform_up(|expr| Ok(as_column(expr))).data())
    }

    /// Pairs of each value, over the outer rows, and its key.
    pub(super) fn on(&self, keys: Vec<Column>) -> Result<Vec<(Expr, Expr)>> {
        self.over_rows().zip(keys).map(|(value, key)| Ok((value?, Expr::Column(key)))).collect()
    }

    /// The distinct values in `rows`, under names with `number`.
    ///
    /// # Errors
    /// If `rows` may have other values when they are read again.
    pub(super) fn domain(&self, rows: &LogicalPlan, number: usize) -> Result<Domain> {
        let name = |at: usize| format!("__outer_{number}_{at}");
        let values = self.over_rows().enumerate().map(|(at, value)| Ok(value?.alias(name(at))));
        let values = Projection::try_new(values.collect::<Result<Vec<_>>>()?, Arc::new(superset(rows)?))?;
        let distinct = Distinct::All(Arc::new(LogicalPlan::Projection(values)));
        let table = format!("__outer_{number}");
        let plan = SubqueryAlias::try_new(Arc::new(LogicalPlan::Distinct(distinct)), table.as_str())?;
        let keys = (0..self.values.len()).map(|at| Column::new(Some(table.as_str()), name(at))).collect();
        Ok(Domain { plan: LogicalPlan::SubqueryAlias(plan), keys })
    }
}

fn as_column(expr: Expr) -> Transformed<Expr> {
    match expr {
        Expr::OuterReferenceColumn(_, column) => Transformed::yes(Expr::Column(column)),
        expr => Transformed::no(expr),
    }
}

/// Adds to `values` the outer value that `expr` is, if it is one.
fn collect(expr: &Expr, schema: &DFSchema, values: &mut Vec<Expr>) -> Result<TreeNodeRecursion> {
    let is_column = matches!(expr, Expr::OuterReferenceColumn(..));
    if !is_column && !takes_out_of_map(expr, schema)? {
        return Ok(TreeNodeRecursion::Continue);
    }
    if let Expr::OuterReferenceColumn(field, column) = expr {
        if !schema.has_column(column) {
            return Ok(TreeNodeRecursion::Continue);
        }
        if !is_groupable(field.data_type()) {
            return plan_err!("a subquery cannot use the map {column} of the outer query, only its values");
        }
    }
    let is_known = Outer { values: values.clone() }.place(expr).is_some();
    if !is_known {
        values.push(expr.clone());
    }
    Ok(TreeNodeRecursion::Jump)
}

/// Whether `expr` has only columns of `schema`, one of them a map, and is none itself.
fn takes_out_of_map(expr: &Expr, schema: &DFSchema) -> Result<bool> {
    let mut has_map = false;
    let mut is_outer = true;
    expr.apply(|expr| {
        match expr {
            Expr::OuterReferenceColumn(field, column) => {
                has_map |= !is_groupable(field.data_type());
                is_outer &= schema.has_column(column);
            }
            Expr::Column(_) | Expr::AggregateFunction(_) | Expr::WindowFunction(_) => is_outer = false,
            expr if is_subquery(expr) => is_outer = false,
            _ => {}
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(has_map && is_outer && expr.get_type(&DFSchema::empty()).is_ok_and(|kind| is_groupable(&kind)))
}

fn is_groupable(kind: &DataType) -> bool {
    !matches!(kind, DataType::Map(..))
}

/// The columns of the row around `expr` that it uses, also inside of subqueries.
pub(super) fn columns_of(expr: &Expr) -> Result<Vec<Column>> {
    let mut columns: Vec<Column> = expr.column_refs().into_iter().cloned().collect();
    expr.apply(|expr| {
        let mut expr = expr.clone();
        if let Some(subquery) = subquery_mut(&mut expr) {
            let outer = subquery.subquery.all_out_ref_exprs();
            columns.extend(outer.into_iter().filter_map(|expr| match expr {
                Expr::OuterReferenceColumn(_, column) => Some(column),
                _ => None,
            }));
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(columns)
}

/// A plan with at least the rows of `plan`, which has the same rows each time: `plan` is read twice.
fn superset(plan: &LogicalPlan) -> Result<LogicalPlan> {
    match plan {
        LogicalPlan::Limit(limit) => superset(&limit.input),
        LogicalPlan::Sort(sort) if sort.fetch.is_none() => superset(&sort.input),
        LogicalPlan::Filter(filter) if is_volatile(&filter.predicate) => superset(&filter.input),
        LogicalPlan::Projection(_)
        | LogicalPlan::Filter(_)
        | LogicalPlan::SubqueryAlias(_)
        | LogicalPlan::Union(_)
        | LogicalPlan::Join(Join { join_type: JoinType::Inner, .. })
        | LogicalPlan::Distinct(Distinct::All(_)) => {
            check_repeatable(plan)?;
            plan.clone().map_children(|child| superset(&child).map(Transformed::yes)).data()
        }
        plan => {
            plan.apply(|plan| {
                check_repeatable(plan)?;
                if let LogicalPlan::Limit(limit) = plan
                    && !matches!(limit.input.as_ref(), LogicalPlan::Sort(_) | LogicalPlan::Projection(_))
                {
                    return plan_err!(
                        "a correlated subquery cannot be beside a LIMIT without ORDER BY, which takes other rows each \
                         time; add an ORDER BY"
                    );
                }
                Ok(TreeNodeRecursion::Continue)
            })?;
            Ok(plan.clone())
        }
    }
}

fn check_repeatable(plan: &LogicalPlan) -> Result<()> {
    plan.apply_expressions(|expr| match is_volatile(expr) {
        true => plan_err!(
            "a correlated subquery cannot be beside {expr}, which has another value each time; compute it in an outer query"
        ),
        false => Ok(TreeNodeRecursion::Continue),
    })?;
    Ok(())
}

/// Whether `expr` may have another value each time that it is evaluated.
fn is_volatile(expr: &Expr) -> bool {
    let found = expr.exists(|expr| match expr {
        Expr::ScalarFunction(function) => Ok(function.func.signature().volatility == Volatility::Volatile),
        _ => Ok(false),
    });
    found.unwrap_or(true)
}
