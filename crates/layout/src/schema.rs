//! What a table stores: the shape every SST of it records and every block of it has.
//!
//! Columns that share their qualifier fields and their timestamps form a [`Group`]: one list of
//! records a row, and one value column for each Bigtable column. A cell is a (record, column) pair
//! whose value is not null.

use serde::{Deserialize, Serialize};

use crate::value::{Encoding, ValueType};

/// The stored shape of a table: how its row keys end, and its groups of columns.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredSchema {
    /// The fixed-width end of every row key.
    pub tail: KeyTail,
    /// Groups in layout order.
    pub groups: Vec<Group>,
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
    /// At least one.
    pub columns: Vec<Column>,
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
}
