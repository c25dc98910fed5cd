//! Typed access to the cells of a query.

use arrow::array::{Array, ArrayRef, AsArray, BinaryArray, RecordBatch, StringArray, TimestampMicrosecondArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Schema, TimeUnit, TimestampMicrosecondType};
use arrow::error::ArrowError;

/// The columns of a query of cells, as in `cells.T`.
pub(crate) const COLUMNS: [&str; 5] = ["row_key", "family", "qualifier", "timestamp", "value"];

/// A batch of cells.
pub(crate) struct Cells {
    pub(crate) keys: BinaryArray,
    pub(crate) families: StringArray,
    pub(crate) qualifiers: BinaryArray,
    pub(crate) timestamps: TimestampMicrosecondArray,
    pub(crate) values: BinaryArray,
}

impl Cells {
    /// The cells of `batch`, by the names of its columns.
    ///
    /// # Errors
    /// If a column is missing, of another type, or has a null.
    pub(crate) fn of(batch: &RecordBatch) -> Result<Self, ArrowError> {
        let [key, family, qualifier, timestamp, value] = COLUMNS;
        let micros = DataType::Timestamp(TimeUnit::Microsecond, None);
        Ok(Self {
            keys: column(batch, key, &DataType::Binary)?.as_binary().clone(),
            families: column(batch, family, &DataType::Utf8)?.as_string().clone(),
            qualifiers: column(batch, qualifier, &DataType::Binary)?.as_binary().clone(),
            timestamps: column(batch, timestamp, &micros)?.as_primitive::<TimestampMicrosecondType>().clone(),
            values: column(batch, value, &DataType::Binary)?.as_binary().clone(),
        })
    }

    pub(crate) fn len(&self) -> usize {
        self.keys.len()
    }
}

/// A column of cells by its name, as this type.
fn column(batch: &RecordBatch, name: &str, kind: &DataType) -> Result<ArrayRef, ArrowError> {
    let column = batch.column_by_name(name).ok_or_else(|| lacks(&batch.schema()))?;
    if column.null_count() > 0 {
        return Err(ArrowError::InvalidArgumentError(format!("{name} is null in a cell")));
    }
    cast(column, kind)
}

/// Checks that a query returns cells.
pub(crate) fn are_cells(schema: &Schema) -> Result<(), ArrowError> {
    if COLUMNS.iter().all(|name| schema.column_with_name(name).is_some()) { Ok(()) } else { Err(lacks(schema)) }
}

/// The error for a query without the columns of cells.
fn lacks(schema: &Schema) -> ArrowError {
    let has: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
    let (wanted, has) = (COLUMNS.join(", "), has.join(", "));
    ArrowError::InvalidArgumentError(format!(
        "cells have the columns {wanted}, as cells.TABLE gives them, and not {has}"
    ))
}
