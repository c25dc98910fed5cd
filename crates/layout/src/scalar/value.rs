//! Single values: owned in predicates, borrowed from columns when templates are printed.

use crate::schema::FieldType;
use crate::time::calendar::{Calendar, civil_from_days};
use crate::time::text::{write_date, write_rfc3339};

/// One value of a record field, owned: in predicates, and as parsed.
#[derive(Debug, Clone, PartialEq)]
pub enum Scalar {
    /// A value of a `uint64` field.
    UInt64(u64),
    /// A value of an `int64` field.
    Int64(i64),
    /// A value of a `float64` field.
    Float64(f64),
    /// The digits of a decimal, in units of the field's scale.
    Decimal(i128),
    /// A value of a text field.
    Text(String),
    /// A value of a bool field.
    Bool(bool),
    /// An instant, in microseconds since the epoch.
    Timestamp(i64),
    /// A date, in days since the epoch.
    Date(i32),
}

impl Scalar {
    /// The scalar as a value of `kind`; `None` if it is of another type.
    pub(crate) fn typed(&self, kind: FieldType) -> Option<ScalarRef<'_>> {
        Some(match (self, kind) {
            (Self::UInt64(value), FieldType::UInt64) => ScalarRef::UInt(*value),
            (Self::UInt64(value), FieldType::Int64) => ScalarRef::Int(i64::try_from(*value).ok()?),
            (Self::Int64(value), FieldType::Int64) => ScalarRef::Int(*value),
            (Self::Int64(value), FieldType::UInt64) => ScalarRef::UInt(u64::try_from(*value).ok()?),
            (Self::Float64(value), FieldType::Float64) => ScalarRef::Float(*value),
            (Self::Decimal(digits), FieldType::Decimal { scale, .. }) => ScalarRef::Decimal(*digits, scale),
            (Self::Text(text), FieldType::Text) => ScalarRef::Text(text),
            (Self::Bool(value), FieldType::Bool) => ScalarRef::Bool(*value),
            (Self::Timestamp(time), FieldType::Timestamp) => ScalarRef::Time(*time),
            (Self::Date(days), FieldType::Date) => ScalarRef::Date(*days),
            _ => return None,
        })
    }

    /// The value as an integer that sorts as the values do.
    pub(crate) fn integer(&self) -> Option<i128> {
        Some(match self {
            Self::UInt64(value) => (*value).into(),
            Self::Int64(value) | Self::Timestamp(value) => (*value).into(),
            Self::Date(days) => (*days).into(),
            _ => return None,
        })
    }
}

/// A value that is not null, borrowed from its column.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum ScalarRef<'a> {
    UInt(u64),
    Int(i64),
    Float(f64),
    /// The digits of a decimal, and its scale.
    Decimal(i128, u8),
    Text(&'a str),
    Bool(bool),
    /// An instant, in microseconds since the epoch.
    Time(i64),
    /// A date, in days since the epoch.
    Date(i32),
}

impl ScalarRef<'_> {
    /// Appends the value as text, the form of cells with encoding `text`.
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
                let (year, month, day) = civil_from_days(days.into());
                write_date(year, month, day, out);
            }
        }
    }
}

/// Appends the digits of a decimal, with `scale` of them after the point.
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
