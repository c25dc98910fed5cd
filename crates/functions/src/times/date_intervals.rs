//! Dates and intervals with a time of day: `date '2024-01-01' + interval '5 hours'` is a timestamp, as in PostgreSQL and DuckDB.
//! DataFusion 55.2 keeps a date, and drops the hours.

use arrow::datatypes::{DataType, IntervalUnit, TimeUnit};
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::error::Result;
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawBinaryExpr};
use datafusion::logical_expr::sqlparser::ast::BinaryOperator;
use datafusion::logical_expr::{Expr, ExprSchemable, cast};

/// What a date becomes that has a time of day: it covers the years 1 to 9999.
const TIMESTAMP: DataType = DataType::Timestamp(TimeUnit::Microsecond, None);

/// Casts dates to timestamps where an interval that may have a time of day is added or taken away. An interval of whole days,
/// months or years that is written out leaves a date.
#[derive(Debug)]
pub(crate) struct DateIntervals;

impl ExprPlanner for DateIntervals {
    fn plan_binary_op(&self, mut expr: RawBinaryExpr, schema: &DFSchema) -> Result<PlannerResult<RawBinaryExpr>> {
        let sides = match expr.op {
            BinaryOperator::Plus => vec![(&expr.left, &expr.right), (&expr.right, &expr.left)],
            BinaryOperator::Minus => vec![(&expr.left, &expr.right)],
            _ => return Ok(PlannerResult::Original(expr)),
        };
        let is_timed = |(date, interval): &(&Expr, &Expr)| {
            date.get_type(schema).is_ok_and(|kind| kind == DataType::Date32) && may_have_time_of_day(interval, schema)
        };
        let date = sides.iter().position(is_timed);
        match date {
            Some(0) => expr.left = cast(expr.left, TIMESTAMP),
            Some(_) => expr.right = cast(expr.right, TIMESTAMP),
            None => {}
        }
        // Other planners, and DataFusion, add a timestamp and an interval.
        Ok(PlannerResult::Original(expr))
    }
}

/// Whether `expr` is an interval whose hours, minutes or seconds may not be zero.
fn may_have_time_of_day(expr: &Expr, schema: &DFSchema) -> bool {
    match expr {
        Expr::Literal(ScalarValue::IntervalMonthDayNano(Some(interval)), _) => interval.nanoseconds != 0,
        Expr::Literal(ScalarValue::IntervalDayTime(Some(interval)), _) => interval.milliseconds != 0,
        _ => matches!(
            expr.get_type(schema),
            Ok(DataType::Interval(IntervalUnit::MonthDayNano | IntervalUnit::DayTime) | DataType::Duration(_))
        ),
    }
}
