//! Argument types of functions.

use arrow::datatypes::DataType;
use datafusion::common::plan_err;
use datafusion::error::Result;

/// Coerces the only argument of a function to bytes.
pub(crate) fn coerce_to_one_bytes(function: &str, kinds: &[DataType]) -> Result<Vec<DataType>> {
    match kinds {
        [kind] if is_bytes(kind) || *kind == DataType::Null => Ok(vec![DataType::Binary]),
        [kind] => plan_err!("{function} takes bytes, not {kind}"),
        _ => plan_err!("{function} takes one argument, bytes"),
    }
}

pub(crate) fn is_bytes(kind: &DataType) -> bool {
    matches!(kind, DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_))
}

/// Whether values of `kind` are text, in any of Arrow's three representations.
pub fn is_text(kind: &DataType) -> bool {
    matches!(kind, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View)
}
