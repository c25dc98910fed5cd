//! A layout as a job file declares it, before it is compiled against the source's columns.

use serde::{Deserialize, Serialize};

use crate::schema::{Encoding, FieldType, Merge, MessageField};

/// One column of a source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Field {
    /// Name, case-sensitive.
    pub name: String,
    /// Declared type.
    pub kind: FieldType,
}

/// The columns of a source, after `derive`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceSchema {
    /// In declared order.
    pub fields: Vec<Field>,
    /// Index of the event time, a Timestamp field.
    pub time: usize,
}

/// The unit of change of a table, in UTC by event time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Window {
    /// One hour.
    Hour,
    /// One day.
    #[default]
    Day,
    /// Monday to Sunday.
    Week,
    /// A calendar month.
    Month,
    /// One window for all time.
    None,
}

/// The granularity that cell timestamps are truncated to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Granularity {
    /// Multiples of 1000 us, as Bigtable's default.
    #[default]
    Millis,
    /// Microseconds.
    Micros,
}

impl Granularity {
    /// Microseconds of one unit.
    pub(crate) fn micros(self) -> i64 {
        match self {
            Self::Millis => 1000,
            Self::Micros => 1,
        }
    }
}

/// A table of a job file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableSpec {
    /// Table id.
    pub name: String,
    /// Template of the row key.
    pub row_key: String,
    /// Unit of change.
    pub window: Window,
    /// Granularity of cell timestamps.
    pub granularity: Granularity,
    /// Source columns to unpivot into (metric, value) events.
    pub unpivot: Vec<String>,
    /// Families in the order of the file.
    pub families: Vec<FamilySpec>,
    /// `upsert = "row"`: a newer event of a row replaces the whole row.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub upsert: bool,
    /// The messages that columns name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub messages: Vec<MessageSpec>,
}

/// A protobuf message of a job file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MessageSpec {
    /// Its name, as columns use it.
    pub name: String,
    /// Fields in the order of the file.
    pub fields: Vec<MessageField>,
    /// Name of the list message, and the number of its repeated field.
    pub list: (String, u32),
    /// The text of the `.proto` file it was read from, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proto: Option<String>,
    /// Whether `proto` declares the list message.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub has_list: bool,
}

/// A family of a table.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FamilySpec {
    /// Family id.
    pub name: String,
    /// Columns in the order of the file.
    pub columns: Vec<ColumnSpec>,
    /// `kind`: an aggregate family, whose cells merge instead of replacing each other.
    #[serde(default, skip_serializing_if = "Merge::is_newest")]
    pub kind: Merge,
}

/// A column of a family: `{ qualifier, value, encoding, timestamp }`, `{ each, except, qualifier, value }`, or packed,
/// see [`PackedSpec`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ColumnSpec {
    /// Template of the qualifier.
    pub qualifier: String,
    /// Template of the value; empty for an empty cell.
    pub value: String,
    /// The encoding of the value.
    pub encoding: Encoding,
    /// Where the cell timestamp comes from.
    pub timestamp: TimestampSpec,
    /// `each = "*"`: one column for each source column not in `except`.
    pub each: bool,
    /// Source columns that `each` and `json` leave out.
    pub except: Vec<String>,
    /// Content instead of a single value.
    #[serde(default, skip_serializing_if = "PackedSpec::is_none")]
    pub packed: PackedSpec,
}

/// The content of a packed cell, which is made of several source columns.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum PackedSpec {
    /// One value: `value`.
    #[default]
    None,
    /// `json = "*"`: the source columns not in `except`, as one JSON object an event.
    Json,
    /// `message = "Reading"`: one protobuf message an event.
    Message(String),
    /// `repeated = "Reading"`: one protobuf a row, of all its events.
    Repeated(String),
}

impl PackedSpec {
    /// Whether the cell holds one value.
    pub fn is_none(&self) -> bool {
        *self == Self::None
    }
}

/// Where a cell timestamp comes from.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum TimestampSpec {
    /// The event time, or 0 if the value depends only on fields of the row key.
    #[default]
    Implied,
    /// Always 0.
    Zero,
    /// A Timestamp column of the source.
    Field(String),
}
