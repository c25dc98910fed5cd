//! Casts decimals to the nearest float. Arrow 59.3 divides the digits by a power of ten after it has rounded both:
//! `CAST(999999999999999.99999999 AS DOUBLE)` is 999999999999999.9.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Decimal128Array, Float32Array, Float64Array};
use arrow::compute::cast;
use arrow::datatypes::{DECIMAL128_MAX_PRECISION, DataType, Decimal128Type, Decimal256Type, Float32Type, Float64Type};
use datafusion::common::DFSchema;
use datafusion::error::Result;
use datafusion::logical_expr::Expr;

use crate::conversion::{Conversion, converted};

/// Largest power of ten that is a 64-bit float.
const EXACT_SCALE: i8 = 22;
/// Integers up to this are 64-bit floats.
const EXACT_UNITS: u64 = 1 << 53;
/// Digits of decimals that are 64-bit floats without their point, and 32-bit floats.
const EXACT_DIGITS: u8 = 15;
const EXACT_DIGITS_32: u8 = 7;
/// Largest power of ten that is a 32-bit float.
const EXACT_SCALE_32: i8 = 10;

/// Replaces `expr` by the function, if it casts a decimal to a float that arrow may round twice.
pub fn exact_float_cast(expr: Expr, schema: &DFSchema) -> Expr {
    converted::<NearestFloat>(expr, schema)
}

#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct NearestFloat;

impl Conversion for NearestFloat {
    const NAME: &str = "nearest_float";

    fn is_for(from: &DataType, to: &DataType) -> bool {
        let (digits, scale) = match from {
            DataType::Decimal32(digits, scale)
            | DataType::Decimal64(digits, scale)
            | DataType::Decimal128(digits, scale)
            | DataType::Decimal256(digits, scale) => (*digits, *scale),
            _ => return false,
        };
        match to {
            DataType::Float64 => digits > EXACT_DIGITS || !(0..=EXACT_SCALE).contains(&scale),
            DataType::Float32 => digits > EXACT_DIGITS_32 || !(0..=EXACT_SCALE_32).contains(&scale),
            _ => false,
        }
    }

    fn convert(values: &ArrayRef, to: &DataType, _: bool) -> Result<ArrayRef> {
        let values = match values.data_type() {
            DataType::Decimal32(_, scale) | DataType::Decimal64(_, scale) => {
                &cast(values, &DataType::Decimal128(DECIMAL128_MAX_PRECISION, *scale))?
            }
            _ => values,
        };

        let is_narrow = *to == DataType::Float32;

        Ok(match values.data_type() {
            DataType::Decimal128(_, scale) => {
                let decimals = values.as_primitive::<Decimal128Type>();
                match is_narrow {
                    true => floats_32(decimals.unary(|units| parsed(&units, *scale))),
                    false => floats_64(nearest_floats(decimals)),
                }
            }
            DataType::Decimal256(_, scale) => {
                let decimals = values.as_primitive::<Decimal256Type>();
                match is_narrow {
                    true => floats_32(decimals.unary::<_, Float32Type>(|units| parsed(&units, *scale))),
                    false => floats_64(decimals.unary::<_, Float64Type>(|units| parsed(&units, *scale))),
                }
            }
            _ => cast(values, to)?,
        })
    }
}

fn floats_32(floats: Float32Array) -> ArrayRef {
    Arc::new(floats)
}

fn floats_64(floats: Float64Array) -> ArrayRef {
    Arc::new(floats)
}

/// The floats nearest to decimals of 128 bits.
pub(crate) fn nearest_floats(decimals: &Decimal128Array) -> Float64Array {
    let scale = decimals.scale();
    let divisor = (0..=EXACT_SCALE).contains(&scale).then(|| 10_f64.powi(i32::from(scale)));
    decimals.unary(|decimal| match (i64::try_from(decimal), divisor) {
        // A quotient of two floats is rounded once (W. Clinger, "How to Read Floating Point Numbers Accurately", 1990).
        (Ok(units), Some(divisor)) if units.unsigned_abs() <= EXACT_UNITS => units as f64 / divisor,
        _ => parsed(&decimal, scale),
    })
}

/// The float nearest to `units / 10^scale`, by its text.
fn parsed<F: std::str::FromStr + Default>(units: &impl std::fmt::Display, scale: i8) -> F {
    // Digits and an exponent are always a float.
    format!("{units}e{}", -i16::from(scale)).parse().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_are_the_nearest() {
        for (units, scale, expected) in [
            (99_999_999_999_999_999_999_999_i128, 8, 1e15),
            (-99_999_999_999_999_999_999_999, 8, -1e15),
            (174, 1, 17.4),
            (i128::from(i64::MAX), 0, 9_223_372_036_854_775_807.0),
            (9_007_199_254_740_993, 0, 9_007_199_254_740_992.0),
            (9_007_199_254_740_993, 1, 900_719_925_474_099.3),
            (1, 38, 1e-38),
            (12, -3, 12_000.0),
            (0, 30, 0.0),
        ] {
            let decimals = Decimal128Array::from(vec![units]).with_data_type(DataType::Decimal128(38, scale));
            assert_eq!(nearest_floats(&decimals).value(0), expected, "{units} {scale}");
        }
        let kind = DataType::Decimal128(38, 8);
        let values: ArrayRef = Arc::new(
            Decimal128Array::from(vec![Some(99_999_999_999_999_999_999_999), None]).with_data_type(kind.clone()),
        );
        assert!(NearestFloat::is_for(&kind, &DataType::Float64));
        let floats = NearestFloat::convert(&values, &DataType::Float64, false).unwrap();
        assert_eq!(floats.as_primitive::<Float64Type>(), &Float64Array::from(vec![Some(1e15), None]));
        let narrow = NearestFloat::convert(&values, &DataType::Float32, false).unwrap();
        assert_eq!(narrow.as_primitive::<Float32Type>(), &Float32Array::from(vec![Some(1e15), None]));
    }

    #[test]
    fn casts_that_arrow_rounds_once_are_left_to_it() {
        for (digits, scale) in [(15, 0), (15, 15), (7, 10)] {
            assert!(
                !NearestFloat::is_for(&DataType::Decimal128(digits, scale), &DataType::Float64),
                "{digits} {scale}"
            );
            let most = 10_i128.pow(digits.into()) - 1;
            for units in (0..200).map(|n| most - n * n * 7_919).filter(|units| *units > 0) {
                let text: f64 = parsed(&units, scale);
                assert_eq!(units as f64 / 10_f64.powi(scale.into()), text, "{units} {scale}");
            }
        }
    }
}
