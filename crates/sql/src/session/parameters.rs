//! Named parameters of GoogleSQL: `@name` in a query.
//!
//! Values are put into the syntax tree, so that they have their types wherever expressions are planned, also in options of views.

use std::ops::ControlFlow;

use arrow::array::Array;
use arrow::datatypes::DataType;
use datafusion::common::plan_err;
use datafusion::error::{DataFusionError, Result};
use datafusion::scalar::ScalarValue;
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{
    self, ArrayElemTypeDef, CastKind, Expr, TimezoneInfo, UnaryOperator, Value, VisitMut, VisitorMut,
};
use tidetable_layout::cell::ColumnText;

use crate::syntax::rewrite::syntax::call;
use crate::syntax::statement::{inner, prefix_range};

/// Replaces parameters by values. `value IN UNNEST(@list)` becomes a list of values, which can select row keys.
///
/// # Errors
/// If a parameter of the statement is not in `values`, or has a type that it cannot have.
pub(crate) fn replace_parameters(statement: &mut Statement, values: &[(String, ScalarValue)]) -> Result<()> {
    let Some(statement) = inner(statement) else { return Ok(()) };
    match statement.visit(&mut Parameters(values)) {
        ControlFlow::Break(error) => Err(error),
        ControlFlow::Continue(()) => Ok(()),
    }
}

/// The name that a parameter has in the query, without its `@`.
fn name_of(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::Identifier(name) if name.quote_style.is_none() => name.value.strip_prefix('@'),
        _ => None,
    }
}

struct Parameters<'a>(&'a [(String, ScalarValue)]);

impl Parameters<'_> {
    /// The value of a parameter; `None` if the expression is none.
    fn value(&self, expr: &Expr) -> Result<Option<&ScalarValue>> {
        let Some(name) = name_of(expr) else { return Ok(None) };
        match self.0.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)) {
            Some((_, value)) => Ok(Some(value)),
            None => plan_err!("the query has a parameter @{name}, which has no type and no value"),
        }
    }

    fn replaced(&self, expr: &mut Expr) -> Result<()> {
        if let Expr::InUnnest { expr: value, array_expr, negated } = expr {
            let (value, negated) = (value.clone(), *negated);
            *expr = match self.value(array_expr)? {
                Some(list) => in_list(value, items(list)?, negated),
                None => {
                    let contains = call("array_has", vec![array_expr.as_ref().clone(), *value]);
                    if negated { Expr::UnaryOp { op: UnaryOperator::Not, expr: Box::new(contains) } } else { contains }
                }
            };
        } else if let Some(value) = self.value(expr)? {
            *expr = literal(value)?;
        }
        Ok(())
    }
}

impl VisitorMut for Parameters<'_> {
    type Break = DataFusionError;

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<DataFusionError> {
        match self.replaced(expr) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => ControlFlow::Break(error),
        }
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<DataFusionError> {
        if let Expr::Function(function) = expr
            && let Some(range) = prefix_range(function)
        {
            *expr = range;
        }
        ControlFlow::Continue(())
    }
}

fn in_list(expr: Box<Expr>, list: Vec<Expr>, negated: bool) -> Expr {
    // Nothing is in an empty list.
    if list.is_empty() { value(Value::Boolean(negated)) } else { Expr::InList { expr, list, negated } }
}

/// The items of a list, each as an expression.
fn items(list: &ScalarValue) -> Result<Vec<Expr>> {
    let ScalarValue::List(list) = list else { return plan_err!("UNNEST takes an array") };
    if list.is_null(0) {
        return Ok(Vec::new());
    }
    let items = list.value(0);
    (0..items.len()).map(|at| literal(&ScalarValue::try_from_array(&items, at)?)).collect()
}

fn value(value: Value) -> Expr {
    Expr::Value(value.with_empty_span())
}

fn cast(expr: Expr, data_type: ast::DataType) -> Expr {
    Expr::Cast { kind: CastKind::Cast, expr: Box::new(expr), data_type, array: false, format: None }
}

/// A value as an expression of its type, so that it can stand in the text of a query.
fn literal(scalar: &ScalarValue) -> Result<Expr> {
    let kind = type_of(&scalar.data_type())?;
    if scalar.is_null() {
        return Ok(cast(value(Value::Null), kind));
    }

    Ok(match scalar {
        ScalarValue::Binary(Some(bytes)) => value(Value::HexStringLiteral(hex::encode(bytes))),
        ScalarValue::Utf8(Some(text)) => value(Value::SingleQuotedString(text.clone())),
        ScalarValue::Boolean(Some(is_true)) => value(Value::Boolean(*is_true)),
        ScalarValue::List(_) => cast(call("make_array", items(scalar)?), kind),
        ScalarValue::Float64(Some(number)) => cast(value(Value::SingleQuotedString(number.to_string())), kind),
        ScalarValue::Float32(Some(number)) => cast(value(Value::SingleQuotedString(number.to_string())), kind),
        scalar => {
            let array = scalar.to_array()?;
            let mut text = Vec::new();
            if let Some(mut of) = ColumnText::new(array.as_ref()) {
                of.write(0, &mut text);
            }
            cast(value(Value::SingleQuotedString(String::from_utf8_lossy(&text).into_owned())), kind)
        }
    })
}

fn type_of(kind: &DataType) -> Result<ast::DataType> {
    Ok(match kind {
        DataType::Binary => ast::DataType::Bytes(None),
        DataType::Utf8 => ast::DataType::String(None),
        DataType::Int64 => ast::DataType::Int64,
        DataType::Float64 => ast::DataType::Float64,
        DataType::Float32 => ast::DataType::Real,
        DataType::Boolean => ast::DataType::Boolean,
        DataType::Date32 => ast::DataType::Date,
        DataType::Timestamp(..) => ast::DataType::Timestamp(None, TimezoneInfo::WithTimeZone),
        DataType::List(item) => {
            ast::DataType::Array(ArrayElemTypeDef::AngleBracket(Box::new(type_of(item.data_type())?)))
        }
        kind => return plan_err!("a parameter cannot have the type {kind}"),
    })
}
