//! Parameters of a query: `@name`, as in GoogleSQL, and `$1`, as in PostgreSQL.
//!
//! Values are put into the syntax tree, so that they have their types wherever expressions are planned, also in options of views.

use std::ops::ControlFlow;

use arrow::array::Array;
use arrow::datatypes::{DataType, IntervalMonthDayNano, IntervalUnit};
use datafusion::common::plan_err;
use datafusion::error::{DataFusionError, Result};
use datafusion::scalar::ScalarValue;
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{
    self, ArrayElemTypeDef, BinaryOperator, CastKind, ExactNumberInfo, Expr, FunctionArg, FunctionArgExpr,
    FunctionArguments, TimezoneInfo, UnaryOperator, Value, ValueWithSpan, VisitMut, VisitorMut,
};
use tidetable_functions::COMPARABLE_WITH;
use tidetable_layout::cell::ColumnText;

use crate::error::{SqlError, external};
use crate::syntax::rewrite::syntax::call;
use crate::syntax::statement::{inner, prefix_range};

/// The most parameters that a statement may have: as many as a message of PostgreSQL's protocol can give values to.
const MAX_PARAMETERS: usize = 65_535;
/// Digits of a number that an error shows.
const SHOWN_DIGITS: usize = 20;

/// Replaces parameters by values. `value IN UNNEST(@list)` becomes a list of values, which can select row keys.
///
/// # Errors
/// If a parameter of the statement is not in `values`, or has a type that it cannot have.
pub(crate) fn replace_parameters(statement: &mut Statement, values: &[(String, ScalarValue)]) -> Result<()> {
    replace(statement, &Values::Named(values))
}

/// Replaces the parameters `$1`, `$2`, .. by the values at those places, counted from 1. Those without a value stay.
///
/// # Errors
/// If a value has a type that parameters cannot have.
pub(crate) fn replace_numbered(statement: &mut Statement, values: &[Option<ScalarValue>]) -> Result<()> {
    replace(statement, &Values::Numbered(values))
}

fn replace(statement: &mut Statement, values: &Values<'_>) -> Result<()> {
    let Some(statement) = inner(statement) else { return Ok(()) };
    match statement.visit(&mut Parameters(values)) {
        ControlFlow::Break(error) => Err(error),
        ControlFlow::Continue(()) => Ok(()),
    }
}

/// The largest number of a parameter `$1`, `$2`, .. of a statement; 0 if it has none.
///
/// # Errors
/// [`SqlError::NoParameter`] if a number is not one from 1 to [`MAX_PARAMETERS`]: callers make a list of that length.
pub(crate) fn numbered_parameters(statement: &mut Statement) -> Result<usize> {
    let mut largest = Largest(0);
    let Some(statement) = inner(statement) else { return Ok(0) };
    match statement.visit(&mut largest) {
        ControlFlow::Continue(()) => Ok(largest.0),
        ControlFlow::Break(error) => Err(error),
    }
}

/// Finds the largest number of a parameter.
struct Largest(usize);

impl VisitorMut for Largest {
    type Break = DataFusionError;

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<DataFusionError> {
        let Some(digits) = digits_of(expr) else { return ControlFlow::Continue(()) };
        match digits.parse() {
            Ok(number) if (1..=MAX_PARAMETERS).contains(&number) => {
                self.0 = self.0.max(number);
                ControlFlow::Continue(())
            }
            _ => {
                let name = format!("${}", digits.get(..digits.len().min(SHOWN_DIGITS)).unwrap_or_default());
                let problem = "their numbers are from 1 to 65535";
                ControlFlow::Break(external(SqlError::NoParameter { name, problem }))
            }
        }
    }
}

/// The numbers of the parameters that a statement takes for lists: those of `x = ANY ($1)`, `x <> ALL ($1)` and `$1::text[]`.
pub(crate) fn list_parameters(statement: &mut Statement) -> Vec<usize> {
    let mut lists = Lists(Vec::new());
    if let Some(statement) = inner(statement) {
        let _: ControlFlow<()> = statement.visit(&mut lists);
    }
    lists.0
}

/// Finds the parameters that are lists.
struct Lists(Vec<usize>);

impl VisitorMut for Lists {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        match expr {
            Expr::AnyOp { right, .. } | Expr::AllOp { right, .. } => self.0.extend(number_of(compared(right))),
            Expr::Cast { expr, data_type: ast::DataType::Array(_), .. } => self.0.extend(number_of(expr)),
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

/// The number of a parameter `$1`, `$2`, ..; `None` if the expression is something else.
fn number_of(expr: &Expr) -> Option<usize> {
    digits_of(expr)?.parse().ok().filter(|number| *number > 0)
}

/// The digits of a parameter `$1`, `$2`, .., which may be more than those of a number.
fn digits_of(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::Value(ValueWithSpan { value: Value::Placeholder(name), .. }) => {
            name.strip_prefix('$').filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()))
        }
        _ => None,
    }
}

/// The name that a parameter has in the query, without its `@`.
fn name_of(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::Identifier(name) if name.quote_style.is_none() => name.value.strip_prefix('@'),
        _ => None,
    }
}

/// The values of parameters.
enum Values<'a> {
    /// By their names, without `@`.
    Named(&'a [(String, ScalarValue)]),
    /// By their numbers, from 1; `None` leaves the parameter in the statement.
    Numbered(&'a [Option<ScalarValue>]),
}

struct Parameters<'a>(&'a Values<'a>);

impl Parameters<'_> {
    /// The value of a parameter; `None` if the expression is none.
    fn value(&self, expr: &Expr) -> Result<Option<&ScalarValue>> {
        let named = match self.0 {
            Values::Named(named) => named,
            Values::Numbered(values) => {
                let Some(number) = number_of(expr) else { return Ok(None) };
                return Ok(values.get(number - 1).and_then(Option::as_ref));
            }
        };
        let Some(name) = name_of(expr) else { return Ok(None) };
        match named.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)) {
            Some((_, value)) => Ok(Some(value)),
            None => plan_err!("the query has a parameter @{name}, which has no type and no value"),
        }
    }

    /// What `x = ANY ($1)` and `x <> ALL ($1)` compare: a value, the list in place of the parameter, and whether it must not be in
    /// it. As a list of values it can select row keys, and its items have the type of the value.
    fn compared_list<'e>(&self, expr: &'e Expr) -> Result<Option<(&'e Expr, &ScalarValue, bool)>> {
        let (left, right, negated) = match expr {
            Expr::AnyOp { left, compare_op: BinaryOperator::Eq, right, .. } => (left, right, false),
            Expr::AllOp { left, compare_op: BinaryOperator::NotEq, right } => (left, right, true),
            _ => return Ok(None),
        };
        let list = self.value(compared(right))?.filter(|list| matches!(list, ScalarValue::List(_)));
        Ok(list.map(|list| (compared(left), list, negated)))
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
        } else if let Some((value, list, negated)) = self.compared_list(expr)? {
            *expr = in_list(Box::new(value.clone()), items(list)?, negated);
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

/// An expression without the function that makes it comparable with a list.
fn compared(expr: &Expr) -> &Expr {
    let Expr::Function(function) = expr else { return expr };
    let FunctionArguments::List(list) = &function.args else { return expr };
    match list.args.first() {
        Some(FunctionArg::Unnamed(FunctionArgExpr::Expr(inner))) if function.name.to_string() == COMPARABLE_WITH => {
            inner
        }
        _ => expr,
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
        ScalarValue::IntervalMonthDayNano(Some(interval)) => {
            let IntervalMonthDayNano { months, days, nanoseconds } = interval;
            let text = format!("{months} months {days} days {nanoseconds} nanoseconds");
            cast(value(Value::SingleQuotedString(text)), kind)
        }
        ScalarValue::Float32(Some(number)) => cast(value(Value::SingleQuotedString(number.to_string())), kind),
        // A number without a cast is one that LIMIT takes, too.
        ScalarValue::Int64(Some(number)) if *number >= 0 => value(Value::Number(number.to_string(), false)),
        scalar => {
            let array = scalar.to_array()?;
            let mut text = Vec::new();
            match ColumnText::new(array.as_ref()) {
                Some(mut of) => of.write(0, &mut text),
                None => text = scalar.to_string().into_bytes(),
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
        DataType::Timestamp(_, Some(_)) => ast::DataType::Timestamp(None, TimezoneInfo::WithTimeZone),
        DataType::Timestamp(_, None) => ast::DataType::Timestamp(None, TimezoneInfo::None),
        DataType::Interval(IntervalUnit::MonthDayNano) => ast::DataType::Interval { fields: None, precision: None },
        DataType::List(item) => {
            ast::DataType::Array(ArrayElemTypeDef::AngleBracket(Box::new(type_of(item.data_type())?)))
        }
        DataType::Decimal128(precision, scale) => {
            ast::DataType::Decimal(ExactNumberInfo::PrecisionAndScale(u64::from(*precision), i64::from(*scale)))
        }
        DataType::Time64(_) => ast::DataType::Time(None, TimezoneInfo::None),
        kind => return plan_err!("a parameter cannot have the type {kind}"),
    })
}
