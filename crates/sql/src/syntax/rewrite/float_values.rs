//! Types of `VALUES` that mix floats and decimals: floats, as where both meet elsewhere. DataFusion 55.2 makes both
//! decimals of 15 fractional digits when it plans the statement: `VALUES (1e-20), (0.5)` starts with 0.

use std::ops::ControlFlow;

use arrow::datatypes::DataType;
use datafusion::common::DFSchema;
use datafusion::execution::SessionState;
use datafusion::logical_expr::ExprSchemable;
use datafusion::sql::sqlparser::ast::{
    self, CastKind, Expr, ExprWithAlias, Query, SetExpr, UnaryOperator, Value, ValueWithSpan, Values, VisitorMut,
};

use crate::syntax::rewrite::syntax::take;

/// Casts decimals of `VALUES` to floats where their column has a float.
pub(crate) struct FloatValues<'a> {
    pub(crate) state: &'a SessionState,
}

impl VisitorMut for FloatValues<'_> {
    type Break = ();

    fn post_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        self.set(&mut query.body);
        ControlFlow::Continue(())
    }
}

impl FloatValues<'_> {
    fn set(&self, set: &mut SetExpr) {
        match set {
            SetExpr::Values(values) => self.values(values),
            SetExpr::SetOperation { left, right, .. } => {
                self.set(left);
                self.set(right);
            }
            _ => {}
        }
    }

    fn values(&self, values: &mut Values) {
        let width = values.rows.iter().map(|row| row.content.len()).min().unwrap_or(0);
        for column in 0..width {
            let cells = || values.rows.iter().filter_map(|row| row.content.get(column));
            // Numbers alone are integers and decimals.
            if cells().all(is_literal) || !cells().any(|cell| self.kind(cell).is_some_and(|kind| kind.is_floating())) {
                continue;
            }
            for cell in values.rows.iter_mut().filter_map(|row| row.content.get_mut(column)) {
                if self.kind(cell).is_some_and(|kind| kind.is_decimal()) {
                    *cell = as_double(take(cell));
                }
            }
        }
    }

    /// The type of an expression, if it uses no columns.
    fn kind(&self, expr: &Expr) -> Option<DataType> {
        let columns = DFSchema::empty();
        let expr = ExprWithAlias { expr: expr.clone(), alias: None };
        let planned = self.state.create_logical_expr_from_sql_expr(expr, &columns).ok()?;
        planned.get_type(&columns).ok()
    }
}

fn is_literal(expr: &Expr) -> bool {
    match expr {
        Expr::Value(ValueWithSpan { value, .. }) => !matches!(value, Value::Placeholder(_)),
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } => is_literal(expr),
        _ => false,
    }
}

/// The same expression, cast to a 64-bit float.
pub(crate) fn as_double(expr: Expr) -> Expr {
    let (kind, data_type) = (CastKind::Cast, ast::DataType::DoublePrecision);
    Expr::Cast { kind, expr: Box::new(expr), data_type, array: false, format: None }
}
