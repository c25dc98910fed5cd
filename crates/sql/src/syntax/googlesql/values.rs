//! Expressions that have another meaning, or another type, in GoogleSQL.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    self, BinaryOperator, CastKind, Expr, TrimWhereField, TypedString, UnaryOperator, Value, VisitorMut,
};

use crate::syntax::rewrite::syntax::{call, take};

/// Rewrites operators and casts of GoogleSQL, before its functions.
pub(crate) struct GoogleValues;

impl VisitorMut for GoogleValues {
    type Break = ();

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        let replaced = match expr {
            // Always a float.
            Expr::BinaryOp { left, op: BinaryOperator::Divide, right } => {
                Some(call("google_divide", vec![take(left), take(right)]))
            }
            // Of bits, where PostgreSQL has the power.
            Expr::BinaryOp { left, op: BinaryOperator::BitwiseXor, right } => {
                Some(call("xor", vec![take(left), take(right)]))
            }
            Expr::UnaryOp { op: UnaryOperator::BitwiseNot, expr: value } => {
                let ones = Expr::Value(Value::Number("-1".to_owned(), false).with_empty_span());
                Some(call("xor", vec![take(value), ones]))
            }
            Expr::Substring { expr: value, substring_from, substring_for, .. } => {
                let mut args = vec![take(value)];
                args.extend(substring_from.as_deref_mut().map(take));
                args.extend(substring_for.as_deref_mut().map(take));
                Some(call("google_substr", args))
            }
            Expr::Trim { expr: value, trim_where, trim_what, trim_characters } => {
                let name = match trim_where {
                    Some(TrimWhereField::Leading) => "google_ltrim",
                    Some(TrimWhereField::Trailing) => "google_rtrim",
                    _ => "google_trim",
                };
                let mut args = vec![take(value)];
                args.extend(trim_what.as_deref_mut().map(take));
                args.extend(trim_characters.iter_mut().flatten().map(take));
                Some(call(name, args))
            }
            Expr::Cast { kind, expr: value, data_type, format: None, .. } => cast(kind, value, data_type),
            // An instant, as all times of GoogleSQL for Bigtable are.
            Expr::TypedString(TypedString { data_type: ast::DataType::Timestamp(..), value, .. }) => {
                Some(call("google_timestamp", vec![Expr::Value(value.clone())]))
            }
            _ => None,
        };
        if let Some(replaced) = replaced {
            *expr = replaced;
        }
        ControlFlow::Continue(())
    }
}

/// A cast that converts differently from DataFusion's; `None` for others.
fn cast(kind: &CastKind, value: &mut Expr, data_type: &ast::DataType) -> Option<Expr> {
    let name = match data_type {
        ast::DataType::String(_) => "string",
        ast::DataType::Int64 => "cast_int64",
        ast::DataType::Timestamp(..) => "timestamp",
        _ => return None,
    };
    // A null is of the type that it is cast to.
    let is_null = matches!(value, Expr::Value(value) if value.value == Value::Null);
    let is_safe = matches!(kind, CastKind::SafeCast | CastKind::TryCast);
    let prefix = if is_safe { "google_safe_prefix" } else { "google" };
    (!is_null).then(|| call(&format!("{prefix}_{name}"), vec![take(value)]))
}
