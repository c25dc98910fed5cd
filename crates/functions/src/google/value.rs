//! Values of one row: what the functions take and give.

use std::borrow::Cow;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BinaryBuilder, BooleanArray, Date32Array, Float32Array, Float64Array, Int64Array,
    ListArray, StringBuilder, TimestampMicrosecondArray,
};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::datatypes::{
    DataType, Date32Type, Field, Float32Type, Float64Type, Int64Type, TimeUnit, TimestampMicrosecondType,
};
use arrow::util::display::array_value_to_string;
use datafusion::common::exec_err;
use datafusion::error::Result;

/// A value of a column at one row.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value<'a> {
    Null,
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(Cow<'a, str>),
    Bytes(Cow<'a, [u8]>),
    /// Microseconds since the epoch.
    Time(i64),
    /// Days since the epoch.
    Date(i32),
    List(Vec<Value<'a>>),
}

impl Value<'_> {
    pub(crate) fn text(text: impl Into<String>) -> Self {
        Value::Text(Cow::Owned(text.into()))
    }

    pub(crate) fn bytes(bytes: impl Into<Vec<u8>>) -> Self {
        Value::Bytes(Cow::Owned(bytes.into()))
    }

    /// Bytes of text or bytes; empty for other values, which the coercion of arguments excludes.
    pub(crate) fn as_bytes(&self) -> &[u8] {
        match self {
            Value::Text(text) => text.as_bytes(),
            Value::Bytes(bytes) => bytes,
            _ => &[],
        }
    }

    /// About the bytes that the value takes in memory.
    pub(crate) fn bytes_held(&self) -> usize {
        match self {
            Value::List(items) => items.iter().map(|item| size_of::<Self>() + item.bytes_held()).sum(),
            value => value.as_bytes().len(),
        }
    }

    /// Text; empty for other values, which the coercion of arguments excludes.
    pub(crate) fn as_text(&self) -> &str {
        match self {
            Value::Text(text) => text,
            _ => "",
        }
    }

    pub(crate) fn as_int(&self) -> i64 {
        match self {
            Value::Int(value) => *value,
            _ => 0,
        }
    }

    pub(crate) fn as_float(&self) -> f64 {
        match self {
            Value::Float(value) => *value,
            Value::Int(value) => *value as f64,
            _ => 0.0,
        }
    }

    pub(crate) fn as_time(&self) -> i64 {
        match self {
            Value::Time(micros) => *micros,
            _ => 0,
        }
    }

    pub(crate) fn as_date(&self) -> i32 {
        match self {
            Value::Date(days) => *days,
            _ => 0,
        }
    }

    pub(crate) fn as_list(&self) -> &[Self] {
        match self {
            Value::List(items) => items,
            _ => &[],
        }
    }
}

/// The type of instants.
pub(crate) fn instant() -> DataType {
    DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()))
}

/// The value of `array` at `row`. A type without a value of its own, such as a struct, is its text.
pub(crate) fn value_at(array: &dyn Array, row: usize) -> Value<'_> {
    if array.is_null(row) {
        return Value::Null;
    }
    let value = match array.data_type() {
        DataType::Null => Some(Value::Null),
        DataType::Boolean => array.as_boolean_opt().map(|array| Value::Bool(array.value(row))),
        DataType::Int64 => array.as_primitive_opt::<Int64Type>().map(|array| Value::Int(array.value(row))),
        DataType::Float64 => array.as_primitive_opt::<Float64Type>().map(|array| Value::Float(array.value(row))),
        DataType::Float32 => {
            array.as_primitive_opt::<Float32Type>().map(|array| Value::Float(f64::from(array.value(row))))
        }
        DataType::Utf8 => array.as_string_opt::<i32>().map(|array| Value::Text(Cow::Borrowed(array.value(row)))),
        DataType::Utf8View => array.as_string_view_opt().map(|array| Value::Text(Cow::Borrowed(array.value(row)))),
        DataType::Binary => array.as_binary_opt::<i32>().map(|array| Value::Bytes(Cow::Borrowed(array.value(row)))),
        DataType::BinaryView => array.as_binary_view_opt().map(|array| Value::Bytes(Cow::Borrowed(array.value(row)))),
        DataType::Timestamp(TimeUnit::Microsecond, _) => {
            array.as_primitive_opt::<TimestampMicrosecondType>().map(|array| Value::Time(array.value(row)))
        }
        DataType::Date32 => array.as_primitive_opt::<Date32Type>().map(|array| Value::Date(array.value(row))),
        DataType::List(_) => array.as_list_opt::<i32>().map(|lists| {
            let offsets = lists.value_offsets();
            let (start, end) = (offsets.get(row).copied(), offsets.get(row + 1).copied());
            let range = start.unwrap_or_default() as usize..end.unwrap_or_default() as usize;
            Value::List(range.map(|item| value_at(lists.values().as_ref(), item)).collect())
        }),
        _ => None,
    };
    value.unwrap_or_else(|| Value::text(array_value_to_string(array, row).unwrap_or_default()))
}

/// The number of rows that `values` may become `kind`; other types are refused.
///
/// # Errors
/// If a function gives a type that it does not declare.
pub(crate) fn build(values: &[Value<'_>], kind: &DataType) -> Result<ArrayRef> {
    Ok(match kind {
        DataType::Boolean => Arc::new(BooleanArray::from_iter(values.iter().map(|value| match value {
            Value::Bool(value) => Some(*value),
            _ => None,
        }))),
        DataType::Int64 => Arc::new(Int64Array::from_iter(values.iter().map(|value| match value {
            Value::Int(value) => Some(*value),
            _ => None,
        }))),
        DataType::Float64 => Arc::new(Float64Array::from_iter(values.iter().map(|value| match value {
            Value::Float(value) => Some(*value),
            _ => None,
        }))),
        DataType::Float32 => Arc::new(Float32Array::from_iter(values.iter().map(|value| match value {
            Value::Float(value) => Some(*value as f32),
            _ => None,
        }))),
        DataType::Date32 => Arc::new(Date32Array::from_iter(values.iter().map(|value| match value {
            Value::Date(value) => Some(*value),
            _ => None,
        }))),
        DataType::Timestamp(TimeUnit::Microsecond, zone) => {
            let times = values.iter().map(|value| match value {
                Value::Time(value) => Some(*value),
                _ => None,
            });
            Arc::new(TimestampMicrosecondArray::from_iter(times).with_timezone_opt(zone.clone()))
        }
        DataType::Utf8 => {
            let mut texts = StringBuilder::new();
            for value in values {
                match value {
                    Value::Text(text) => texts.append_value(text),
                    _ => texts.append_null(),
                }
            }
            Arc::new(texts.finish())
        }
        DataType::Binary => {
            let mut bytes = BinaryBuilder::new();
            for value in values {
                match value {
                    Value::Bytes(value) => bytes.append_value(value),
                    _ => bytes.append_null(),
                }
            }
            Arc::new(bytes.finish())
        }
        DataType::List(item) => Arc::new(list(values, item)?),
        kind => return exec_err!("a function of GoogleSQL gives no {kind}"),
    })
}

fn list(values: &[Value<'_>], item: &Arc<Field>) -> Result<ListArray> {
    let lengths = values.iter().map(|value| value.as_list().len());
    let offsets = OffsetBuffer::from_lengths(lengths);
    let nulls = NullBuffer::from_iter(values.iter().map(|value| matches!(value, Value::List(_))));
    let items: Vec<Value<'_>> = values.iter().flat_map(|value| value.as_list().iter().cloned()).collect();
    let items = build(&items, item.data_type())?;
    Ok(ListArray::try_new(Arc::clone(item), offsets, items, Some(nulls))?)
}
