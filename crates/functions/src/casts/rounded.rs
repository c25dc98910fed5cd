//! Rounds casts of fractions to integers as PostgreSQL and DuckDB do: decimals half away from zero, floats half to
//! even. DataFusion 55.2 truncates.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Float64Array};
use arrow::compute::{CastOptions, cast, cast_with_options};
use arrow::datatypes::{DataType, Decimal128Type, Float64Type};
use datafusion::common::DFSchema;
use datafusion::error::Result;
use datafusion::logical_expr::Expr;

use crate::conversion::{Conversion, converted};

/// Replaces `expr` by the function, if it casts a fraction to an integer.
pub fn rounding_cast(expr: Expr, schema: &DFSchema) -> Expr {
    converted::<Rounded>(expr, schema)
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Rounded;

impl Conversion for Rounded {
    const NAME: &str = "rounded";

    fn is_for(from: &DataType, to: &DataType) -> bool {
        let is_fraction = match from {
            DataType::Decimal128(_, scale) => *scale > 0,
            kind => kind.is_floating(),
        };
        is_fraction && to.is_integer()
    }

    fn convert(values: &ArrayRef, to: &DataType, or_null: bool) -> Result<ArrayRef> {
        let whole: ArrayRef = match values.data_type() {
            DataType::Decimal128(_, scale) => {
                let unit = 10_i128.checked_pow(scale.cast_unsigned().into()).unwrap_or(i128::MAX);
                let decimals = values.as_primitive::<Decimal128Type>();
                let whole = decimals.unary::<_, Decimal128Type>(|value| half_away(value, unit));
                Arc::new(whole.with_precision_and_scale(38, 0)?)
            }
            _ => {
                let floats = cast(values, &DataType::Float64)?;
                let whole: Float64Array = floats.as_primitive::<Float64Type>().unary(f64::round_ties_even);
                Arc::new(whole)
            }
        };
        let options = CastOptions { safe: or_null, ..CastOptions::default() };
        Ok(cast_with_options(&whole, to, &options)?)
    }
}

/// `value / unit`, where halves are rounded away from zero, as SQL rounds decimals.
fn half_away(value: i128, unit: i128) -> i128 {
    let (whole, rest) = (value / unit, value % unit);
    // Doubling the remainder could overflow.
    let up = rest.unsigned_abs() >= unit.unsigned_abs() - rest.unsigned_abs();
    whole + if up { value.signum() } else { 0 }
}
