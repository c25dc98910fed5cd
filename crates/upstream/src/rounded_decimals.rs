//! Keeps the type of `round(decimal, places)` while a query is planned; row "Rounded decimals" of
//! `docs/datafusion-workarounds.md`.
//!
//! The scale of the result follows from `places` if that is a literal. Coercion of DataFusion 55.2 makes it a cast of a literal, so
//! that comparisons are coerced to another scale, and later rules make it a literal again: the comparison of decimals of different
//! scales fails when the query runs.

use datafusion::common::tree_node::Transformed;
use datafusion::logical_expr::Expr;
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::optimizer::simplify_expressions::ExprSimplifier;

/// `expr`, a coerced expression; the places of a `round` become a literal, if they are constant.
pub(crate) fn with_literal_places(mut expr: Expr) -> Transformed<Expr> {
    let Expr::ScalarFunction(function) = &mut expr else { return Transformed::no(expr) };
    let is_round = function.name() == "round";
    let Some(places) = function.args.get_mut(1).filter(|_| is_round) else { return Transformed::no(expr) };
    if matches!(places, Expr::Literal(..)) || !places.column_refs().is_empty() || places.contains_outer() {
        return Transformed::no(expr);
    }
    match ExprSimplifier::new(SimplifyContext::default()).simplify(places.clone()) {
        Ok(literal @ Expr::Literal(..)) => {
            *places = literal;
            Transformed::yes(expr)
        }
        _ => Transformed::no(expr),
    }
}
