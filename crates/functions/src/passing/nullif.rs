//! `nullif` of floats with one zero. DataFusion 55.2 compares bits: `nullif(-0.0, 0)` is not null, while `-0.0 = 0` is true.

use std::sync::Arc;

use arrow::array::Datum;
use arrow::compute::kernels::cmp;
use arrow::compute::nullif;
use datafusion::common::utils::normalize_float_zero;
use datafusion::error::Result;
use datafusion::functions::core;
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF};
use datafusion::scalar::ScalarValue;

use crate::overridden::{Coercion, Override, overridden};

/// DataFusion's `nullif`, for which -0.0 and 0.0 are one value.
pub(crate) fn function() -> Arc<ScalarUDF> {
    overridden(core::nullif(), NullIf)
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct NullIf;

impl Override for NullIf {
    fn coerced(&self) -> Option<Coercion> {
        None
    }

    fn result(&self, args: &ScalarFunctionArgs) -> Result<Option<ColumnarValue>> {
        let [value, other] = args.args.as_slice() else { return Ok(None) };
        if !value.data_type().is_floating() || value.data_type() != other.data_type() {
            return Ok(None);
        }
        let are_scalars = matches!((value, other), (ColumnarValue::Scalar(_), ColumnarValue::Scalar(_)));
        let rows = if are_scalars { 1 } else { args.number_rows };
        let (value, other) = (value.to_array(rows)?, other.to_array(rows)?);
        let (left, right) = (normalize_float_zero(&value), normalize_float_zero(&other));
        let equal = cmp::eq(&left.as_ref() as &dyn Datum, &right.as_ref() as &dyn Datum)?;
        let result = nullif(&value, &equal)?;
        Ok(Some(match are_scalars {
            true => ColumnarValue::Scalar(ScalarValue::try_from_array(&result, 0)?),
            false => ColumnarValue::Array(result),
        }))
    }
}
