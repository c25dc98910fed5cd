//! Relation planner of ASOF joins.

use std::sync::Arc;

use datafusion::common::{Column, DFSchema, Result, plan_err};
use datafusion::logical_expr::expr::BinaryExpr;
use datafusion::logical_expr::planner::{PlannedRelation, RelationPlanner, RelationPlannerContext, RelationPlanning};
use datafusion::logical_expr::type_coercion::binary::comparison_coercion;
use datafusion::logical_expr::utils::split_conjunction_owned;
use datafusion::logical_expr::{Expr, ExprSchemable, Extension, LogicalPlan, LogicalPlanBuilder, Operator, cast, lit};
use datafusion::sql::sqlparser::ast::{
    self, Join, JoinConstraint, JoinOperator, ObjectName, TableFactor, TableWithJoins,
};

use crate::asof::node::AsOfJoin;
use crate::asof::syntax::is_asof;

/// Plans ASOF joins, which stand in parentheses of their own.
#[derive(Debug)]
pub(crate) struct AsOfPlanner;

impl RelationPlanner for AsOfPlanner {
    fn plan_relation(
        &self,
        relation: TableFactor,
        context: &mut dyn RelationPlannerContext,
    ) -> Result<RelationPlanning> {
        let TableFactor::NestedJoin { table_with_joins, alias } = &relation else {
            return Ok(RelationPlanning::Original(Box::new(relation)));
        };
        let Some((join, before)) = table_with_joins.joins.split_last().filter(|(join, _)| is_asof(join)) else {
            return Ok(RelationPlanning::Original(Box::new(relation)));
        };

        let left = match before {
            [] => table_with_joins.relation.clone(),
            before => {
                let inner = TableWithJoins { relation: table_with_joins.relation.clone(), joins: before.to_vec() };
                TableFactor::NestedJoin { table_with_joins: Box::new(inner), alias: None }
            }
        };
        let (left, right) = (context.plan(left)?, context.plan(join.relation.clone())?);
        let plan = plan_join(left, right, join, context)?;
        Ok(RelationPlanning::Planned(Box::new(PlannedRelation::new(plan, alias.clone()))))
    }
}

/// The conditions of a join as they are written.
struct Written {
    conditions: Vec<ast::Expr>,
    using: Vec<ObjectName>,
    keeps_left: bool,
}

/// # Errors
/// If it is no join that this planner knows.
fn written(join: &Join) -> Result<Written> {
    let (constraint, comparison, keeps_left) = match &join.join_operator {
        // In Snowflake, rows without a match stay.
        JoinOperator::AsOf { match_condition, constraint } => (constraint, Some(match_condition.clone()), true),
        JoinOperator::Join(constraint) | JoinOperator::Inner(constraint) => (constraint, None, false),
        JoinOperator::Left(constraint) | JoinOperator::LeftOuter(constraint) => (constraint, None, true),
        _ => return plan_err!("an ASOF join is an ASOF JOIN or an ASOF LEFT JOIN; write the sides in the other order"),
    };
    let mut conditions: Vec<ast::Expr> = comparison.into_iter().collect();
    match constraint {
        JoinConstraint::On(condition) => {
            conditions.push(condition.clone());
            Ok(Written { conditions, using: Vec::new(), keeps_left })
        }
        JoinConstraint::Using(using) => Ok(Written { conditions, using: using.clone(), keeps_left }),
        JoinConstraint::None => Ok(Written { conditions, using: Vec::new(), keeps_left }),
        JoinConstraint::Natural => plan_err!("an ASOF join needs ON or USING, not NATURAL"),
    }
}

fn plan_join(
    left: LogicalPlan,
    right: LogicalPlan,
    join: &Join,
    context: &mut dyn RelationPlannerContext,
) -> Result<LogicalPlan> {
    let Written { conditions, using, keeps_left } = written(join)?;
    let both = left.schema().join(right.schema())?;
    let (mut keys, mut comparison) = (Vec::new(), None);

    for condition in &conditions {
        let condition = context.sql_to_expr(condition.clone(), &both)?;
        for condition in split_conjunction_owned(condition) {
            let (left_side, op, right_side) = sides(condition, &left, &right)?;
            match op {
                Operator::Eq => keys.push((left_side, right_side)),
                _ if comparison.is_none() => comparison = Some((left_side, op, right_side)),
                _ => return plan_err!("an ASOF join compares times once; filter its rows in WHERE"),
            }
        }
    }
    let shared = using.iter().map(column_name).collect::<Result<Vec<String>>>()?;
    for name in &shared {
        keys.push((column(&left, name)?, column(&right, name)?));
    }
    if comparison.is_none() && !shared.is_empty() {
        comparison = keys.pop().map(|(left, right)| (left, Operator::GtEq, right));
    }

    let Some((left_time, op, right_time)) = comparison else {
        return plan_err!(
            "an ASOF join needs a comparison of times, as in ON a.k = b.k AND a.ts >= b.ts, or the time last in USING (k, ts)"
        );
    };
    let keys = keys.into_iter().map(|pair| comparable(pair, &left, &right)).collect::<Result<Vec<_>>>()?;
    let times = comparable((left_time, right_time), &left, &right)?;
    let shared = shared.iter().map(|name| column(&right, name)).collect::<Result<Vec<Expr>>>()?;
    let node = AsOfJoin::try_new(left, right, keys, times, op, keeps_left)?;
    let plan = LogicalPlan::Extension(Extension { node: Arc::new(node) });

    // Columns of USING are there once.
    if shared.is_empty() {
        return Ok(plan);
    }
    let columns: Vec<Expr> = plan.schema().iter().map(|field| Expr::Column(Column::from(field))).collect();
    let kept: Vec<Expr> = columns.into_iter().filter(|column| !shared.contains(column)).collect();
    LogicalPlanBuilder::from(plan).project(kept)?.build()
}

fn column_name(name: &ObjectName) -> Result<String> {
    match name.0.as_slice() {
        [ast::ObjectNamePart::Identifier(name)] => Ok(name.value.clone()),
        _ => plan_err!("USING takes names of columns, not {name}"),
    }
}

/// The column of a side with this name.
fn column(side: &LogicalPlan, name: &str) -> Result<Expr> {
    let (table, field) = side.schema().qualified_field_with_unqualified_name(name)?;
    Ok(Expr::Column(Column::from((table, field))))
}

/// Whether all columns of `expr` are in `schema`, and there is one.
fn is_of(expr: &Expr, schema: &DFSchema) -> bool {
    let columns = expr.column_refs();
    !columns.is_empty() && columns.iter().all(|column| schema.has_column(column))
}

/// Divides a condition into an expression of the left side, an operator and an expression of the right side.
fn sides(condition: Expr, left: &LogicalPlan, right: &LogicalPlan) -> Result<(Expr, Operator, Expr)> {
    if let Expr::BinaryExpr(BinaryExpr { left: first, op, right: second }) = &condition
        && matches!(op, Operator::Eq | Operator::GtEq | Operator::Gt | Operator::LtEq | Operator::Lt)
    {
        if is_of(first, left.schema()) && is_of(second, right.schema()) {
            return Ok((first.as_ref().clone(), *op, second.as_ref().clone()));
        }
        if is_of(first, right.schema())
            && is_of(second, left.schema())
            && let Some(op) = op.swap()
        {
            return Ok((second.as_ref().clone(), op, first.as_ref().clone()));
        }
    }
    plan_err!(
        "an ASOF join takes equalities and one comparison (>=, >, <=, <) between its sides, not {condition}; filter rows in \
         WHERE or in a subquery"
    )
}

/// Casts both to one type; floats so that both zeros are equal.
fn comparable(pair: (Expr, Expr), left: &LogicalPlan, right: &LogicalPlan) -> Result<(Expr, Expr)> {
    let (left_type, right_type) = (pair.0.get_type(left.schema())?, pair.1.get_type(right.schema())?);
    let Some(kind) = comparison_coercion(&left_type, &right_type) else {
        return plan_err!(
            "an ASOF join cannot compare {left_type} with {right_type}; cast one of {} and {}",
            pair.0,
            pair.1
        );
    };
    let as_kind = |expr: Expr, of: &arrow::datatypes::DataType| {
        let expr = if *of == kind { expr } else { cast(expr, kind.clone()) };
        if kind.is_floating() { expr + lit(0.0) } else { expr }
    };
    Ok((as_kind(pair.0, &left_type), as_kind(pair.1, &right_type)))
}
