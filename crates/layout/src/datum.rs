//! One value at a time, borrowed from a column: what templates print.

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Date32Array, Decimal128Array, Float64Array, Int64Array, StringArray,
    TimestampMicrosecondArray, UInt64Array,
};
use arrow::datatypes::{
    DataType, Date32Type, Decimal128Type, Float64Type, Int64Type, TimeUnit, TimestampMicrosecondType, UInt64Type,
};

use crate::civil::{Calendar, civil_of_days};
use crate::time_format::{write_date, write_rfc3339};

/// A value that is not null.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Datum<'a> {
    UInt(u64),
    Int(i64),
    Float(f64),
    /// Unscaled digits and scale.
    Decimal(i128, u8),
    Text(&'a str),
    Bool(bool),
    /// Microseconds since the epoch.
    Time(i64),
    /// Days since the epoch.
    Date(i32),
}

impl Datum<'_> {
    /// Appends the value as text, as `semantics` of cells says.
    pub(crate) fn write_text(self, calendar: &mut Calendar, out: &mut Vec<u8>) {
        match self {
            Self::UInt(value) => out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes()),
            Self::Int(value) => out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes()),
            Self::Float(value) => out.extend_from_slice(zmij::Buffer::new().format(value).as_bytes()),
            Self::Decimal(digits, scale) => write_decimal(digits, scale, out),
            Self::Text(text) => out.extend_from_slice(text.as_bytes()),
            Self::Bool(value) => out.extend_from_slice(if value { b"true" } else { b"false" }),
            Self::Time(time) => write_rfc3339(time, calendar, out),
            Self::Date(days) => {
                let (year, month, day) = civil_of_days(days.into());
                write_date(year, month, day, out);
            }
        }
    }
}

fn write_decimal(digits: i128, scale: u8, out: &mut Vec<u8>) {
    if digits < 0 {
        out.push(b'-');
    }
    let mut buffer = itoa::Buffer::new();
    let text = buffer.format(digits.unsigned_abs()).as_bytes();
    let scale = usize::from(scale);
    let whole = text.len().saturating_sub(scale);
    let (integer, fraction) = text.split_at(whole);
    out.extend_from_slice(if integer.is_empty() { b"0" } else { integer });
    if scale > 0 {
        out.push(b'.');
        out.resize(out.len() + (scale - fraction.len()), b'0');
        out.extend_from_slice(fraction);
    }
}

/// A column of a batch with its type found out once.
pub(crate) enum View<'a> {
    UInt(&'a UInt64Array),
    Int(&'a Int64Array),
    Float(&'a Float64Array),
    Decimal(&'a Decimal128Array, u8),
    Text(&'a StringArray),
    Bool(&'a BooleanArray),
    Time(&'a TimestampMicrosecondArray),
    Date(&'a Date32Array),
    /// Of a type no source column has; reads as null.
    Other,
}

impl<'a> View<'a> {
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

    pub(crate) fn get(&self, index: usize) -> Option<Datum<'a>> {
        match self {
            Self::UInt(array) => array.is_valid(index).then(|| Datum::UInt(array.value(index))),
            Self::Int(array) => array.is_valid(index).then(|| Datum::Int(array.value(index))),
            Self::Float(array) => array.is_valid(index).then(|| Datum::Float(array.value(index))),
            Self::Decimal(array, scale) => array.is_valid(index).then(|| Datum::Decimal(array.value(index), *scale)),
            Self::Text(array) => array.is_valid(index).then(|| Datum::Text(array.value(index))),
            Self::Bool(array) => array.is_valid(index).then(|| Datum::Bool(array.value(index))),
            Self::Time(array) => array.is_valid(index).then(|| Datum::Time(array.value(index))),
            Self::Date(array) => array.is_valid(index).then(|| Datum::Date(array.value(index))),
            Self::Other => None,
        }
    }

    /// The values as raw 64-bit keys, where equal keys mean equal values.
    pub(crate) fn raw(&self) -> Option<Raw<'a>> {
        match self {
            Self::UInt(array) => Some(Raw::Unsigned(array.values())),
            Self::Int(array) => Some(Raw::Signed(array.values())),
            Self::Time(array) => Some(Raw::Signed(array.values())),
            _ => None,
        }
    }
}

/// Values of a 64-bit column, nulls included.
pub(crate) enum Raw<'a> {
    Unsigned(&'a [u64]),
    Signed(&'a [i64]),
}

/// Views of all columns.
pub(crate) fn views(columns: &[ArrayRef]) -> Vec<View<'_>> {
    columns.iter().map(|column| View::new(column.as_ref())).collect()
}
