//! Optimizer rule: moves an interval from a time to the constant it is compared with.
//!
//! `ts + INTERVAL '1 day' > '2018-01-03'` becomes `ts > '2018-01-02'`, a bound by which a scan skips files. Otherwise each
//! time would be computed, and asked of a zone table.

use arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::DFSchema;
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, Operator, binary_expr, lit};
use datafusion::scalar::ScalarValue;
use tidetable_layout::time::DAY;

use tidetable_functions::is_utc;
use tidetable_upstream::rules::comparison_rule::{self, LogicalRules};

/// Inserts the rule into the logical rules of DataFusion, where comparisons are rewritten.
pub(crate) fn insert(rules: &mut LogicalRules) {
    comparison_rule::insert(rules, "interval_comparisons", without_interval);
}

/// Rewrites `time + interval op constant`, either way round and with a minus too; `None` for other expressions, for
/// zones in which a day is not always as long, and for months.
fn without_interval(expr: &Expr, schema: &DFSchema) -> Option<Expr> {
    let Expr::BinaryExpr(BinaryExpr { left, op, right }) = expr else { return None };
    if !matches!(op, Operator::Eq | Operator::NotEq | Operator::Lt | Operator::LtEq | Operator::Gt | Operator::GtEq) {
        return None;
    }

    let (sum, op, constant) = match (left.as_ref(), right.as_ref()) {
        (Expr::BinaryExpr(sum), Expr::Literal(constant, _)) => (sum, *op, constant),
        (Expr::Literal(constant, _), Expr::BinaryExpr(sum)) => (sum, op.swap()?, constant),
        _ => return None,
    };

    let (time, interval) = match (sum.left.as_ref(), sum.op, sum.right.as_ref()) {
        (time, Operator::Plus, Expr::Literal(interval, _)) => (time, micros(interval)?),
        (Expr::Literal(interval, _), Operator::Plus, time) => (time, micros(interval)?),
        (time, Operator::Minus, Expr::Literal(interval, _)) => (time, micros(interval)?.checked_neg()?),
        _ => return None,
    };

    let ScalarValue::TimestampMicrosecond(Some(constant), zone) = constant else { return None };
    let DataType::Timestamp(TimeUnit::Microsecond, own) = time.get_type(schema).ok()? else { return None };
    if own != *zone || !zone.as_deref().is_none_or(is_utc) {
        return None;
    }
    let bound = ScalarValue::TimestampMicrosecond(Some(constant.checked_sub(interval)?), own);
    Some(binary_expr(time.clone(), op, lit(bound)))
}

/// The length of an interval in microseconds; `None` if it has months, which differ in length.
pub(crate) fn micros(interval: &ScalarValue) -> Option<i64> {
    let (days, micros) = match interval {
        ScalarValue::IntervalMonthDayNano(Some(interval))
            if interval.months == 0 && interval.nanoseconds % 1000 == 0 =>
        {
            (interval.days, interval.nanoseconds / 1000)
        }
        ScalarValue::IntervalDayTime(Some(interval)) => (interval.days, i64::from(interval.milliseconds) * 1000),
        _ => return None,
    };
    i64::from(days).checked_mul(DAY)?.checked_add(micros)
}
