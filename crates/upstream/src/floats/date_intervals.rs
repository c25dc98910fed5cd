//! Dates and intervals; row "Dates and hours" of `docs/datafusion-workarounds.md`.
//!
//! `DATE '2024-01-31' + INTERVAL '1 hour'` is a date in DataFusion 55.2: the hour is lost. It is a timestamp here, as in PostgreSQL
//! and DuckDB. With an interval that is written in whole days or months, or with a whole multiple of one, it stays a date.

use arrow::datatypes::{DataType, IntervalUnit, TimeUnit};
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, Operator, cast};

/// What a date becomes before hours are added to it.
const TIMESTAMP: DataType = DataType::Timestamp(TimeUnit::Microsecond, None);
/// The function that an interval times a number is.
const MULTIPLY: &str = "multiply_interval";

/// Casts the date of `date + interval`, `interval + date` or `date - interval` if the interval may have hours. Whether it did.
pub(super) fn keep_hours(sum: &mut BinaryExpr, schema: &DFSchema) -> bool {
    let BinaryExpr { left, op, right } = sum;
    let (Ok(one), Ok(other)) = (left.get_type(schema), right.get_type(schema)) else { return false };
    let date = match (is_date(&one), is_date(&other), *op) {
        (true, false, Operator::Plus | Operator::Minus) if may_have_hours(right, &other, schema) => left,
        (false, true, Operator::Plus) if may_have_hours(left, &one, schema) => right,
        _ => return false,
    };
    **date = cast(std::mem::take(&mut **date), TIMESTAMP);
    true
}

fn is_date(kind: &DataType) -> bool {
    matches!(kind, DataType::Date32 | DataType::Date64)
}

/// Whether a value of this type is an interval that is not written in whole days.
fn may_have_hours(expr: &Expr, kind: &DataType, schema: &DFSchema) -> bool {
    match (kind, expr) {
        (DataType::Interval(IntervalUnit::YearMonth), _) => false,
        (DataType::Interval(_), Expr::Negative(inner)) => may_have_hours(inner, kind, schema),
        (DataType::Interval(_), Expr::Literal(ScalarValue::IntervalMonthDayNano(Some(interval)), _)) => {
            interval.nanoseconds != 0
        }
        (DataType::Interval(_), Expr::ScalarFunction(ScalarFunction { func, args })) if func.name() == MULTIPLY => {
            let [interval, number] = args.as_slice() else { return true };
            let is_whole = number.get_type(schema).is_ok_and(|kind| kind.is_integer());
            !is_whole || may_have_hours(interval, kind, schema)
        }
        (DataType::Interval(_), _) => true,
        _ => false,
    }
}
