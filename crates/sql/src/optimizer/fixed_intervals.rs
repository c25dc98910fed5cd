//! Optimizer rule: adds an interval of fixed length to times as a number of microseconds.
//!
//! DataFusion adds days to a time with a zone by the calendar of its zone, one time after the other, also in UTC, where a day
//! is always as long.

use arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, LogicalPlan, Operator, lit};
use datafusion::optimizer::optimizer::ApplyOrder;
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};
use datafusion::scalar::ScalarValue;
use tidetable_functions::is_utc;

use crate::optimizer::interval_comparisons::micros;

/// Rewrites `time + interval` and `time - interval`, of times in UTC and intervals without months.
#[derive(Debug)]
pub(crate) struct FixedIntervals;

impl OptimizerRule for FixedIntervals {
    fn name(&self) -> &str {
        "fixed_intervals"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::BottomUp)
    }

    fn supports_rewrite(&self) -> bool {
        true
    }

    fn rewrite(&self, plan: LogicalPlan, _: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        let mut has_any = false;
        plan.apply_expressions(|expr| {
            has_any |= expr.exists(|expr| Ok(sum(expr).is_some()))?;
            Ok(TreeNodeRecursion::Continue)
        })?;

        if !has_any {
            return Ok(Transformed::no(plan));
        }

        let schema = merge_schema(&plan.inputs());
        let names = NamePreserver::new(&plan);
        plan.map_expressions(|expr| {
            let name = names.save(&expr);
            let rewritten = expr.transform_up(|expr| {
                Ok(match in_micros(&expr, &schema) {
                    Some(rewritten) => Transformed::yes(rewritten),
                    None => Transformed::no(expr),
                })
            })?;
            Ok(rewritten.update_data(|expr| name.restore(expr)))
        })
    }
}

/// The time, the operator and the length of a sum or difference with a constant interval.
fn sum(expr: &Expr) -> Option<(&Expr, Operator, i64)> {
    let Expr::BinaryExpr(BinaryExpr { left, op, right }) = expr else { return None };
    match (left.as_ref(), op, right.as_ref()) {
        (time, Operator::Plus | Operator::Minus, Expr::Literal(interval, _)) => Some((time, *op, micros(interval)?)),
        (Expr::Literal(interval, _), Operator::Plus, time) => Some((time, *op, micros(interval)?)),
        _ => None,
    }
}

/// `time + interval` of an interval of fixed length, as a sum with a duration in microseconds.
fn in_micros(expr: &Expr, schema: &DFSchema) -> Option<Expr> {
    let (time, op, length) = sum(expr)?;
    let DataType::Timestamp(TimeUnit::Microsecond, zone) = time.get_type(schema).ok()? else { return None };
    if !zone.as_deref().is_none_or(is_utc) {
        return None;
    }

    let length = lit(ScalarValue::DurationMicrosecond(Some(length)));
    Some(Expr::BinaryExpr(BinaryExpr::new(Box::new(time.clone()), op, Box::new(length))))
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::{Field, Schema};
    use datafusion::common::ToDFSchema;
    use datafusion::logical_expr::{binary_expr, col};

    use super::*;

    /// What is rewritten, of a time in a zone and the interval of months, days and nanoseconds.
    fn rewritten(zone: Option<&str>, interval: (i32, i32, i64)) -> Option<Expr> {
        let kind = DataType::Timestamp(TimeUnit::Microsecond, zone.map(Into::into));
        let schema = Schema::new(vec![Field::new("ts", kind, true)]).to_dfschema().unwrap();
        let interval = ScalarValue::new_interval_mdn(interval.0, interval.1, interval.2);
        in_micros(&binary_expr(col("ts"), Operator::Minus, lit(interval)), &schema)
    }

    #[test]
    fn only_fixed_intervals_and_utc() {
        let expected =
            |length| Some(binary_expr(col("ts"), Operator::Minus, lit(ScalarValue::DurationMicrosecond(Some(length)))));
        assert_eq!(rewritten(Some("UTC"), (0, 1, 2000)), expected(86_400_000_002));
        assert_eq!(rewritten(None, (0, -1, 0)), expected(-86_400_000_000));
        assert_eq!(rewritten(Some("Europe/Paris"), (0, 1, 0)), None);
        assert_eq!(rewritten(Some("UTC"), (1, 0, 0)), None);
        assert_eq!(rewritten(Some("UTC"), (0, 0, 1)), None);
    }
}
