//! The exact range of the values of a column that pass a filter.

use std::cmp::Ordering;
use std::ops::Bound;

use arrow::datatypes::{DataType, Schema, TimeUnit};
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::expressions::{BinaryExpr, CastExpr, Column, IsNotNullExpr, Literal};
use datafusion::physical_plan::PhysicalExpr;
use datafusion::scalar::ScalarValue;
use tidetable_store::read::ValueRange;

type Expr = std::sync::Arc<dyn PhysicalExpr>;

/// The most digits of an integer of 64 bits.
const DIGITS: i16 = 20;

/// The column of `schema` that `filter` compares with constants, and its values that pass, exactly: no other value passes, and
/// no null. `None` for other filters.
pub(crate) fn value_range(filter: &Expr, schema: &Schema) -> Option<(usize, ValueRange)> {
    if let Some(present) = filter.downcast_ref::<IsNotNullExpr>() {
        let operand = operand(present.arg(), schema)?;
        return Some((operand.column, operand.all()));
    }
    let compare = filter.downcast_ref::<BinaryExpr>()?;
    let (left, right) = (compare.left(), compare.right());
    if *compare.op() == Operator::And {
        let ((column, one), (other, more)) = (value_range(left, schema)?, value_range(right, schema)?);
        return (column == other).then(|| one.intersection(more)).flatten().map(|range| (column, range));
    }
    let (operand, op, value) = match right.downcast_ref::<Literal>() {
        Some(value) => (operand(left, schema)?, *compare.op(), value.value()),
        None => (operand(right, schema)?, compare.op().swap()?, left.downcast_ref::<Literal>()?.value()),
    };
    Some((operand.column, operand.compared(op, value)?))
}

/// A column as a comparison with a constant has it, without its casts.
struct Operand<'a> {
    column: usize,
    kind: &'a DataType,
    /// A decimal that it is cast to, which keeps every value.
    via: Option<&'a DataType>,
}

fn operand<'a>(expr: &'a Expr, schema: &'a Schema) -> Option<Operand<'a>> {
    let (inner, via) = match expr.downcast_ref::<CastExpr>() {
        Some(cast) => (cast.expr(), Some(cast.cast_type())),
        None => (expr, None),
    };
    let column = inner.downcast_ref::<Column>()?.index();
    let kind = schema.fields().get(column)?.data_type();
    use DataType::{Date32, Decimal128, Float64, Int64, Timestamp, UInt64};
    let keeps = match (kind, via) {
        (UInt64 | Int64 | Float64 | Date32 | Timestamp(TimeUnit::Microsecond, _) | Decimal128(..), None) => true,
        (kind, Some(via)) => digits(kind).zip(digits(via)).is_some_and(|((whole, scale), (wider, finer))| {
            via != &Int64 && via != &UInt64 && wider >= whole && finer >= scale
        }),
        _ => false,
    };
    keeps.then_some(Operand { column, kind, via })
}

/// Digits before and behind the point of the values of a decimal or integer type.
fn digits(kind: &DataType) -> Option<(i16, i16)> {
    match kind {
        DataType::UInt64 | DataType::Int64 => Some((DIGITS, 0)),
        DataType::Decimal128(precision, scale) => Some((i16::from(*precision) - i16::from(*scale), i16::from(*scale))),
        _ => None,
    }
}

impl Operand<'_> {
    /// The range of all values but null.
    fn all(&self) -> ValueRange {
        match self.kind {
            DataType::Float64 => ValueRange::floats(Bound::Unbounded, Bound::Unbounded),
            _ => ValueRange::integers(i128::MIN, i128::MAX),
        }
    }

    /// The values for which `column op value` holds.
    fn compared(&self, op: Operator, value: &ScalarValue) -> Option<ValueRange> {
        if let (DataType::Float64, ScalarValue::Float64(Some(value))) = (self.kind, value) {
            let (low, high) = match op {
                Operator::Eq => (Bound::Included(*value), Bound::Included(*value)),
                Operator::Lt => (Bound::Unbounded, Bound::Excluded(*value)),
                Operator::LtEq => (Bound::Unbounded, Bound::Included(*value)),
                Operator::Gt => (Bound::Excluded(*value), Bound::Unbounded),
                Operator::GtEq => (Bound::Included(*value), Bound::Unbounded),
                _ => return None,
            };
            return Some(ValueRange::floats(low, high));
        }
        if value.data_type() != *self.via.unwrap_or(self.kind) {
            return None;
        }
        let (value, scale) = match value {
            ScalarValue::UInt64(Some(value)) => (i128::from(*value), 0),
            ScalarValue::Int64(Some(value)) | ScalarValue::TimestampMicrosecond(Some(value), _) => ((*value).into(), 0),
            ScalarValue::Date32(Some(value)) => ((*value).into(), 0),
            ScalarValue::Decimal128(Some(value), _, scale) => (*value, *scale),
            _ => return None,
        };
        let own = if let DataType::Decimal128(_, scale) = self.kind { *scale } else { 0 };
        // Units of the constant in one of the column.
        let units = 10_i128.checked_pow(u32::try_from(i16::from(scale) - i16::from(own)).ok()?)?;
        // The column's value next to the constant from below, and whether it is equal.
        let (below, equal) = (value.div_euclid(units), value.rem_euclid(units).cmp(&0) == Ordering::Equal);
        let above = if equal { below } else { below.checked_add(1)? };
        let (least, greatest) = match op {
            Operator::Eq => (above, below),
            Operator::Lt => (i128::MIN, above.checked_sub(1)?),
            Operator::LtEq => (i128::MIN, below),
            Operator::Gt => (below.checked_add(1)?, i128::MAX),
            Operator::GtEq => (above, i128::MAX),
            _ => return None,
        };
        Some(ValueRange::integers(least, greatest))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{
        Array, ArrayRef, AsArray, Date32Array, Decimal128Array, Float64Array, Int64Array, RecordBatch,
        TimestampMicrosecondArray, UInt64Array,
    };
    use arrow::datatypes::Field;
    use datafusion::physical_expr::expressions::{binary, cast, col, lit};

    use super::*;

    fn columns() -> Vec<(&'static str, ArrayRef)> {
        let floats = [
            0.0,
            -0.0,
            1.5,
            -1.5,
            f64::NAN,
            -f64::NAN,
            f64::INFINITY,
            f64::NEG_INFINITY,
            5e-324,
            -5e-324,
            f64::MAX,
            2.675,
        ];
        let integers = [0, 1, -1, i64::MIN, i64::MAX, 99, -100, 7, 8, 9, 10, 11];
        let unsigned = [0, 1, u64::MAX, u64::MAX - 1, 1 << 63, (1 << 63) - 1, 7, 8, 9, 10, 11, 12];
        let wide =
            [0, 1, -1, i128::from(i64::MAX) + 1, 10_i128.pow(30), -10_i128.pow(30), 99, 100, 101, -99, -100, -101];
        let with_null = |at: usize| (at != 6).then_some(at);
        vec![
            ("f", Arc::new(Float64Array::from_iter((0..12).map(|at| with_null(at).map(|at| floats[at]))))),
            ("i", Arc::new(Int64Array::from_iter((0..12).map(|at| with_null(at).map(|at| integers[at]))))),
            ("u", Arc::new(UInt64Array::from_iter((0..12).map(|at| with_null(at).map(|at| unsigned[at]))))),
            ("d", Arc::new(Date32Array::from_iter((0..12).map(|at| with_null(at).map(|at| at as i32 - 5))))),
            (
                "t",
                Arc::new(TimestampMicrosecondArray::from_iter((0..12).map(|at| with_null(at).map(|at| integers[at])))),
            ),
            (
                "w",
                Arc::new(
                    Decimal128Array::from_iter((0..12).map(|at| with_null(at).map(|at| wide[at])))
                        .with_precision_and_scale(33, 2)
                        .unwrap(),
                ),
            ),
        ]
    }

    /// Whether a filter is a range whose mask is what the filter gives.
    fn is_exact(filter: &Expr, batch: &RecordBatch) -> bool {
        let Some((column, range)) = value_range(filter, batch.schema_ref()) else { return false };
        let verdict = filter.evaluate(batch).unwrap().into_array(batch.num_rows()).unwrap();
        let expected: Vec<bool> = verdict.as_boolean().iter().map(|passes| passes == Some(true)).collect();
        let mask: Vec<bool> = range.mask(batch.column(column)).unwrap().iter().collect();
        assert_eq!(mask, expected, "{filter}: {range:?}");
        true
    }

    #[test]
    fn ranges_pass_what_their_filters_pass() {
        let batch = RecordBatch::try_from_iter(columns()).unwrap();
        let schema = batch.schema_ref();
        let operators = [Operator::Eq, Operator::Lt, Operator::LtEq, Operator::Gt, Operator::GtEq];
        for (name, values) in columns() {
            let column = col(name, schema).unwrap();
            let constants = (0..12).filter(|at| values.is_valid(*at));
            for constant in constants.map(|at| lit(ScalarValue::try_from_array(&values, at).unwrap())) {
                for op in operators {
                    let one = binary(Arc::clone(&column), op, Arc::clone(&constant), schema).unwrap();
                    assert!(is_exact(&one, &batch), "{one}");
                    let other = binary(Arc::clone(&constant), op, Arc::clone(&column), schema).unwrap();
                    assert!(is_exact(&other, &batch), "{other}");
                    let both = binary(one, Operator::And, other, schema).unwrap();
                    assert!(is_exact(&both, &batch), "{both}");
                }
                let unlike = binary(Arc::clone(&column), Operator::NotEq, constant, schema).unwrap();
                assert!(!is_exact(&unlike, &batch), "{unlike}");
            }
            let present: Expr = Arc::new(IsNotNullExpr::new(column));
            assert!(is_exact(&present, &batch), "{present}");
        }
    }

    #[test]
    fn constants_between_the_values_of_a_decimal_or_an_integer() {
        let batch = RecordBatch::try_from_iter(columns()).unwrap();
        let schema = batch.schema_ref();
        let finer = [
            ("w", DataType::Decimal128(35, 4)),
            ("i", DataType::Decimal128(23, 3)),
            ("u", DataType::Decimal128(21, 1)),
        ];
        for (name, kind) in finer {
            let DataType::Decimal128(precision, scale) = kind else { continue };
            let column = cast(col(name, schema).unwrap(), schema, kind.clone()).unwrap();
            for value in [0, 1, -1, 9_999, 10_000, 10_001, -9_999, -10_000, -10_001, 7_000, 7_001, 80] {
                for op in [Operator::Eq, Operator::Lt, Operator::LtEq, Operator::Gt, Operator::GtEq] {
                    let constant = lit(ScalarValue::Decimal128(Some(value), precision, scale));
                    let filter = binary(Arc::clone(&column), op, constant, schema).unwrap();
                    assert!(is_exact(&filter, &batch), "{filter}");
                }
            }
        }
        // A cast that may fail or round is no range.
        let kwh: Expr = Arc::new(Column::new("f", 0));
        let rounded = cast(kwh, schema, DataType::Decimal128(10, 1)).unwrap();
        let filter = binary(rounded, Operator::Gt, lit(ScalarValue::Decimal128(Some(15), 10, 1)), schema).unwrap();
        assert_eq!(value_range(&filter, schema), None);
        assert_eq!(schema.field(0), &Field::new("f", DataType::Float64, true));
    }
}
