//! What users of DuckDB write, as what DataFusion plans: functions, `PIVOT`, `UNPIVOT`, `SEMI JOIN`.
//!
//! Functions are replaced where the session has none of that name: those of DataFusion keep their meaning. What has no form here is
//! told by [`crate::advice`].

mod functions;
mod pivot;

use std::ops::ControlFlow;

use datafusion::error::{DataFusionError, Result};
use datafusion::execution::SessionState;
use datafusion::sql::sqlparser::ast::{
    Expr, JoinOperator, OrderByExpr, OrderByKind, Query, Select, SelectItem, SetExpr, Statement, TableFactor,
    TableWithJoins, VisitMut, VisitorMut,
};

use crate::syntax::rewrite::syntax::number;

/// Replaces the forms of DuckDB in a statement.
///
/// # Errors
/// If a `PIVOT` does not say its columns.
pub(crate) fn replace_duckdb(state: &SessionState, statement: &mut Statement) -> Result<()> {
    match statement.visit(&mut DuckDb { state }) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(error) => Err(error),
    }
}

struct DuckDb<'a> {
    state: &'a SessionState,
}

impl VisitorMut for DuckDb<'_> {
    type Break = DataFusionError;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<DataFusionError> {
        number_order(query);
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<DataFusionError> {
        select.from.iter_mut().for_each(name_sides);
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, relation: &mut TableFactor) -> ControlFlow<DataFusionError> {
        if let TableFactor::NestedJoin { table_with_joins, .. } = relation {
            name_sides(table_with_joins);
        }
        ControlFlow::Continue(())
    }

    fn post_visit_table_factor(&mut self, relation: &mut TableFactor) -> ControlFlow<DataFusionError> {
        match pivot::derived(relation) {
            Ok(Some(derived)) => *relation = derived,
            Ok(None) => {}
            Err(error) => return ControlFlow::Break(error),
        }
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<DataFusionError> {
        if let Expr::Function(function) = expr
            && let Some(replaced) = functions::replaced(self.state, function)
        {
            *expr = replaced;
        }
        ControlFlow::Continue(())
    }
}

/// `ORDER BY ALL` as the places of the columns, where the query names them: DataFusion orders by columns alone.
fn number_order(query: &mut Query) {
    let (SetExpr::Select(select), Some(order)) = (query.body.as_ref(), &mut query.order_by) else { return };
    let OrderByKind::All(options) = order.kind else { return };
    let is_named = |item: &SelectItem| matches!(item, SelectItem::UnnamedExpr(_) | SelectItem::ExprWithAlias { .. });
    if select.projection.is_empty() || !select.projection.iter().all(is_named) {
        return;
    }

    let places =
        (1..=select.projection.len()).map(|place| OrderByExpr { expr: number(place as i64), options, with_fill: None });
    order.kind = OrderByKind::Expressions(places.collect());
}

/// `SEMI JOIN` and `ANTI JOIN` keep rows of the left side.
fn name_sides(tables: &mut TableWithJoins) {
    for join in &mut tables.joins {
        match &mut join.join_operator {
            JoinOperator::Semi(condition) => join.join_operator = JoinOperator::LeftSemi(condition.clone()),
            JoinOperator::Anti(condition) => join.join_operator = JoinOperator::LeftAnti(condition.clone()),
            _ => {}
        }
    }
}
