//! What a table stores: the shape every SST of it records and every block of it has.
//!
//! Columns that share their qualifier fields and their timestamps form a [`Group`]: one list of
//! records a row, and one value column for each Bigtable column. A cell is a (record, column) pair
//! whose value is not null. In a packed group ([`Packed`]) the columns are the fields of one cell.

use serde::{Deserialize, Serialize};

use crate::value::{Encoding, ValueType};

/// The stored shape of a table: how its row keys end, and its groups of columns.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredSchema {
    /// The fixed-width end of every row key.
    pub tail: KeyTail,
    /// Groups in layout order.
    pub groups: Vec<Group>,
    /// Whether a newer event of a row replaces the whole row, but for its cells at timestamp 0. Then an
    /// SST holds of a row the stored timestamps of one event; of several SSTs the row comes from the one
    /// with the greatest of these, the newest if several have it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub upsert: bool,
}

/// The fixed-width end of a row key that is kept as one integer a row: digits at fixed places with
/// literals between them, so that the order of the integers is the order of the bytes.
/// No parts: the whole key is prefix. At most 19 digits in all.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyTail {
    /// Parts from left to right.
    pub parts: Vec<TailPart>,
}

/// One part of a [`KeyTail`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TailPart {
    /// This many ASCII digits, zero-padded.
    Digits(u8),
    /// These bytes, ASCII.
    Literal(String),
}

/// Columns with the same records.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Group {
    /// Where the qualifiers of its columns come from.
    pub qualifier: QualifierKind,
    /// Where the timestamps of its records come from.
    pub timestamps: TimestampKind,
    /// If set, the columns are the fields of one cell, which is made of them when it is asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packed: Option<Packed>,
    /// At least one.
    pub columns: Vec<Column>,
}

/// How the columns of a group become one cell, which is never stored as bytes. Each column is a field:
/// its `qualifier` is the field's name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Packed {
    /// Family of the cell; all columns of the group have it too.
    pub family: String,
    /// Qualifier of the cell; unused and empty in a dynamic group.
    pub qualifier: Vec<u8>,
    /// What makes bytes of the fields.
    pub form: PackedForm,
}

/// What makes the bytes of a packed cell.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PackedForm {
    /// A JSON object for each record: the fields that have a value, by name.
    Json,
    /// A protobuf message for each record.
    Message {
        /// For each column, its field.
        fields: Vec<MessageField>,
    },
    /// One protobuf cell for each row, at timestamp 0, of all its records by ascending time: a message
    /// with one repeated field of messages. Records keep their event time; those alike in time but
    /// not in content are all kept, those alike in both are one.
    Repeated {
        /// For each column, its field.
        fields: Vec<MessageField>,
        /// Number of the repeated field.
        number: u32,
    },
}

/// A field of a protobuf message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MessageField {
    /// The source column, and the field's name.
    pub name: String,
    /// Its number, 1 to 536,870,911.
    pub number: u32,
    /// How it is written.
    pub kind: ProtoType,
}

/// The protobuf type of a field.
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
    /// `google.protobuf.Timestamp`.
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
    /// A timestamp is stored for each record.
    Stored,
}

/// One stored column.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Column {
    /// Family id.
    pub family: String,
    /// The qualifier of every cell of a column of a [`QualifierKind::Constant`] group; unused and
    /// empty in a dynamic one.
    pub qualifier: Vec<u8>,
    /// Type of the values.
    pub value: ValueType,
    /// What makes a cell's bytes of a value.
    pub encoding: Encoding,
    /// What becomes of two cells alike in row, column and timestamp.
    #[serde(default, skip_serializing_if = "Merge::is_newest")]
    pub merge: Merge,
}

/// What becomes of two cells alike in row, column and timestamp.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Merge {
    /// The later one replaces the earlier.
    #[default]
    Newest,
    /// Their sum.
    Sum,
    /// The lesser.
    Min,
    /// The greater.
    Max,
    /// The union of two sketches of distinct values.
    Hll,
}

impl Merge {
    /// Whether a later cell replaces an earlier one.
    pub fn is_newest(&self) -> bool {
        *self == Self::Newest
    }
}

impl Group {
    /// Whether cells of any of its columns merge instead of replacing each other.
    pub fn has_aggregates(&self) -> bool {
        self.columns.iter().any(|column| !column.merge.is_newest())
    }

    /// Whether records alike in qualifier and timestamp are kept side by side.
    pub fn keeps_alike(&self) -> bool {
        matches!(self.packed, Some(Packed { form: PackedForm::Repeated { .. }, .. }))
    }
}
