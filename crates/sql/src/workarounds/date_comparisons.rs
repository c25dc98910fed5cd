//! Rewrites comparisons of dates as comparisons of timestamps; row "Dates" of `docs/datafusion-workarounds.md`.
//!
//! `CAST(ts AS DATE) = '2018-01-02'` becomes `ts >= '2018-01-02' AND ts < '2018-01-03'`. From the cast DataFusion 55.2
//! derives that `ts` is constant, and removes an `ORDER BY ts`. The bounds also let a scan skip files, so this rule may
//! stay as an optimization once the defect is fixed.

use std::sync::Arc;

use arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, LogicalPlan, Operator, lit};
use datafusion::optimizer::optimizer::ApplyOrder;
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};
use datafusion::scalar::ScalarValue;

use crate::functions::ticks_per_second;
use crate::pushdown::dependence::is_utc;

const SECONDS_PER_DAY: i64 = 86_400;

/// Inserts [`DaysAsTimes`] after expressions are simplified.
pub(crate) fn insert(rules: &mut Vec<Arc<dyn OptimizerRule + Send + Sync>>) {
    let place = rules.iter().position(|rule| rule.name() == "simplify_expressions").map_or(rules.len(), |at| at + 1);
    rules.insert(place, Arc::new(DaysAsTimes));
}

/// Rewrites comparisons of dates in filters.
#[derive(Debug)]
struct DaysAsTimes;

impl OptimizerRule for DaysAsTimes {
    fn name(&self) -> &str {
        "days_as_times"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::BottomUp)
    }

    fn supports_rewrite(&self) -> bool {
        true
    }

    fn rewrite(&self, plan: LogicalPlan, _: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        // Filters only: elsewhere a rewrite would rename output columns.
        let LogicalPlan::Filter(filter) = &plan else { return Ok(Transformed::no(plan)) };
        let schema = Arc::clone(filter.input.schema());
        plan.map_expressions(|expr| {
            expr.transform_up(|expr| {
                Ok(match by_times(&expr, &schema) {
                    Some(times) => Transformed::yes(times),
                    None => Transformed::no(expr),
                })
            })
        })
    }
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
    if !is_utc(zone.as_deref()) {
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
