//! Rewrites comparisons of dates as comparisons of timestamps; row "Dates" of `docs/datafusion-workarounds.md`.
//!
//! `CAST(ts AS DATE) = '2018-01-02'` becomes `ts >= '2018-01-02' AND ts < '2018-01-03'`. From the cast DataFusion 55.2
//! derives that `ts` is constant, and removes an `ORDER BY ts`. The bounds also let a scan skip files, so this rule may
//! stay as an optimization once the defect is fixed.

use arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::DFSchema;
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, Operator, lit};
use datafusion::scalar::ScalarValue;
use tidetable_functions::is_utc;
use tidetable_functions::ticks_per_second;

use crate::rules::comparison_rule::{self, LogicalRules};

const SECONDS_PER_DAY: i64 = 86_400;

/// Inserts the rule `days_as_times` into the logical rules, where comparisons are rewritten.
pub(crate) fn insert(rules: &mut LogicalRules) {
    comparison_rule::insert(rules, "days_as_times", by_times);
}

/// Rewrites `CAST(time AS DATE) op day` to a comparison of times; `None` for other expressions, and for times not in
/// UTC.
fn by_times(expr: &Expr, schema: &DFSchema) -> Option<Expr> {
    let Expr::BinaryExpr(BinaryExpr { left, op, right }) = expr else { return None };
    let (time, op, day) = match (left.as_ref(), right.as_ref()) {
        (Expr::Cast(cast), Expr::Literal(ScalarValue::Date32(Some(day)), _)) => (cast, *op, *day),
        (Expr::Literal(ScalarValue::Date32(Some(day)), _), Expr::Cast(cast)) => (cast, op.swap()?, *day),
        _ => return None,
    };
    if *time.field.data_type() != DataType::Date32 {
        return None;
    }
    let time = time.expr.as_ref();
    let DataType::Timestamp(unit, zone) = time.get_type(schema).ok()? else { return None };
    if !zone.as_deref().is_none_or(is_utc) {
        return None;
    }

    let midnight = |day: i64| -> Option<Expr> {
        let ticks = day.checked_mul(SECONDS_PER_DAY)?.checked_mul(ticks_per_second(unit))?;
        Some(lit(match unit {
            TimeUnit::Second => ScalarValue::TimestampSecond(Some(ticks), zone.clone()),
            TimeUnit::Millisecond => ScalarValue::TimestampMillisecond(Some(ticks), zone.clone()),
            TimeUnit::Microsecond => ScalarValue::TimestampMicrosecond(Some(ticks), zone.clone()),
            TimeUnit::Nanosecond => ScalarValue::TimestampNanosecond(Some(ticks), zone.clone()),
        }))
    };

    let (start, end) = (midnight(i64::from(day))?, midnight(i64::from(day) + 1)?);
    let time = time.clone();
    Some(match op {
        Operator::Eq => time.clone().gt_eq(start).and(time.lt(end)),
        Operator::NotEq => time.clone().lt(start).or(time.gt_eq(end)),
        Operator::Lt => time.lt(start),
        Operator::LtEq => time.lt(end),
        Operator::Gt => time.gt_eq(end),
        Operator::GtEq => time.gt_eq(start),
        _ => return None,
    })
}
