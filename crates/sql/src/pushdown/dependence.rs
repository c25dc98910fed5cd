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
    if expr.is_volatile_node() {
        return false;
    }
    if let Some(column) = expr.downcast_ref::<Column>() {
        return layout.is_row_field(column.index());
    }
    if let Some((time, step)) = steps_of_time(expr) {
        return layout.row_time_step(time).is_some_and(|told| step % told == 0) || layout.is_row_field(time);
    }
    if let Some((time, bound)) = start_of_step(expr) {
        return layout.row_time_step(time).is_some_and(|told| bound.rem_euclid(told) == 0) || layout.is_row_field(time);
    }
    let children = expr.children();
    if children.is_empty() { expr.is::<Literal>() } else { children.into_iter().all(|child| is_of_row(layout, child)) }
}

/// Whether `expr` depends on the column `time` alone.
pub(crate) fn is_of_column(expr: &Expr, time: usize) -> bool {
    if expr.is_volatile_node() {
        return false;
    }
    if let Some(column) = expr.downcast_ref::<Column>() {
        return column.index() == time;
    }
    let children = expr.children();
    if children.is_empty() { expr.is::<Literal>() } else { children.into_iter().all(|child| is_of_column(child, time)) }
}

/// Whether `expr` consists of columns, constants and immutable functions, so that a scan may evaluate it.
pub(crate) fn is_of_columns(expr: &Expr) -> bool {
    if expr.is_volatile_node() {
        return false;
    }
    let children = expr.children();
    if children.is_empty() {
        return expr.is::<Literal>() || expr.is::<Column>();
    }
    children.into_iter().all(is_of_columns)
}

/// A time column and the step, in microseconds, to which `expr` truncates it: a date, `date_trunc` or `date_part`.
fn steps_of_time(expr: &Expr) -> Option<(usize, i64)> {
    if let Some(cast) = expr.downcast_ref::<CastExpr>() {
        return (*cast.cast_type() == DataType::Date32)
            .then_some(())
            .and_then(|()| Some((time_column(cast.expr())?, DAY)));
    }
    if let Some(cast) = expr.downcast_ref::<TryCastExpr>() {
        return (*cast.cast_type() == DataType::Date32)
            .then_some(())
            .and_then(|()| Some((time_column(cast.expr())?, DAY)));
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
    let moment = |expr: &Expr| match expr.downcast_ref::<Literal>()?.value() {
        ScalarValue::TimestampMicrosecond(Some(moment), zone) if is_utc(zone.as_deref()) => Some(*moment),
        _ => None,
    };
    match compare.op() {
        Operator::GtEq | Operator::Lt => Some((time_column(compare.left())?, moment(compare.right())?)),
        Operator::LtEq | Operator::Gt => Some((time_column(compare.right())?, moment(compare.left())?)),
        _ => None,
    }
}

/// A time column in microseconds; a cast between UTC and no zone keeps the number.
fn time_column(expr: &Expr) -> Option<usize> {
    if let Some(cast) = expr.downcast_ref::<CastExpr>() {
        return match cast.cast_type() {
            DataType::Timestamp(TimeUnit::Microsecond, zone) if is_utc(zone.as_deref()) => time_column(cast.expr()),
            _ => None,
        };
    }
    expr.downcast_ref::<Column>().map(Column::index)
}

fn is_utc(zone: Option<&str>) -> bool {
    zone.is_none_or(|zone| matches!(zone, "UTC" | "+00:00" | "Z"))
}
