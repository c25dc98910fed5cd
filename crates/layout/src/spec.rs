//! A layout as a job file declares it, before it is compiled against the source's columns.

use serde::{Deserialize, Serialize};

use crate::schema::{Encoding, FieldType, Merge, MessageField};

/// One column of a source: a named, typed field of its records.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Field {
    /// The name as templates write it, case-sensitive.
    pub name: String,
    /// The type that the job file declares.
    pub kind: FieldType,
}

/// The columns of a source as a layout sees them, with those that `derive` adds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceSchema {
    /// The columns in declared order, derived ones last.
    pub fields: Vec<Field>,
    /// Index among `fields` of the event time, which is a Timestamp.
    pub time: usize,
}

/// The unit of change of a table, in UTC by event time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Window {
    /// One hour of UTC.
    Hour,
    /// One day of UTC.
    #[default]
    Day,
    /// A week of UTC days, Monday to Sunday.
    Week,
    /// A calendar month of UTC days.
    Month,
    /// One window for all time: a changed input rebuilds the table.
    None,
}

/// The granularity that cell timestamps are truncated to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Granularity {
    /// Multiples of 1000 microseconds, as tables of Bigtable have by default.
    #[default]
    Millis,
    /// Microseconds, as event times are.
    Micros,
}

impl Granularity {
    /// The number of microseconds of one unit.
    pub(crate) fn micros(self) -> i64 {
        match self {
            Self::Millis => 1000,
            Self::Micros => 1,
        }
    }
}

/// A table as a job file declares it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableSpec {
    /// The table id, unique in its store.
    pub name: String,
    /// The template of the row key, see `docs/reference`.
    pub row_key: String,
    /// The unit of change: what a changed input rebuilds.
    pub window: Window,
    /// What cell timestamps are truncated to.
    pub granularity: Granularity,
    /// Source columns that become events of their own, each with `metric` and `value`.
    pub unpivot: Vec<String>,
    /// The families in the order of the file.
    pub families: Vec<FamilySpec>,
    /// `upsert = "row"`: a newer event of a row replaces the whole row.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub upsert: bool,
    /// The protobuf messages that columns refer to by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub messages: Vec<MessageSpec>,
}

/// A protobuf message that a job file declares, or reads from a `.proto` file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MessageSpec {
    /// The name by which columns refer to it.
    pub name: String,
    /// The fields in the order of the file.
    pub fields: Vec<MessageField>,
    /// Name of the list message, and the number of its repeated field.
    pub list: (String, u32),
    /// The text of the `.proto` file it was read from, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proto: Option<String>,
    /// Whether `proto` declares the list message; otherwise it is appended to the published file.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub has_list: bool,
}

/// A column family as a job file declares it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FamilySpec {
    /// The family id, as in Bigtable.
    pub name: String,
    /// The columns in the order of the file.
    pub columns: Vec<ColumnSpec>,
    /// `kind`: an aggregate family, whose cells merge instead of replacing each other.
    #[serde(default, skip_serializing_if = "Merge::is_newest")]
    pub kind: Merge,
}

/// A column of a family: `{ qualifier, value, encoding, timestamp }`, `{ each, except, qualifier, value }`, or packed,
/// see [`PackedSpec`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ColumnSpec {
    /// The template of the qualifier; without fields the column is one column, otherwise one for each value.
    pub qualifier: String,
    /// Template of the value; empty for an empty cell.
    pub value: String,
    /// How a typed value becomes the bytes of the cell.
    pub encoding: Encoding,
    /// Which time of an event becomes the cell's timestamp.
    pub timestamp: TimestampSpec,
    /// `each = "*"`: one column for each source column not in `except`.
    pub each: bool,
    /// Source columns that `each` and `json` leave out.
    pub except: Vec<String>,
    /// If set, the cell is made of several source columns, and `value` is empty.
    #[serde(default, skip_serializing_if = "PackedSpec::is_none")]
    pub packed: PackedSpec,
}

/// The content of a packed cell, which is made of several source columns.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum PackedSpec {
    /// The cell has one value, that of `value`.
    #[default]
    None,
    /// `json = "*"`: the source columns not in `except`, as one JSON object an event.
    Json,
    /// `message = "Reading"`: one protobuf message an event, in the named form.
    Message(String),
    /// `repeated = "Reading"`: one protobuf a row, of all its events.
    Repeated(String),
}

impl PackedSpec {
    /// Whether the cell has one value, so that the column is not packed.
    pub fn is_none(&self) -> bool {
        *self == Self::None
    }
}

/// Where the timestamp of a cell comes from.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum TimestampSpec {
    /// The event time, or 0 if the value depends only on fields of the row key.
    #[default]
    Implied,
    /// Always 0: the cell has no history.
    Zero,
    /// The Timestamp column of the source with this name.
    Field(String),
}
