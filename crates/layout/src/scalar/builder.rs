//! Builds columns of source values from the text of keys, qualifiers and cells.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, BooleanBuilder, Date32Builder, Decimal128Builder, Float64Builder, Int64Builder, StringBuilder,
    TimestampMicrosecondBuilder, UInt64Builder,
};

use crate::scalar::value::Scalar;
use crate::schema::FieldType;
use crate::time::DAY;
use crate::time::text::{read_date, read_rfc3339};

/// A column builder for any source type. The `push` functions return whether the value fits the type.
pub(crate) enum ColumnBuilder {
    UInt(UInt64Builder),
    Int(Int64Builder),
    Float(Float64Builder),
    Decimal(Decimal128Builder, u8, u8),
    Text(StringBuilder),
    Bool(BooleanBuilder),
    Time(TimestampMicrosecondBuilder),
    Date(Date32Builder),
}

impl ColumnBuilder {
    /// An empty builder for values of type `kind`.
    pub(crate) fn new(kind: FieldType, capacity: usize) -> Self {
        match kind {
            FieldType::UInt64 => Self::UInt(UInt64Builder::with_capacity(capacity)),
            FieldType::Int64 => Self::Int(Int64Builder::with_capacity(capacity)),
            FieldType::Float64 => Self::Float(Float64Builder::with_capacity(capacity)),
            FieldType::Decimal { precision, scale } => {
                Self::Decimal(Decimal128Builder::with_capacity(capacity), precision, scale)
            }
            FieldType::Text => Self::Text(StringBuilder::with_capacity(capacity, capacity * 8)),
            FieldType::Bool => Self::Bool(BooleanBuilder::with_capacity(capacity)),
            FieldType::Timestamp => Self::Time(TimestampMicrosecondBuilder::with_capacity(capacity)),
            FieldType::Date => Self::Date(Date32Builder::with_capacity(capacity)),
        }
    }

    /// Appends a null, which every type has.
    pub(crate) fn push_null(&mut self) {
        match self {
            Self::UInt(builder) => builder.append_null(),
            Self::Int(builder) => builder.append_null(),
            Self::Float(builder) => builder.append_null(),
            Self::Decimal(builder, ..) => builder.append_null(),
            Self::Text(builder) => builder.append_null(),
            Self::Bool(builder) => builder.append_null(),
            Self::Time(builder) => builder.append_null(),
            Self::Date(builder) => builder.append_null(),
        }
    }

    /// Appends an unsigned integer.
    pub(crate) fn push_unsigned(&mut self, value: u64) -> bool {
        match self {
            Self::UInt(builder) => builder.append_value(value),
            Self::Int(builder) => match i64::try_from(value) {
                Ok(value) => builder.append_value(value),
                Err(_) => return false,
            },
            _ => return false,
        }
        true
    }

    /// Appends a 64-bit value in its big-endian form, of an integer or a time.
    pub(crate) fn push_raw(&mut self, value: u64) -> bool {
        match self {
            Self::UInt(builder) => builder.append_value(value),
            Self::Int(builder) => builder.append_value(value.cast_signed()),
            Self::Time(builder) => builder.append_value(value.cast_signed()),
            _ => return false,
        }
        true
    }

    /// Appends a time in microseconds; a date column takes its day.
    pub(crate) fn push_time(&mut self, time_us: i64) -> bool {
        match self {
            Self::Time(builder) => builder.append_value(time_us),
            Self::Date(builder) => match i32::try_from(time_us.div_euclid(DAY)) {
                Ok(days) => builder.append_value(days),
                Err(_) => return false,
            },
            _ => return false,
        }
        true
    }

    /// Appends a value, which must be of the column's type.
    pub(crate) fn push_scalar(&mut self, scalar: &Scalar) -> bool {
        match (self, scalar) {
            (Self::UInt(builder), Scalar::UInt64(value)) => builder.append_value(*value),
            (Self::Int(builder), Scalar::Int64(value)) => builder.append_value(*value),
            (Self::Float(builder), Scalar::Float64(value)) => builder.append_value(*value),
            (Self::Decimal(builder, ..), Scalar::Decimal(value)) => builder.append_value(*value),
            (Self::Text(builder), Scalar::Text(value)) => builder.append_value(value),
            (Self::Bool(builder), Scalar::Bool(value)) => builder.append_value(*value),
            (Self::Time(builder), Scalar::Timestamp(value)) => builder.append_value(*value),
            (Self::Date(builder), Scalar::Date(value)) => builder.append_value(*value),
            _ => return false,
        }
        true
    }

    /// Appends the value that `bytes` are the text of, in the form of cells with encoding `text`.
    pub(crate) fn push_text(&mut self, bytes: &[u8]) -> bool {
        let Ok(text) = std::str::from_utf8(bytes) else { return false };

        match self {
            Self::UInt(builder) => text.parse().is_ok_and(|value| {
                builder.append_value(value);
                true
            }),
            Self::Int(builder) => text.parse().is_ok_and(|value| {
                builder.append_value(value);
                true
            }),
            Self::Float(builder) => text.parse().is_ok_and(|value| {
                builder.append_value(value);
                true
            }),
            Self::Decimal(builder, _, scale) => read_decimal(text, *scale).is_some_and(|value| {
                builder.append_value(value);
                true
            }),
            Self::Text(builder) => {
                builder.append_value(text);
                true
            }
            Self::Bool(builder) => text.parse().is_ok_and(|value| {
                builder.append_value(value);
                true
            }),
            Self::Time(builder) => read_rfc3339(text).is_some_and(|time| {
                builder.append_value(time);
                true
            }),
            Self::Date(builder) => read_date(text).and_then(|days| i32::try_from(days).ok()).is_some_and(|days| {
                builder.append_value(days);
                true
            }),
        }
    }

    /// The column of all values.
    pub(crate) fn finish(self) -> Result<ArrayRef, arrow::error::ArrowError> {
        Ok(match self {
            Self::UInt(mut builder) => Arc::new(builder.finish()),
            Self::Int(mut builder) => Arc::new(builder.finish()),
            Self::Float(mut builder) => Arc::new(builder.finish()),
            Self::Decimal(mut builder, precision, scale) => {
                Arc::new(builder.finish().with_precision_and_scale(precision, scale.cast_signed())?)
            }
            Self::Text(mut builder) => Arc::new(builder.finish()),
            Self::Bool(mut builder) => Arc::new(builder.finish()),
            Self::Time(mut builder) => Arc::new(builder.finish().with_timezone("UTC")),
            Self::Date(mut builder) => Arc::new(builder.finish()),
        })
    }
}

/// The digits of a decimal with exactly `scale` of them after the point.
fn read_decimal(text: &str, scale: u8) -> Option<i128> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    if whole.is_empty() || fraction.len() != usize::from(scale) {
        return None;
    }
    let value = whole.bytes().chain(fraction.bytes()).try_fold(0i128, |value, byte| {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 { None } else { value.checked_mul(10)?.checked_add(i128::from(digit)) }
    })?;
    Some(if negative { -value } else { value })
}
