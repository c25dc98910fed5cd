//! A function that gives its argument, of which the optimizer knows nothing.

use std::sync::Arc;

use arrow::datatypes::{DataType, FieldRef};
use datafusion::common::internal_err;
use datafusion::error::Result;
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

const NAME: &str = "opaque";

/// The function that hides its argument from the rules of the optimizer and returns it unchanged.
pub fn opaque() -> Arc<ScalarUDF> {
    Arc::new(ScalarUDF::new_from_impl(Opaque { signature: Signature::any(1, Volatility::Immutable) }))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Opaque {
    signature: Signature,
}

impl ScalarUDFImpl for Opaque {
    fn name(&self) -> &str {
        NAME
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, kinds: &[DataType]) -> Result<DataType> {
        match kinds {
            [kind] => Ok(kind.clone()),
            _ => internal_err!("{NAME} takes one value"),
        }
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        match args.arg_fields {
            [field] => Ok(Arc::clone(field)),
            _ => internal_err!("{NAME} takes one value"),
        }
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        match args.args.as_slice() {
            [value] => Ok(value.clone()),
            _ => internal_err!("{NAME} takes one value"),
        }
    }
}
