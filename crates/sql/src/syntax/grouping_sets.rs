//! Bounds the grouping sets of a statement before it is planned: `CUBE` of `n` expressions has `2^n`, and the planner writes down
//! each of them before it counts.

use std::ops::ControlFlow;

use datafusion::error::Result;
use datafusion::sql::sqlparser::ast::{self, Expr, GroupByExpr, GroupByWithModifier, Select, Visit, Visitor};

use crate::error::{SqlError, external};

/// The most grouping sets that a `SELECT` may have.
const MAX_GROUPING_SETS: usize = 4096;

/// Refuses a statement with more grouping sets than can be planned.
///
/// # Errors
/// [`SqlError::TooManyGroupingSets`].
pub(crate) fn check_grouping_sets(statement: &ast::Statement) -> Result<()> {
    match statement.visit(&mut Bound) {
        ControlFlow::Break(()) => Err(external(SqlError::TooManyGroupingSets { limit: MAX_GROUPING_SETS })),
        ControlFlow::Continue(()) => Ok(()),
    }
}

struct Bound;

impl Visitor for Bound {
    type Break = ();

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<()> {
        let GroupByExpr::Expressions(expressions, modifiers) = &select.group_by else {
            return ControlFlow::Continue(());
        };
        let of_modifiers = modifiers.iter().map(|modifier| of_modifier(modifier, expressions.len()));
        let sets = expressions.iter().map(of_expression).chain(of_modifiers).fold(1, usize::saturating_mul);
        if sets > MAX_GROUPING_SETS { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

/// The grouping sets of an expression of `GROUP BY`.
fn of_expression(expression: &Expr) -> usize {
    match expression {
        Expr::Cube(parts) => subsets(parts.len()),
        Expr::Rollup(parts) => parts.len() + 1,
        Expr::GroupingSets(sets) => sets.len(),
        _ => 1,
    }
}

/// Those of `GROUP BY a, b WITH CUBE`.
fn of_modifier(modifier: &GroupByWithModifier, expressions: usize) -> usize {
    match modifier {
        GroupByWithModifier::Cube => subsets(expressions),
        GroupByWithModifier::Rollup => expressions + 1,
        GroupByWithModifier::GroupingSets(sets) => of_expression(sets),
        GroupByWithModifier::Totals => 1,
    }
}

fn subsets(count: usize) -> usize {
    u32::try_from(count).ok().and_then(|count| 1usize.checked_shl(count)).unwrap_or(usize::MAX)
}
