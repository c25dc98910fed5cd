//! A function that makes a value, or the items of a list, comparable with another: decimals beside floats become floats, and other
//! numbers get a type that holds both exactly.
//!
//! `0.1 = ANY(list)` is planned by functions whose arguments DataFusion checks before any rule: beside a list of floats, of other
//! decimals, or of signed integers where the value is unsigned, it refuses the value.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::internal_err;
use datafusion::error::Result;
use datafusion::logical_expr::type_coercion::binary::comparison_coercion;
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility};

/// Name of the function, which returns its first argument, comparable with the second.
pub const COMPARABLE_WITH: &str = "comparable_with";

/// The type of a value of type `kind`, or of a list, beside one of type `other`.
pub fn comparable_type(kind: &DataType, other: &DataType) -> DataType {
    let (own, other) = (item(kind), item(other));
    let common = if own.is_decimal() && other.is_floating() {
        Some(other.clone())
    } else if own.is_floating() && other.is_decimal() {
        None
    } else if own.is_numeric() && other.is_numeric() && own != other {
        comparison_coercion(own, other)
    } else {
        None
    };
    let Some(common) = common else { return kind.clone() };
    match kind {
        DataType::List(field) => DataType::List(with_type(field, common)),
        DataType::LargeList(field) => DataType::LargeList(with_type(field, common)),
        DataType::FixedSizeList(field, length) => DataType::FixedSizeList(with_type(field, common), *length),
        _ => common,
    }
}

/// The same field of another type.
fn with_type(field: &Field, kind: DataType) -> FieldRef {
    Arc::new(field.clone().with_data_type(kind))
}

/// The type of the items of a list; that of another value itself.
fn item(kind: &DataType) -> &DataType {
    match kind {
        DataType::List(field) | DataType::LargeList(field) | DataType::FixedSizeList(field, _) => field.data_type(),
        kind => kind,
    }
}

pub(crate) fn function() -> Arc<ScalarUDF> {
    Arc::new(ScalarUDF::new_from_impl(ComparableWith { signature: Signature::any(2, Volatility::Immutable) }))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct ComparableWith {
    signature: Signature,
}

impl ScalarUDFImpl for ComparableWith {
    fn name(&self) -> &str {
        COMPARABLE_WITH
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        match types {
            [kind, other] => Ok(comparable_type(kind, other)),
            _ => internal_err!("{COMPARABLE_WITH} of {} arguments", types.len()),
        }
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let to = args.return_field.data_type().clone();
        match args.args.into_iter().next() {
            Some(value) => value.cast_to(&to, None),
            None => internal_err!("{COMPARABLE_WITH} without an argument"),
        }
    }
}
