//! `hll_estimate(bytes)`: the estimated count of distinct values in a HyperLogLog sketch.

use std::sync::Arc;

use arrow::array::{Array, AsArray, Int64Array};
use arrow::datatypes::DataType;
use datafusion::common::{DataFusionError, ScalarValue};
use datafusion::error::Result;
use datafusion::logical_expr::{ColumnarValue, ScalarUDF, Volatility, create_udf};
use tidetable_layout::hll::Sketch;

pub(crate) fn function() -> Arc<ScalarUDF> {
    let work = Arc::new(|args: &[ColumnarValue]| call(args));
    let function = create_udf("hll_estimate", vec![DataType::Binary], DataType::Int64, Volatility::Immutable, work);
    Arc::new(function)
}

fn call(args: &[ColumnarValue]) -> Result<ColumnarValue> {
    match args {
        [ColumnarValue::Scalar(ScalarValue::Binary(bytes))] => {
            let estimate = bytes.as_deref().map(estimate).transpose()?;
            Ok(ColumnarValue::Scalar(ScalarValue::Int64(estimate)))
        }
        [ColumnarValue::Array(array)] => Ok(ColumnarValue::Array(Arc::new(estimates(array.as_ref())?))),
        _ => Err(unlike()),
    }
}

fn estimates(array: &dyn Array) -> Result<Int64Array> {
    let sketches = array.as_binary_opt::<i32>().ok_or_else(unlike)?;
    sketches.iter().map(|bytes| bytes.map(estimate).transpose()).collect()
}

/// Null stays null; bytes that are not a sketch are an error.
fn estimate(bytes: &[u8]) -> Result<i64> {
    let sketch = Sketch::read(bytes).map_err(|error| DataFusionError::External(Box::new(error)))?;
    Ok(i64::try_from(sketch.estimate()).unwrap_or(i64::MAX))
}

fn unlike() -> DataFusionError {
    DataFusionError::Internal("hll_estimate takes one column of bytes".to_owned())
}
