//! Derives value sets of single columns from a filter expression.
//!
//! A bound may be looser than its filter, never tighter: DataFusion filters again.

use std::ops::Bound;

use arrow::datatypes::{DataType, Schema, TimeUnit};
use datafusion::logical_expr::expr::{BinaryExpr, InList};
use datafusion::logical_expr::{Between, Expr, Operator};
use datafusion::scalar::ScalarValue;
use tidetable_functions::is_utc;
use tidetable_layout::pushdown::{Scalar, ValueSet};

use crate::pushdown::value_sets::{Bounds, intersect_bounds, scalar, union_bounds};

const MICROS_PER_DAY: i64 = 86_400_000_000;
/// Integers below this are exact as 64-bit floats: 2^53.
const EXACT_FLOAT: f64 = 9_007_199_254_740_992.0;

/// The values of columns of `schema` that can pass `filter`. `None` if no bound follows, because it combines columns,
/// computes with them, negates, or tests for null.
pub(crate) fn bounds(filter: &Expr, schema: &Schema) -> Option<Bounds> {
    match filter {
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::And, right }) => {
            match (bounds(left, schema), bounds(right, schema)) {
                (Some(mut left), Some(right)) => {
                    intersect_bounds(&mut left, right);
                    Some(left)
                }
                (left, right) => left.or(right),
            }
        }
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::Or, right }) => {
            union_bounds(bounds(left, schema)?, bounds(right, schema)?)
        }
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => match literal(right) {
            Some(value) => compare(column(left, schema)?, *op, value),
            None => compare(column(right, schema)?, op.swap()?, literal(left)?),
        },
        Expr::Between(Between { expr, negated: false, low, high }) => {
            let column = column(expr, schema)?;
            let mut bounds = compare(column, Operator::GtEq, literal(low)?)?;
            intersect_bounds(&mut bounds, compare(column, Operator::LtEq, literal(high)?)?);
            Some(bounds)
        }
        Expr::InList(InList { expr, list, negated: false }) => {
            let column = column(expr, schema)?;
            let mut values = list.iter().map(|value| compare(column, Operator::Eq, literal(value)?));
            let first = values.next()??;
            values.try_fold(first, |all, value| union_bounds(all, value?))
        }
        Expr::Alias(alias) => bounds(&alias.expr, schema),
        _ => None,
    }
}

/// A column as a filter compares it.
#[derive(Debug, Clone, Copy)]
struct ColumnUse<'a> {
    name: &'a str,
    /// The type that the column has in the table.
    kind: &'a DataType,
    /// The type it is cast to before the comparison.
    via: Option<&'a DataType>,
}

fn column<'a>(expr: &'a Expr, schema: &'a Schema) -> Option<ColumnUse<'a>> {
    match expr {
        Expr::Column(column) => {
            let field = schema.field_with_name(&column.name).ok()?;
            Some(ColumnUse { name: field.name(), kind: field.data_type(), via: None })
        }
        Expr::Cast(cast) => cast_column(&cast.expr, cast.field.data_type(), schema),
        Expr::TryCast(cast) => cast_column(&cast.expr, cast.field.data_type(), schema),
        Expr::Alias(alias) => column(&alias.expr, schema),
        _ => None,
    }
}

/// A column under at most one cast, which is to the type `via`.
fn cast_column<'a>(expr: &'a Expr, via: &'a DataType, schema: &'a Schema) -> Option<ColumnUse<'a>> {
    let column = column(expr, schema)?;
    if column.via.is_some() {
        return None;
    }
    Some(ColumnUse { via: (via != column.kind).then_some(via), ..column })
}

fn literal(expr: &Expr) -> Option<&ScalarValue> {
    match expr {
        Expr::Literal(value, _) if !value.is_null() => Some(value),
        Expr::Alias(alias) => literal(&alias.expr),
        _ => None,
    }
}

fn compare(column: ColumnUse<'_>, op: Operator, value: &ScalarValue) -> Option<Bounds> {
    let set = match (column.kind, column.via) {
        (DataType::Timestamp(TimeUnit::Microsecond, _), Some(DataType::Date32)) => days(op, value)?,
        (kind, via) if via.is_none_or(|via| keeps_order(kind, via, value)) => range(op, exact(kind, value)?)?,
        _ => return None,
    };
    Some(Bounds::from([(column.name.to_owned(), set)]))
}

/// The values of a column that pass `column op value`.
fn range(op: Operator, value: Scalar) -> Option<ValueSet> {
    let (low, high) = match op {
        Operator::Eq => return Some(ValueSet::In(vec![value])),
        Operator::Lt => (Bound::Unbounded, Bound::Excluded(value)),
        Operator::LtEq => (Bound::Unbounded, Bound::Included(value)),
        Operator::Gt => (Bound::Excluded(value), Bound::Unbounded),
        Operator::GtEq => (Bound::Included(value), Bound::Unbounded),
        _ => return None,
    };
    Some(ValueSet::Range { low, high })
}

/// The times that pass `CAST(time AS DATE) op day`.
fn days(op: Operator, value: &ScalarValue) -> Option<ValueSet> {
    let ScalarValue::Date32(Some(day)) = value else { return None };
    let start = i64::from(*day).checked_mul(MICROS_PER_DAY)?;
    let end = Scalar::Timestamp(start.checked_add(MICROS_PER_DAY)?);
    let start = Scalar::Timestamp(start);
    let (low, high) = match op {
        Operator::Eq => (Bound::Included(start), Bound::Excluded(end)),
        Operator::Lt => (Bound::Unbounded, Bound::Excluded(start)),
        Operator::LtEq => (Bound::Unbounded, Bound::Excluded(end)),
        Operator::Gt => (Bound::Included(end), Bound::Unbounded),
        Operator::GtEq => (Bound::Included(start), Bound::Unbounded),
        _ => return None,
    };
    Some(ValueSet::Range { low, high })
}

/// Whether a cast from `kind` to `via` preserves comparisons with `value`.
fn keeps_order(kind: &DataType, via: &DataType, value: &ScalarValue) -> bool {
    use DataType::{Date32, Decimal128, Float64, Int64, LargeUtf8, Timestamp, UInt64, Utf8, Utf8View};
    match (kind, via) {
        (UInt64 | Int64, Decimal128(precision, scale)) => {
            i16::from(*precision) - i16::from(*scale) >= 20 && *scale >= 0
        }
        (UInt64 | Int64, Float64) => {
            matches!(value, ScalarValue::Float64(Some(value)) if value.abs() < EXACT_FLOAT)
        }
        (Decimal128(precision, scale), Decimal128(wider, finer)) => {
            finer >= scale && i16::from(*wider) - i16::from(*finer) >= i16::from(*precision) - i16::from(*scale)
        }
        (Utf8, LargeUtf8 | Utf8View) => true,
        // The column is in UTC, so instant and local time are the same number.
        (Timestamp(TimeUnit::Microsecond, _), Timestamp(TimeUnit::Microsecond | TimeUnit::Nanosecond, zone)) => {
            zone.as_deref().is_none_or(is_utc)
        }
        (Date32, Timestamp(TimeUnit::Microsecond | TimeUnit::Nanosecond, None)) => true,
        _ => false,
    }
}

/// `value` in the column's type, if the conversion is exact.
fn exact(kind: &DataType, value: &ScalarValue) -> Option<Scalar> {
    let own = value.data_type();
    if own == *kind {
        return scalar(value);
    }
    let there = value.cast_to(kind).ok()?;
    let back = there.cast_to(&own).ok()?;
    if back == *value { scalar(&there) } else { None }
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::Field;
    use datafusion::logical_expr::{cast, col, lit};

    use super::*;

    fn schema() -> Schema {
        Schema::new(vec![
            Field::new("meter", DataType::UInt64, false),
            Field::new("kwh", DataType::Decimal128(10, 2), true),
            Field::new("ts", DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())), false),
            Field::new("tag", DataType::Utf8, true),
        ])
    }

    fn values(expr: Expr) -> Option<Bounds> {
        bounds(&expr, &schema())
    }

    fn one(column: &str, set: ValueSet) -> Option<Bounds> {
        Some(Bounds::from([(column.to_owned(), set)]))
    }

    #[test]
    fn comparisons_bound_columns_on_either_side() {
        let above = ValueSet::Range { low: Bound::Excluded(Scalar::UInt64(4)), high: Bound::Unbounded };
        assert_eq!(values(col("meter").gt(lit(4_u64))), one("meter", above.clone()));
        assert_eq!(values(lit(4_u64).lt(col("meter"))), one("meter", above));
        assert_eq!(values(col("tag").eq(lit("a"))), one("tag", ValueSet::In(vec![Scalar::Text("a".into())])));
    }

    #[test]
    fn in_and_or_become_value_lists() {
        let expected = one("meter", ValueSet::In(vec![Scalar::UInt64(1), Scalar::UInt64(2)]));
        assert_eq!(values(col("meter").in_list(vec![lit(1_i64), lit(2_i64)], false)), expected);
        assert_eq!(values(col("meter").eq(lit(1_u64)).or(col("meter").eq(lit(2_u64)))), expected);
        assert_eq!(values(col("meter").in_list(vec![lit(1_u64)], true)), None);
        assert_eq!(values(col("meter").eq(lit(1_u64)).or(col("tag").eq(lit("a")))), None);
    }

    #[test]
    fn one_side_of_a_conjunction_bounds() {
        let expected = one("meter", ValueSet::In(vec![Scalar::UInt64(1)]));
        assert_eq!(values(col("meter").eq(lit(1_u64)).and(col("tag").not_eq(lit("a")))), expected);
    }

    #[test]
    fn a_date_becomes_a_time_range() {
        let day = lit(ScalarValue::Date32(Some(1)));
        let expected = ValueSet::Range {
            low: Bound::Included(Scalar::Timestamp(MICROS_PER_DAY)),
            high: Bound::Excluded(Scalar::Timestamp(2 * MICROS_PER_DAY)),
        };
        assert_eq!(values(cast(col("ts"), DataType::Date32).eq(day)), one("ts", expected));
    }

    #[test]
    fn values_not_exact_in_the_column_type_give_no_bound() {
        assert_eq!(values(col("meter").gt(lit(-1_i64))), None);
        assert_eq!(values(cast(col("meter"), DataType::Float64).gt(lit(1.5))), None);
        assert_eq!(values(cast(col("meter"), DataType::Float64).gt(lit(1e300))), None);
        assert_eq!(values(cast(col("meter"), DataType::Utf8).gt(lit("1"))), None);
        let finer = lit(ScalarValue::Decimal128(Some(1005), 10, 3));
        assert_eq!(values(cast(col("kwh"), DataType::Decimal128(12, 3)).lt(finer)), None);
    }

    #[test]
    fn widening_casts_of_the_column_are_ignored() {
        let value = lit(ScalarValue::Decimal128(Some(7), 20, 0));
        let expected = one("meter", ValueSet::In(vec![Scalar::UInt64(7)]));
        assert_eq!(values(cast(col("meter"), DataType::Decimal128(20, 0)).eq(value)), expected);
    }
}
