//! What a value is: its type in memory, and the Bigtable bytes its encoding makes of it.

use std::ops::RangeInclusive;

use arrow::datatypes::{DataType, TimeUnit};
use serde::{Deserialize, Serialize};

/// The times that columns hold, microseconds since the epoch: the years 1 to 9999, all of which have four digits wherever
/// they are written.
pub const TIMES: RangeInclusive<i64> = -62_135_596_800_000_000..=253_402_300_799_999_999;

/// Type of a source column, as a job file declares it. One Arrow type each, see [`FieldType::arrow`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FieldType {
    /// Unsigned 64-bit integer.
    UInt64,
    /// Signed 64-bit integer.
    Int64,
    /// IEEE double.
    Float64,
    /// Exact decimal: `precision` digits in all (1..=38), `scale` of them after the point.
    Decimal {
        /// Digits in all.
        precision: u8,
        /// Digits after the point.
        scale: u8,
    },
    /// UTF-8 text.
    Text,
    /// True or false.
    Bool,
    /// Microseconds since the epoch, UTC.
    Timestamp,
    /// Days since the epoch.
    Date,
}

impl FieldType {
    /// The Arrow type that holds this type in batches and blocks.
    pub fn arrow(self) -> DataType {
        match self {
            Self::UInt64 => DataType::UInt64,
            Self::Int64 => DataType::Int64,
            Self::Float64 => DataType::Float64,
            Self::Decimal { precision, scale } => DataType::Decimal128(precision, scale.cast_signed()),
            Self::Text => DataType::Utf8,
            Self::Bool => DataType::Boolean,
            Self::Timestamp => DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
            Self::Date => DataType::Date32,
        }
    }
}

/// Type of a stored column of values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ValueType {
    /// Every cell is empty: the qualifier is the datum. Held as a Boolean array that is true or null.
    Empty,
    /// Arbitrary bytes, an Arrow Binary array.
    Bytes,
    /// A typed value.
    Field(FieldType),
}

impl ValueType {
    /// The Arrow type of a block's column of this type.
    pub fn arrow(self) -> DataType {
        match self {
            Self::Empty => DataType::Boolean,
            Self::Bytes => DataType::Binary,
            Self::Field(field) => field.arrow(),
        }
    }
}

/// How a typed value becomes the bytes of a cell.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Encoding {
    /// Text, as the guides print it: integers plain, decimals with their scale, floats in their
    /// shortest round-trip form, times RFC 3339 in UTC.
    #[default]
    Text,
    /// Eight bytes, big-endian, two's complement.
    Int64,
    /// Eight bytes, big-endian, IEEE double.
    Float64,
    /// The value's own bytes (text and bytes only).
    Bytes,
    /// A JSON literal: text and times quoted, decimals as numbers with their scale.
    Json,
}
