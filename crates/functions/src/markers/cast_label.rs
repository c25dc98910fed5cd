//! A function that names a cast. DataFusion's names of expressions do not show casts, and refuse two aggregates, window functions
//! or group keys of one name: `sum(i), sum(CAST(i AS DECIMAL))`.

use std::sync::Arc;

use arrow::datatypes::{DataType, FieldRef};
use datafusion::common::internal_err;
use datafusion::error::Result;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

/// Name of the function, which returns its first argument; the second is text that shows in the name of the call.
pub const CAST_LABEL: &str = "cast_label";

/// The first argument of `expr`, if it is a call of the function; otherwise `expr`.
pub fn without_cast_label(expr: Expr) -> (Expr, bool) {
    match expr {
        Expr::ScalarFunction(ScalarFunction { func, mut args }) if func.name() == CAST_LABEL && !args.is_empty() => {
            (args.swap_remove(0), true)
        }
        expr => (expr, false),
    }
}

pub(crate) fn function() -> Arc<ScalarUDF> {
    Arc::new(ScalarUDF::new_from_impl(CastLabel { signature: Signature::any(2, Volatility::Immutable) }))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct CastLabel {
    signature: Signature,
}

impl ScalarUDFImpl for CastLabel {
    fn name(&self) -> &str {
        CAST_LABEL
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        match types.first() {
            Some(kind) => Ok(kind.clone()),
            None => internal_err!("{CAST_LABEL} without an argument"),
        }
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        match args.arg_fields.first() {
            Some(field) => Ok(Arc::clone(field)),
            None => internal_err!("{CAST_LABEL} without an argument"),
        }
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        match args.args.into_iter().next() {
            Some(value) => Ok(value),
            None => internal_err!("{CAST_LABEL} without an argument"),
        }
    }
}
