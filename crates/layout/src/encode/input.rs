//! The source's columns of a batch.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, RecordBatch};

use crate::error::EncodeError;
use crate::plan::Layout;

pub(super) fn missing_column(layout: &Layout, field: usize) -> EncodeError {
    EncodeError::MissingColumn { column: layout.name(field).unwrap_or_default() }
}

pub(super) fn source_columns(layout: &Layout, batch: &RecordBatch) -> Result<Vec<ArrayRef>, EncodeError> {
    let column = |field: &crate::spec::Field| {
        let Some(array) = batch.column_by_name(&field.name) else {
            return Err(EncodeError::MissingColumn { column: field.name.clone() });
        };
        let expected = field.kind.arrow();
        if *array.data_type() != expected {
            let (found, expected) = (array.data_type().to_string(), expected.to_string());
            return Err(EncodeError::WrongType { column: field.name.clone(), found, expected });
        }
        Ok(Arc::clone(array))
    };
    layout.source.fields.iter().map(column).collect()
}
