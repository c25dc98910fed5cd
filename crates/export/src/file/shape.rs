//! The schema of a published file.

use std::collections::HashSet;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use arrow::error::ArrowError;

/// The schema of a file with the rows of `query`: timestamps in microseconds, in UTC if they have a zone;
/// no metadata, whose order is not fixed; all columns nullable, so that parts of an export have
/// the same schema.
pub(crate) fn file_schema(query: &Schema) -> SchemaRef {
    let fields = query.fields().iter();
    let fields: Vec<Field> = fields.map(|field| Field::new(field.name(), file_type(field.data_type()), true)).collect();
    Arc::new(Schema::new(fields))
}

/// The type of a column in a file.
fn file_type(kind: &DataType) -> DataType {
    match kind {
        DataType::Timestamp(_, zone) => DataType::Timestamp(TimeUnit::Microsecond, zone.as_ref().map(|_| "UTC".into())),
        // View types exist in memory only.
        DataType::Utf8View => DataType::Utf8,
        DataType::BinaryView => DataType::Binary,
        // A column of NULL literals needs a type.
        DataType::Null => DataType::Utf8,
        other => other.clone(),
    }
}

/// Converts a batch of the query to the schema of the file.
pub(crate) fn to_file(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch, ArrowError> {
    let mut columns: Vec<ArrayRef> = Vec::with_capacity(batch.num_columns());
    for (column, field) in batch.columns().iter().zip(schema.fields()) {
        columns.push(match column.data_type() == field.data_type() {
            true => Arc::clone(column),
            false => cast(column, field.data_type())?,
        });
    }

    RecordBatch::try_new(Arc::clone(schema), columns)
}

/// Names and types of the columns for the list of the export.
pub(crate) fn columns(schema: &Schema) -> Vec<(String, String)> {
    schema.fields().iter().map(|field| (field.name().clone(), field.data_type().to_string())).collect()
}

/// The name of two columns.
pub(crate) fn duplicate(schema: &Schema) -> Option<&str> {
    let mut seen = HashSet::new();
    schema.fields().iter().map(|field| field.name().as_str()).find(|name| !seen.insert(*name))
}

#[cfg(test)]
mod tests {
    use arrow::array::{AsArray, TimestampNanosecondArray};
    use arrow::datatypes::TimestampMicrosecondType;

    use super::*;

    #[test]
    fn times_become_microseconds_and_moments_are_in_utc() {
        let local = TimestampNanosecondArray::from(vec![Some(1_500), None]);
        let moments = local.clone().with_timezone("Europe/Paris");
        let fields = [("t", moments.data_type()), ("l", local.data_type())];
        let schema = Schema::new(fields.map(|(name, kind)| Field::new(name, kind.clone(), true)).to_vec());
        let batch = RecordBatch::try_new(Arc::new(schema.clone()), vec![Arc::new(moments), Arc::new(local)]).unwrap();
        let file = to_file(&batch, &file_schema(&schema)).unwrap();
        let kinds: Vec<String> = columns(&file.schema()).into_iter().map(|(_, kind)| kind).collect();
        assert_eq!(kinds, ["Timestamp(µs, \"UTC\")", "Timestamp(µs)"]);
        for column in file.columns() {
            assert_eq!(column.as_primitive::<TimestampMicrosecondType>().value(0), 1);
        }
    }

    #[test]
    fn a_name_used_twice_is_found() {
        let fields = ["a", "b", "a"].map(|name| Field::new(name, DataType::Int64, true));
        assert_eq!(duplicate(&Schema::new(fields.to_vec())), Some("a"));
        assert_eq!(duplicate(&Schema::new(fields[..2].to_vec())), None);
    }
}
