//! Rewrites subqueries to joins; rows "Subqueries" of `docs/datafusion-workarounds.md`.
//!
//! DataFusion 55.2 moves the correlated filters of a subquery into a join. That is right for filters below projections
//! and inner joins, and those subqueries are left to it ([`kept`]). Elsewhere it gives wrong rows or refuses the query.
//!
//! Here, a subquery is evaluated once for each distinct combination of the outer values that it uses (its *domain*), and
//! joined to the outer rows by these values, where nulls are equal. The domain is moved down the subquery to the nodes
//! that use the outer values ([`dependent`]). After T. Neumann, A. Kemper, "Unnesting Arbitrary Queries" (BTW 2015).
//! `IN`, `ANY` and `ALL` are computed from the matching value and from counts and extremes of the subquery's values
//! ([`predicates`]), so that they are null exactly where three-valued logic has no answer.

mod dependent;
mod domain;
mod expressions;
mod kept;
mod predicates;

use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, NullEquality, Result, plan_err};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::{conjunction, split_conjunction_owned};
use datafusion::logical_expr::{Expr, Filter, Join, JoinConstraint, JoinType, LogicalPlan, Projection, lit};
use datafusion::optimizer::AnalyzerRule;
use tidetable_functions::check_abandoned;

use self::domain::Outer;
use self::expressions::{has_subqueries, has_subquery, node_has_subqueries, subquery_mut, with_plan};

/// Rewrites subqueries that DataFusion answers wrongly or not at all.
#[derive(Debug)]
pub(crate) struct Subqueries;

impl AnalyzerRule for Subqueries {
    fn name(&self) -> &str {
        "subqueries"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        if !has_subqueries(&plan)? {
            return Ok(plan);
        }
        Unnesting::default().plan(plan)
    }
}

/// Rewrites the subqueries of one statement.
#[derive(Debug, Default)]
struct Unnesting {
    /// The number of names that were given so far.
    names: usize,
}

/// The outer rows of an expression, to which the results of its subqueries are joined.
struct OuterRows {
    /// The rows alone, without results of subqueries.
    base: LogicalPlan,
    /// The rows, joined with the results of subqueries.
    joined: LogicalPlan,
}

impl OuterRows {
    fn new(plan: LogicalPlan) -> Self {
        Self { base: plan.clone(), joined: plan }
    }
}

impl Unnesting {
    /// A number for the next name, so that names differ in a statement.
    fn next(&mut self) -> usize {
        self.names += 1;
        self.names
    }

    /// Rewrites `plan` bottom-up: inputs before the nodes above them.
    fn plan(&mut self, plan: LogicalPlan) -> Result<LogicalPlan> {
        check_abandoned()?;
        let plan = plan.map_children(|child| self.plan(child).map(Transformed::yes))?.data;
        let plan = match node_has_subqueries(&plan)? {
            true => plan.map_expressions(|expr| expr.transform_up(|expr| self.inside(expr)))?.data,
            false => plan,
        };
        let plan = plan.recompute_schema()?;
        match plan {
            LogicalPlan::Join(join) => self.join(join),
            plan if !node_has_subqueries(&plan)? => Ok(plan),
            LogicalPlan::Filter(filter) => self.filter(filter),
            LogicalPlan::Projection(projection) => {
                if projection.expr.iter().all(|expr| kept::value(expr, projection.input.schema())) {
                    return Ok(LogicalPlan::Projection(projection));
                }
                self.node(LogicalPlan::Projection(projection))
            }
            plan @ (LogicalPlan::Aggregate(_) | LogicalPlan::Window(_)) => self.node(plan),
            plan => Ok(plan),
        }
    }

    /// Rewrites the plan of the subquery that `expr` is.
    fn inside(&mut self, mut expr: Expr) -> Result<Transformed<Expr>> {
        let Some(subquery) = subquery_mut(&mut expr) else { return Ok(Transformed::no(expr)) };
        let plan = self.plan(subquery.subquery.as_ref().clone())?;
        *subquery = with_plan(subquery, plan);
        Ok(Transformed::yes(expr))
    }

    fn filter(&mut self, filter: Filter) -> Result<LogicalPlan> {
        let columns: Vec<Expr> = filter.input.schema().columns().into_iter().map(Expr::Column).collect();
        let conjuncts = split_conjunction_owned(filter.predicate);
        let (plain, nested): (Vec<Expr>, Vec<Expr>) = conjuncts.into_iter().partition(|expr| !has_subquery(expr));
        let (kept, nested): (Vec<Expr>, Vec<Expr>) =
            nested.into_iter().partition(|expr| kept::condition(expr, filter.input.schema()));
        let mut input = Arc::unwrap_or_clone(filter.input);

        if nested.is_empty() {
            return filtered(input, plain.into_iter().chain(kept).collect());
        }

        // Below the joins, so that fewer outer values are used.
        input = filtered(input, plain)?;
        let mut rows = OuterRows::new(input);
        let mut conditions = kept;
        for expr in nested {
            conditions.push(self.condition(expr, &mut rows)?);
        }
        let plan = filtered(rows.joined, conditions)?;
        Projection::try_new(columns, Arc::new(plan)).map(LogicalPlan::Projection)
    }

    /// Rewrites the expressions of a node with one input.
    fn node(&mut self, plan: LogicalPlan) -> Result<LogicalPlan> {
        let [input] = plan.inputs()[..] else { return Ok(plan) };
        let mut rows = OuterRows::new(input.clone());
        let names = NamePreserver::new(&plan);
        let expressions = plan.expressions().into_iter().map(|expr| {
            let name = names.save(&expr);
            Ok(name.restore(self.expression(expr, &mut rows)?))
        });
        let expressions = expressions.collect::<Result<Vec<_>>>()?;

        if let LogicalPlan::Window(_) = plan {
            // A window passes on the columns of its input, here also those of the joins.
            let columns = plan.schema().columns().into_iter().map(Expr::Column).collect();
            let plan = plan.with_new_exprs(expressions, vec![rows.joined])?;
            return Projection::try_new(columns, Arc::new(plan)).map(LogicalPlan::Projection);
        }
        plan.with_new_exprs(expressions, vec![rows.joined])
    }

    /// Rewrites the right side of a lateral join, and subqueries in the condition of a join.
    fn join(&mut self, mut join: Join) -> Result<LogicalPlan> {
        join = self.with_conditions_as_filters(join)?;
        let on_subqueries = join.filter.take_if(|filter| has_subquery(filter));
        let plan = self.lateral(join)?;
        match on_subqueries {
            None => Ok(plan),
            Some(condition) => self.filter(Filter::try_new(condition, Arc::new(plan))?),
        }
    }

    /// Moves conditions that contain subqueries to the side of an outer join that they are about.
    fn with_conditions_as_filters(&mut self, mut join: Join) -> Result<Join> {
        let has_subqueries = join.filter.as_ref().is_some_and(has_subquery);
        if !has_subqueries || join.join_type == JoinType::Inner {
            return Ok(join);
        }

        let (nested, plain): (Vec<Expr>, Vec<Expr>) =
            join.filter.take().map(split_conjunction_owned).unwrap_or_default().into_iter().partition(has_subquery);
        join.filter = conjunction(plain);
        let side = match join.join_type {
            JoinType::Left | JoinType::LeftSemi | JoinType::LeftAnti | JoinType::LeftMark => &mut join.right,
            JoinType::Right | JoinType::RightSemi | JoinType::RightAnti | JoinType::RightMark => &mut join.left,
            JoinType::Inner | JoinType::Full => {
                return plan_err!(
                    "a FULL JOIN cannot have a subquery in its ON; compute its value in a subquery of FROM first"
                );
            }
        };

        for expr in &nested {
            if !domain::columns_of(expr)?.iter().all(|column| side.schema().has_column(column)) {
                return plan_err!(
                    "the subquery in the ON of an outer join uses both sides; compute its value in a subquery of FROM first"
                );
            }
        }

        let input = Arc::unwrap_or_clone(std::mem::take(side));
        if let Some(condition) = conjunction(nested) {
            *side = Arc::new(self.filter(Filter::try_new(condition, Arc::new(input))?)?);
        }

        let Join { left, right, on, filter, join_type, join_constraint, null_equality, null_aware, .. } = join;
        Join::try_new(left, right, on, filter, join_type, join_constraint, null_equality, null_aware)
    }

    /// Joins a side that uses columns of the other by the values that it uses.
    fn lateral(&mut self, join: Join) -> Result<LogicalPlan> {
        let is_lateral = join.right.exists(|plan| Ok(matches!(plan, LogicalPlan::Subquery(_))))?;
        if !is_lateral || !matches!(join.join_type, JoinType::Inner | JoinType::Left) {
            return Ok(LogicalPlan::Join(join));
        }
        let outer = Outer::of(&join.right, join.left.schema())?;
        if outer.is_empty() {
            return Ok(LogicalPlan::Join(join));
        }

        let columns: Vec<Expr> = join.schema.columns().into_iter().map(Expr::Column).collect();
        let right = self.dependent(Arc::unwrap_or_clone(join.right), &outer, &join.left)?;
        let on = outer.on(right.keys)?;
        let null_equality = NullEquality::NullEqualsNull;
        let left = join.left;
        let joined = Join::try_new(
            left,
            Arc::new(right.plan),
            on,
            join.filter,
            join.join_type,
            JoinConstraint::On,
            null_equality,
            false,
        )?;
        Projection::try_new(columns, Arc::new(LogicalPlan::Join(joined))).map(LogicalPlan::Projection)
    }
}

/// Filters `plan` by all of `conditions`, if there are any.
fn filtered(plan: LogicalPlan, conditions: Vec<Expr>) -> Result<LogicalPlan> {
    match conjunction(conditions) {
        Some(condition) => Filter::try_new(condition, Arc::new(plan)).map(LogicalPlan::Filter),
        None => Ok(plan),
    }
}

/// Joins `right` to each row of `left`, whose columns may be null where none matches.
fn left_join(left: LogicalPlan, right: LogicalPlan, on: Vec<(Expr, Expr)>) -> Result<LogicalPlan> {
    let filter = on.is_empty().then(|| lit(true));
    let (left, right) = (Arc::new(left), Arc::new(right));
    let (constraint, nulls) = (JoinConstraint::On, NullEquality::NullEqualsNull);
    Join::try_new(left, right, on, filter, JoinType::Left, constraint, nulls, false).map(LogicalPlan::Join)
}

fn column(name: impl Into<String>, table: impl Into<String>) -> Expr {
    Expr::Column(Column::new(Some(table.into()), name.into()))
}
