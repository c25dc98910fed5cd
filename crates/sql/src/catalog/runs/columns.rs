//! Column types and values of the `runs` tables, and their record batches.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, BooleanArray, Date32Array, Float64Array, Int64Array, RecordBatch, StringArray, TimestampMicrosecondArray,
};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use arrow::error::ArrowError;

/// Type of a column of the tables of runs.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Kind {
    Text,
    Number,
    Real,
    Truth,
    /// A time in microseconds since the epoch, in UTC.
    Time,
    Day,
}

/// A value of a row of these tables, or null.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value {
    Null,
    Text(String),
    Number(i64),
    Real(f64),
    Truth(bool),
    /// A time, in microseconds since the epoch.
    Time(i64),
    /// A date, in days since the epoch.
    Day(i32),
}

/// A row: a value for each column, in the order of the columns.
pub(crate) type Row = Vec<Value>;

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<&String> for Value {
    fn from(text: &String) -> Self {
        Self::Text(text.clone())
    }
}

impl From<u64> for Value {
    fn from(number: u64) -> Self {
        Self::Number(i64::try_from(number).unwrap_or(i64::MAX))
    }
}

impl From<usize> for Value {
    fn from(number: usize) -> Self {
        Self::Number(i64::try_from(number).unwrap_or(i64::MAX))
    }
}

impl From<bool> for Value {
    fn from(truth: bool) -> Self {
        Self::Truth(truth)
    }
}

impl<T: Into<Self>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

/// The schema of a table with these columns, all of which may be null.
pub(crate) fn schema(columns: &[(&str, Kind)]) -> SchemaRef {
    let fields: Vec<Field> = columns.iter().map(|(name, kind)| Field::new(*name, data_type(*kind), true)).collect();
    Arc::new(Schema::new(fields))
}

/// The Arrow type of the columns of a kind.
fn data_type(kind: Kind) -> DataType {
    match kind {
        Kind::Text => DataType::Utf8,
        Kind::Number => DataType::Int64,
        Kind::Real => DataType::Float64,
        Kind::Truth => DataType::Boolean,
        Kind::Time => DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
        Kind::Day => DataType::Date32,
    }
}

pub(crate) fn batch(columns: &[(&str, Kind)], schema: &SchemaRef, rows: &[Row]) -> Result<RecordBatch, ArrowError> {
    let columns = columns.iter().enumerate().map(|(at, (_, kind))| column(*kind, at, rows));
    RecordBatch::try_new(Arc::clone(schema), columns.collect())
}

/// A value of another type than the column becomes null; rows contain none.
fn column(kind: Kind, at: usize, rows: &[Row]) -> ArrayRef {
    let values = rows.iter().map(|row| row.get(at).unwrap_or(&Value::Null));
    macro_rules! of {
        ($array:ty, $value:ident) => {
            values
                .map(|value| if let Value::$value(value) = value { Some(value.to_owned()) } else { None })
                .collect::<$array>()
        };
    }
    match kind {
        Kind::Text => Arc::new(of!(StringArray, Text)),
        Kind::Number => Arc::new(of!(Int64Array, Number)),
        Kind::Real => Arc::new(of!(Float64Array, Real)),
        Kind::Truth => Arc::new(of!(BooleanArray, Truth)),
        Kind::Time => Arc::new(of!(TimestampMicrosecondArray, Time).with_timezone("UTC")),
        Kind::Day => Arc::new(of!(Date32Array, Day)),
    }
}
