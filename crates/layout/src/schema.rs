//! The stored schema of a table: recorded in every SST and shared by every block.
//!
//! Columns that share their qualifier fields and their timestamps form a [`Group`]: one list of
//! records a row, and one value column for each Bigtable column. A cell is a (record, column) pair
//! whose value is not null. In a packed group ([`Packed`]) the columns are the fields of one cell.

use std::fmt;

use arrow::datatypes::{DataType, TimeUnit};
use serde::{Deserialize, Serialize};

/// The stored schema of a table: the tail of its row keys, and its groups of columns.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredSchema {
    /// The fixed-width end of every row key, stored as an integer.
    pub tail: KeyTail,
    /// The groups in layout order. Blocks and stripes have theirs in the same order.
    pub groups: Vec<Group>,
    /// Whether a newer event of a row replaces the whole row except its cells at timestamp 0. Then a row in an SST has the
    /// timestamps of one event; among SSTs the row with the greatest timestamp wins, then the newest SST.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub upsert: bool,
}

/// The place of a column in a [`StoredSchema`], as blocks, stripes and projections have it too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ColumnRef {
    /// Index of the column's group in [`StoredSchema::groups`].
    pub group: usize,
    /// Index of the column in [`Group::columns`].
    pub column: usize,
}

/// The fixed-width suffix of a row key, stored as one integer per row: digits at fixed offsets with literals between
/// them, so that the integers sort as the bytes do. Without parts the whole key is prefix. At most 19 digits.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyTail {
    /// The parts of the tail from left to right.
    pub parts: Vec<TailPart>,
}

/// One part of a [`KeyTail`], which prints a fixed number of bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TailPart {
    /// This many ASCII digits, zero-padded.
    Digits(u8),
    /// These bytes, which are ASCII.
    Literal(String),
}

/// Columns that share their records: the same qualifier fields, and the same timestamps.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Group {
    /// Where the qualifiers of its columns come from.
    pub qualifier: QualifierKind,
    /// Where the timestamps of its records come from.
    pub timestamps: TimestampKind,
    /// If set, the columns are the fields of one cell, which is assembled on demand.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packed: Option<Packed>,
    /// Its columns; at least one. For packed cells these are the fields of the cell.
    pub columns: Vec<Column>,
}

/// A packed cell: the columns of a group are its fields, and its bytes are never stored. The `qualifier` of a column is the
/// name of the field.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Packed {
    /// Family of the cell; all columns of the group have it too.
    pub family: String,
    /// Qualifier of the cell; unused and empty in a dynamic group.
    pub qualifier: Vec<u8>,
    /// How the fields become the bytes of the cell.
    pub form: PackedForm,
}

/// How the fields of a packed cell become its bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PackedForm {
    /// A JSON object per record, with its non-null fields by name.
    Json,
    /// A protobuf message per record, with its non-null fields.
    Message {
        /// The field of the message that each column fills, by column.
        fields: Vec<MessageField>,
    },
    /// One protobuf cell per row at timestamp 0, of all its records by ascending time: a message with one repeated field
    /// of messages. Records keep their event times; records with equal times are all kept unless they are identical.
    Repeated {
        /// The field of the inner message that each column fills, by column.
        fields: Vec<MessageField>,
        /// The number of the repeated field in the outer message.
        number: u32,
    },
}

/// A field of a protobuf message, filled by a source column.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MessageField {
    /// The name of the source column, which is also the field's.
    pub name: String,
    /// The number of the field, 1 to 536,870,911.
    pub number: u32,
    /// The protobuf type of the field.
    pub kind: ProtoType,
}

/// The protobuf type of a field of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names are those of the language")]
pub enum ProtoType {
    Double,
    Float,
    Int32,
    Int64,
    Uint32,
    Uint64,
    Sint32,
    Sint64,
    Fixed32,
    Fixed64,
    Sfixed32,
    Sfixed64,
    Bool,
    String,
    Bytes,
    /// The well-known type `google.protobuf.Timestamp`.
    Timestamp,
}

/// Where the qualifiers of a group come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QualifierKind {
    /// Each column has its own constant qualifier.
    Constant,
    /// Each record has its own qualifier, shared by the group's columns (of different families).
    Dynamic,
}

/// Where the timestamps of a group come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TimestampKind {
    /// Every cell has timestamp 0, and none is stored.
    Zero,
    /// A timestamp is stored for each record, in microseconds.
    Stored,
}

/// One stored column of a group: a Bigtable column, or a field of a packed cell.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Column {
    /// The id of its family.
    pub family: String,
    /// The qualifier of every cell of a column of a [`QualifierKind::Constant`] group; unused and
    /// empty in a dynamic one.
    pub qualifier: Vec<u8>,
    /// The type of the values in blocks and SSTs.
    pub value: ValueType,
    /// How values become the bytes of cells.
    pub encoding: Encoding,
    /// How cells with equal row, column and timestamp merge.
    #[serde(default, skip_serializing_if = "Merge::is_newest")]
    pub merge: Merge,
}

/// How cells with equal row, column and timestamp merge.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Merge {
    /// The later cell wins, by input and then by position.
    #[default]
    Newest,
    /// The sum of both, as a signed 64-bit integer.
    Sum,
    /// The lesser of both.
    Min,
    /// The greater of both.
    Max,
    /// The union of two sketches of distinct values.
    Hll,
}

impl Merge {
    /// The name of the kind in job files and messages.
    pub fn word(self) -> &'static str {
        match self {
            Self::Newest => "newest",
            Self::Sum => "sum",
            Self::Min => "min",
            Self::Max => "max",
            Self::Hll => "hll",
        }
    }

    /// Whether the later cell wins, as in families without a `kind`.
    pub fn is_newest(&self) -> bool {
        *self == Self::Newest
    }
}

impl Group {
    /// Whether any of its columns is of an aggregate family.
    pub fn has_aggregates(&self) -> bool {
        self.columns.iter().any(|column| !column.merge.is_newest())
    }

    /// Whether duplicates are kept: records with equal qualifier and timestamp.
    pub fn keeps_duplicates(&self) -> bool {
        matches!(self.packed, Some(Packed { form: PackedForm::Repeated { .. }, .. }))
    }
}

/// Type of a source column, as a job file declares it. One Arrow type each, see [`FieldType::arrow`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FieldType {
    /// An unsigned 64-bit integer.
    UInt64,
    /// A signed 64-bit integer.
    Int64,
    /// An IEEE 754 double.
    Float64,
    /// Exact decimal: `precision` digits in all (1..=38), `scale` of them after the point.
    Decimal {
        /// The number of digits in all.
        precision: u8,
        /// The number of digits after the point.
        scale: u8,
    },
    /// Text in UTF-8.
    Text,
    /// True or false.
    Bool,
    /// An instant, in microseconds since the epoch.
    Timestamp,
    /// A calendar date, in days since the epoch.
    Date,
}

/// As job files write it: `int64`, `decimal(10,2)`.
impl fmt::Display for FieldType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UInt64 => f.write_str("uint64"),
            Self::Int64 => f.write_str("int64"),
            Self::Float64 => f.write_str("float64"),
            Self::Decimal { precision, scale } => write!(f, "decimal({precision},{scale})"),
            Self::Text => f.write_str("text"),
            Self::Bool => f.write_str("bool"),
            Self::Timestamp => f.write_str("timestamp"),
            Self::Date => f.write_str("date"),
        }
    }
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

/// The type of a stored column of values, which determines its Arrow type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ValueType {
    /// Every cell is empty: the qualifier is the data. Stored as a Boolean array of true and null.
    Empty,
    /// Arbitrary bytes, an Arrow Binary array.
    Bytes,
    /// A value of a type that source columns have.
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
    /// Eight bytes, big-endian, two's complement: of integers, times and dates.
    Int64,
    /// Eight bytes, big-endian, IEEE 754 double.
    Float64,
    /// The value's own bytes, of text and bytes only.
    Bytes,
    /// A JSON literal: text and times quoted, decimals as numbers with their scale.
    Json,
}
