//! A layout as a job file says it, before it is compiled against the source's columns.

use serde::{Deserialize, Serialize};

use crate::value::{Encoding, FieldType};

/// One column of a source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Field {
    /// Name, case kept.
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

/// What a cell timestamp is truncated to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Granularity {
    /// Multiples of 1000 us, as Bigtable's default.
    #[default]
    Millis,
    /// Microseconds.
    Micros,
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
    /// Source columns that become one (metric, value) each.
    pub unpivot: Vec<String>,
    /// Families in the order of the file.
    pub families: Vec<FamilySpec>,
}

/// A family of a table.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FamilySpec {
    /// Family id.
    pub name: String,
    /// Columns in the order of the file.
    pub columns: Vec<ColumnSpec>,
}

/// A column of a family: `{ qualifier, value, encoding, timestamp }` or `{ each, except, qualifier, value }`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ColumnSpec {
    /// Template of the qualifier.
    pub qualifier: String,
    /// Template of the value; empty for an empty cell.
    pub value: String,
    /// What makes bytes of the value.
    pub encoding: Encoding,
    /// Where the cell timestamp comes from.
    pub timestamp: TimestampSpec,
    /// `each = "*"`: one column for each source column not in `except`.
    pub each: bool,
    /// Source columns that `each` leaves out.
    pub except: Vec<String>,
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
