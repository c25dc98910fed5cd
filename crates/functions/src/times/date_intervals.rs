//! Dates and intervals; row "Dates and hours" of `docs/datafusion-workarounds.md`.
//!
//! `DATE '2024-01-31' + INTERVAL '1 hour'` is a date in DataFusion 55.2: the hour is lost. It is a timestamp here, as in PostgreSQL
//! and DuckDB. With an interval that is written in whole days or months it stays a date.

use arrow::datatypes::{DataType, IntervalUnit, TimeUnit};
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::error::Result;
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawBinaryExpr};
use datafusion::logical_expr::sqlparser::ast::BinaryOperator;
use datafusion::logical_expr::{Expr, ExprSchemable, cast};
use tidetable_layout::time::DAY;

/// What a date becomes before hours are added to it.
const TIMESTAMP: DataType = DataType::Timestamp(TimeUnit::Microsecond, None);

/// Plans dates as timestamps where an interval is added that may have hours.
#[derive(Debug)]
pub(crate) struct DateIntervals;

impl ExprPlanner for DateIntervals {
    fn plan_binary_op(&self, expr: RawBinaryExpr, schema: &DFSchema) -> Result<PlannerResult<RawBinaryExpr>> {
        let RawBinaryExpr { op, left, right } = expr;
        let kinds = (left.get_type(schema), right.get_type(schema));
        let (left, right) = match (&op, kinds) {
            (BinaryOperator::Plus | BinaryOperator::Minus, (Ok(DataType::Date32 | DataType::Date64), Ok(kind)))
                if may_have_hours(&right, &kind) =>
            {
                (cast(left, TIMESTAMP), right)
            }
            (BinaryOperator::Plus, (Ok(kind), Ok(DataType::Date32 | DataType::Date64)))
                if may_have_hours(&left, &kind) =>
            {
                (left, cast(right, TIMESTAMP))
            }
            _ => (left, right),
        };
        // The operation itself is planned by others.
        Ok(PlannerResult::Original(RawBinaryExpr { op, left, right }))
    }
}

/// Whether a value of this type is an interval that is not written in whole days.
fn may_have_hours(expr: &Expr, kind: &DataType) -> bool {
    match (kind, expr) {
        (DataType::Interval(IntervalUnit::YearMonth), _) => false,
        (DataType::Interval(_), Expr::Negative(inner)) => may_have_hours(inner, kind),
        (DataType::Interval(_), Expr::Literal(ScalarValue::IntervalMonthDayNano(Some(interval)), _)) => {
            interval.nanoseconds % (DAY * 1_000) != 0
        }
        (DataType::Interval(_), _) => true,
        _ => false,
    }
}
