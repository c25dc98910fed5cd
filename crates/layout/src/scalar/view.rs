//! Columns of a batch, with their types resolved once.

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Date32Array, Decimal128Array, Float64Array, Int64Array, StringArray,
    TimestampMicrosecondArray, UInt64Array,
};
use arrow::datatypes::{
    DataType, Date32Type, Decimal128Type, Float64Type, Int64Type, TimeUnit, TimestampMicrosecondType, UInt64Type,
};

use crate::scalar::value::ScalarRef;

/// A column of a batch, downcast once, so that reading a value is one branch.
#[derive(Debug)]
pub(crate) enum ColumnView<'a> {
    UInt(&'a UInt64Array),
    Int(&'a Int64Array),
    Float(&'a Float64Array),
    Decimal(&'a Decimal128Array, u8),
    Text(&'a StringArray),
    Bool(&'a BooleanArray),
    Time(&'a TimestampMicrosecondArray),
    Date(&'a Date32Array),
    /// A type that no source column has; reads as null.
    Other,
}

impl<'a> ColumnView<'a> {
    pub(crate) fn new(array: &'a dyn Array) -> Self {
        match array.data_type() {
            DataType::UInt64 => array.as_primitive_opt::<UInt64Type>().map_or(Self::Other, Self::UInt),
            DataType::Int64 => array.as_primitive_opt::<Int64Type>().map_or(Self::Other, Self::Int),
            DataType::Float64 => array.as_primitive_opt::<Float64Type>().map_or(Self::Other, Self::Float),
            DataType::Decimal128(_, scale) => array
                .as_primitive_opt::<Decimal128Type>()
                .map_or(Self::Other, |array| Self::Decimal(array, u8::try_from(*scale).unwrap_or(0))),
            DataType::Utf8 => array.as_string_opt::<i32>().map_or(Self::Other, Self::Text),
            DataType::Boolean => array.as_boolean_opt().map_or(Self::Other, Self::Bool),
            DataType::Timestamp(TimeUnit::Microsecond, _) => {
                array.as_primitive_opt::<TimestampMicrosecondType>().map_or(Self::Other, Self::Time)
            }
            DataType::Date32 => array.as_primitive_opt::<Date32Type>().map_or(Self::Other, Self::Date),
            _ => Self::Other,
        }
    }

    /// The value at `index`; `None` for null.
    pub(crate) fn get(&self, index: usize) -> Option<ScalarRef<'a>> {
        match self {
            Self::UInt(array) => array.is_valid(index).then(|| ScalarRef::UInt(array.value(index))),
            Self::Int(array) => array.is_valid(index).then(|| ScalarRef::Int(array.value(index))),
            Self::Float(array) => array.is_valid(index).then(|| ScalarRef::Float(array.value(index))),
            Self::Decimal(array, scale) => {
                array.is_valid(index).then(|| ScalarRef::Decimal(array.value(index), *scale))
            }
            Self::Text(array) => array.is_valid(index).then(|| ScalarRef::Text(array.value(index))),
            Self::Bool(array) => array.is_valid(index).then(|| ScalarRef::Bool(array.value(index))),
            Self::Time(array) => array.is_valid(index).then(|| ScalarRef::Time(array.value(index))),
            Self::Date(array) => array.is_valid(index).then(|| ScalarRef::Date(array.value(index))),
            Self::Other => None,
        }
    }

    /// The values as 64-bit integers; equal integers mean equal values.
    pub(crate) fn raw(&self) -> Option<RawIntegers<'a>> {
        match self {
            Self::UInt(array) => Some(RawIntegers::Unsigned(array.values())),
            Self::Int(array) => Some(RawIntegers::Signed(array.values())),
            Self::Time(array) => Some(RawIntegers::Signed(array.values())),
            _ => None,
        }
    }
}

/// The values of a 64-bit column; entries of nulls are undefined.
pub(crate) enum RawIntegers<'a> {
    Unsigned(&'a [u64]),
    Signed(&'a [i64]),
}

/// Views of all columns of a batch.
pub(crate) fn column_views(columns: &[ArrayRef]) -> Vec<ColumnView<'_>> {
    columns.iter().map(|column| ColumnView::new(column.as_ref())).collect()
}
