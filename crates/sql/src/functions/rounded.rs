//! Casts of fractions to integers, rounded as PostgreSQL and DuckDB round: decimals half away from zero, floats half to even.
//! The engine (DataFusion 55.2) cuts the fraction off.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Float64Array};
use arrow::compute::{CastOptions, cast, cast_with_options};
use arrow::datatypes::{DataType, Decimal128Type, Field, FieldRef, Float64Type};
use datafusion::common::{DFSchema, ScalarValue, internal_err};
use datafusion::error::Result;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ExprSchemable, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};

/// `expr` with a function in its place, if it casts a fraction to an integer.
pub(crate) fn rounded(expr: Expr, schema: &DFSchema) -> Expr {
    let (inner, to, or_null) = match &expr {
        Expr::Cast(cast) => (&cast.expr, cast.field.data_type(), false),
        Expr::TryCast(cast) => (&cast.expr, cast.field.data_type(), true),
        _ => return expr,
    };
    let is_fraction = |kind: DataType| match kind {
        DataType::Decimal128(_, scale) => scale > 0,
        kind => kind.is_floating(),
    };
    if !to.is_integer() || !inner.get_type(schema).is_ok_and(is_fraction) {
        return expr;
    }
    let rounded = Rounded { to: to.clone(), or_null, signature: Signature::any(1, Volatility::Immutable) };
    let func = Arc::new(ScalarUDF::new_from_impl(rounded));
    match expr {
        Expr::Cast(cast) => Expr::ScalarFunction(ScalarFunction { func, args: vec![*cast.expr] }),
        Expr::TryCast(cast) => Expr::ScalarFunction(ScalarFunction { func, args: vec![*cast.expr] }),
        expr => expr,
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Rounded {
    to: DataType,
    /// Whether what does not fit is null, as for `TRY_CAST`.
    or_null: bool,
    signature: Signature,
}

impl ScalarUDFImpl for Rounded {
    fn name(&self) -> &str {
        "rounded"
    }

    /// As of the cast that it stands for.
    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        Ok(args.first().map(|expr| expr.schema_name().to_string()).unwrap_or_default())
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(self.to.clone())
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let nullable = self.or_null || args.arg_fields.iter().any(|field| field.is_nullable());
        Ok(Arc::new(Field::new(self.name(), self.to.clone(), nullable)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        match args.args.as_slice() {
            [ColumnarValue::Scalar(value)] => {
                let done = self.round(&value.to_array()?)?;
                Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&done, 0)?))
            }
            [ColumnarValue::Array(values)] => Ok(ColumnarValue::Array(self.round(values)?)),
            _ => internal_err!("a cast takes one value"),
        }
    }
}

impl Rounded {
    fn round(&self, values: &ArrayRef) -> Result<ArrayRef> {
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
        let options = CastOptions { safe: self.or_null, ..CastOptions::default() };
        Ok(cast_with_options(&whole, &self.to, &options)?)
    }
}

/// `value / unit`, rounded half away from zero.
fn half_away(value: i128, unit: i128) -> i128 {
    let (whole, rest) = (value / unit, value % unit);
    // Twice the rest may not fit.
    let up = rest.unsigned_abs() >= unit.unsigned_abs() - rest.unsigned_abs();
    whole + if up { value.signum() } else { 0 }
}
