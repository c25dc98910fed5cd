//! The source's columns of a batch.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, RecordBatch};

use crate::error::EncodeError;
use crate::plan::Layout;

/// The error for a batch that lacks a field of the layout.
pub(super) fn missing_column(layout: &Layout, field: usize) -> EncodeError {
    EncodeError::MissingColumn { column: layout.name(field).unwrap_or_default() }
}

/// The columns of the source in a batch, in the order of its schema, after a check of their types.
pub(super) fn source_columns(layout: &Layout, batch: &RecordBatch) -> Result<Vec<ArrayRef>, EncodeError> {
    let mut columns = Vec::with_capacity(layout.source.fields.len());
    for field in &layout.source.fields {
        let Some(array) = batch.column_by_name(&field.name) else {
            return Err(EncodeError::MissingColumn { column: field.name.clone() });
        };
        let expected = field.kind.arrow();
        if *array.data_type() != expected {
            let (found, expected) = (array.data_type().to_string(), expected.to_string());
            return Err(EncodeError::WrongType { column: field.name.clone(), found, expected });
        }
        columns.push(Arc::clone(array));
    }
    Ok(columns)
}
