//! Dependence analysis of expressions over records: on the row key, on the event time, or on more.
//!
//! The records of a row share its key, so expressions of the key are evaluated once per row, and expressions of the
//! event time once per distinct time.

use std::sync::Arc;

use arrow::datatypes::{DataType, TimeUnit};
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::ScalarFunctionExpr;
use datafusion::physical_expr::expressions::{BinaryExpr, CastExpr, Column, Literal, TryCastExpr};
use datafusion::physical_plan::PhysicalExpr;
use datafusion::scalar::ScalarValue;
use tidetable_functions::is_utc;
use tidetable_layout::Layout;

const SECOND: i64 = 1_000_000;
const MINUTE: i64 = 60 * SECOND;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;

type Expr = Arc<dyn PhysicalExpr>;

/// Whether `expr`, over the records of `layout`, has one value for all records of a row, and the same value if the
/// event time is replaced by the time in the row key. True for expressions over row fields, and for those that truncate
/// the event time to multiples of the key's time step.
pub(crate) fn is_of_row(layout: &Layout, expr: &Expr) -> bool {
    consists_of(expr, &|expr| {
        if let Some(column) = expr.downcast_ref::<Column>() {
            return Some(layout.is_row_field(column.index()));
        }
        let (time, bound) = steps_of_time(expr).or_else(|| start_of_step(expr))?;
        let of_key = layout.row_time_step(time).is_some_and(|step| bound.rem_euclid(step) == 0);
        Some(of_key || layout.is_row_field(time))
    })
}

/// Whether `expr` depends on nothing but the column `time`.
pub(crate) fn is_of_column(expr: &Expr, time: usize) -> bool {
    consists_of(expr, &|expr| expr.downcast_ref::<Column>().map(|column| column.index() == time))
}

/// Whether `expr` consists of columns, constants and immutable functions, so that a scan may evaluate it.
pub(crate) fn is_of_columns(expr: &Expr) -> bool {
    consists_of(expr, &|expr| expr.is::<Column>().then_some(true))
}

/// Whether `expr` consists of constants, immutable functions and parts that `is_known` accepts; for `None` the children
/// of a part are tested.
fn consists_of(expr: &Expr, is_known: &dyn Fn(&Expr) -> Option<bool>) -> bool {
    if expr.is_volatile_node() {
        return false;
    }
    is_known(expr).unwrap_or_else(|| match expr.children().as_slice() {
        [] => expr.is::<Literal>(),
        children => children.iter().all(|child| consists_of(child, is_known)),
    })
}

/// A time column and the step, in microseconds, to which `expr` truncates it: a date, `date_trunc` or `date_part`.
fn steps_of_time(expr: &Expr) -> Option<(usize, i64)> {
    let cast = match (expr.downcast_ref::<CastExpr>(), expr.downcast_ref::<TryCastExpr>()) {
        (Some(cast), _) => Some((cast.cast_type(), cast.expr())),
        (_, Some(cast)) => Some((cast.cast_type(), cast.expr())),
        _ => None,
    };
    if let Some((kind, inner)) = cast {
        return if *kind == DataType::Date32 { Some((time_column(inner)?, DAY)) } else { None };
    }

    let function = expr.downcast_ref::<ScalarFunctionExpr>()?;
    let [unit, time] = function.args() else { return None };
    let unit = match unit.downcast_ref::<Literal>()?.value() {
        ScalarValue::Utf8(Some(unit)) | ScalarValue::Utf8View(Some(unit)) | ScalarValue::LargeUtf8(Some(unit)) => unit,
        _ => return None,
    };

    let step = match (function.fun().name(), unit.to_ascii_lowercase().as_str()) {
        ("date_trunc" | "date_part", "year" | "quarter" | "month" | "week" | "day") => DAY,
        ("date_part", "doy" | "dow" | "isodow" | "isoyear") => DAY,
        ("date_trunc" | "date_part", "hour") => HOUR,
        ("date_trunc" | "date_part", "minute") => MINUTE,
        ("date_trunc", "second") => SECOND,
        _ => return None,
    };
    Some((time_column(time)?, step))
}

/// A time column and the instant (microseconds) that `expr` compares it with by `<` or `>=`: the result is constant
/// within each step that the instant does not split.
fn start_of_step(expr: &Expr) -> Option<(usize, i64)> {
    let compare = expr.downcast_ref::<BinaryExpr>()?;
    match compare.op() {
        Operator::GtEq | Operator::Lt => Some((time_column(compare.left())?, utc_instant(compare.right())?)),
        Operator::LtEq | Operator::Gt => Some((time_column(compare.right())?, utc_instant(compare.left())?)),
        _ => None,
    }
}

/// The instant, in microseconds since the epoch, that a constant in UTC is.
fn utc_instant(expr: &Expr) -> Option<i64> {
    match expr.downcast_ref::<Literal>()?.value() {
        ScalarValue::TimestampMicrosecond(Some(instant), zone) if zone.as_deref().is_none_or(is_utc) => Some(*instant),
        _ => None,
    }
}

/// A time column in microseconds; a cast between UTC and no zone keeps the number.
fn time_column(expr: &Expr) -> Option<usize> {
    if let Some(cast) = expr.downcast_ref::<CastExpr>() {
        return match cast.cast_type() {
            DataType::Timestamp(TimeUnit::Microsecond, zone) if zone.as_deref().is_none_or(is_utc) => {
                time_column(cast.expr())
            }
            _ => None,
        };
    }
    expr.downcast_ref::<Column>().map(Column::index)
}
