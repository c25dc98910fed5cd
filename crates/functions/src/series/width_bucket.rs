//! `width_bucket(value, low, high, count)`: the number of the bucket of equal width that a value lies in.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Int64Array};
use arrow::datatypes::{DataType, Float64Type, Int64Type};
use datafusion::common::{exec_err, internal_err, plan_err};
use datafusion::error::Result;
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility};

/// `width_bucket`, as in PostgreSQL: 1 to `count` for values from `low` to below `high`, 0 below them and `count + 1` from `high` on.
pub(crate) fn function() -> Arc<ScalarUDF> {
    Arc::new(ScalarUDF::new_from_impl(WidthBucket { signature: Signature::user_defined(Volatility::Immutable) }))
}

/// The types of `value, low, high, count`.
///
/// # Errors
/// If these are no four numbers.
pub(super) fn coerced(name: &str, kinds: &[DataType]) -> Result<Vec<DataType>> {
    let is_number = |kind: &DataType| kind.is_numeric() || *kind == DataType::Null;
    if kinds.len() != 4 || !kinds.iter().all(is_number) {
        return plan_err!(
            "{name} takes a value, the least and greatest value of the buckets and their count, as in {name}(kwh, 0, 100, 10)"
        );
    }
    Ok(vec![DataType::Float64, DataType::Float64, DataType::Float64, DataType::Int64])
}

/// The buckets of rows of `value, low, high, count`.
///
/// # Errors
/// If bounds or counts make no buckets.
pub(super) fn buckets(columns: &[ArrayRef]) -> Result<Int64Array> {
    let [values, lows, highs, counts] = columns else { return internal_err!("width_bucket has four arguments") };
    let values = values.as_primitive::<Float64Type>().iter();
    let lows = lows.as_primitive::<Float64Type>().iter();
    let highs = highs.as_primitive::<Float64Type>().iter();
    let counts = counts.as_primitive::<Int64Type>().iter();

    let rows = values.zip(lows).zip(highs).zip(counts);
    rows.map(|(((value, low), high), count)| match (value, low, high, count) {
        (Some(value), Some(low), Some(high), Some(count)) => bucket(value, low, high, count).map(Some),
        _ => Ok(None),
    })
    .collect()
}

/// NaN is above all other values. Bounds in descending order number the buckets from the greatest values.
fn bucket(value: f64, low: f64, high: f64, count: i64) -> Result<i64> {
    if !(1..=i64::from(i32::MAX)).contains(&count) {
        return exec_err!("width_bucket: {count} is no count of buckets; write one from 1 to {}", i32::MAX);
    }
    if !low.is_finite() || !high.is_finite() || low == high {
        return exec_err!("width_bucket: the bounds {low} and {high} must be two finite numbers");
    }
    let is_ascending = low < high;
    let (is_below, is_above) = match value.is_nan() {
        true => (!is_ascending, is_ascending),
        false if is_ascending => (value < low, value >= high),
        false => (value > low, value <= high),
    };
    Ok(if is_below {
        0
    } else if is_above {
        count + 1
    } else {
        let share = (value - low) / (high - low);
        ((share * count as f64) as i64 + 1).min(count)
    })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct WidthBucket {
    signature: Signature,
}

impl ScalarUDFImpl for WidthBucket {
    fn name(&self) -> &str {
        "width_bucket"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, kinds: &[DataType]) -> Result<Vec<DataType>> {
        coerced(self.name(), kinds)
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Int64)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let columns = ColumnarValue::values_to_arrays(&args.args)?;
        Ok(ColumnarValue::Array(Arc::new(buckets(&columns)?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_have_the_numbers_of_postgresql() {
        for (value, low, high, count, expected) in [
            (5.35, 0.024, 10.06, 5, 3),
            (0.0, 0.0, 10.0, 5, 1),
            (-0.1, 0.0, 10.0, 5, 0),
            (10.0, 0.0, 10.0, 5, 6),
            (9.999, 0.0, 10.0, 5, 5),
            (f64::NAN, 0.0, 10.0, 5, 6),
            (10.0, 10.0, 0.0, 5, 1),
            (0.0, 10.0, 0.0, 5, 6),
            (11.0, 10.0, 0.0, 5, 0),
        ] {
            assert_eq!(bucket(value, low, high, count).unwrap(), expected, "{value} of {low} to {high}");
        }
        for (low, high, count) in [(0.0, 1.0, 0), (1.0, 1.0, 4), (f64::NAN, 1.0, 4), (0.0, f64::INFINITY, 4)] {
            assert!(bucket(0.5, low, high, count).is_err(), "{low} to {high} in {count}");
        }
    }
}
