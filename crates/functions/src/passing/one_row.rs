//! The value of a subquery that may have one row at most.

use std::sync::Arc;

use arrow::array::AsArray;
use arrow::datatypes::{DataType, Int64Type};
use datafusion::common::{exec_err, internal_err};
use datafusion::error::Result;
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility};

const NAME: &str = "one_row";

/// A function of the number of rows and the value of one of them, which fails if there are several.
pub fn one_row() -> Arc<ScalarUDF> {
    Arc::new(ScalarUDF::new_from_impl(OneRow { signature: Signature::any(2, Volatility::Immutable) }))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct OneRow {
    signature: Signature,
}

impl ScalarUDFImpl for OneRow {
    fn name(&self) -> &str {
        NAME
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, kinds: &[DataType]) -> Result<DataType> {
        match kinds {
            [_, value] => Ok(value.clone()),
            _ => internal_err!("{NAME} takes two values"),
        }
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [rows, value] = args.args.as_slice() else { return internal_err!("{NAME} takes two values") };
        let rows = rows.to_array(args.number_rows)?;
        let Some(counts) = rows.as_primitive_opt::<Int64Type>() else {
            return internal_err!("{NAME} takes a number of rows");
        };
        if counts.iter().flatten().any(|rows| rows > 1) {
            return exec_err!(
                "a subquery in place of a value has more than one row; take one with an aggregate function, or ORDER BY and LIMIT 1"
            );
        }
        Ok(value.clone())
    }
}
