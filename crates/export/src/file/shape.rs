//! The schema of a published file.

use std::collections::HashSet;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use arrow::error::ArrowError;

/// Types of columns that files have instead of those of the query, for readers that lack them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ColumnTypes {
    /// Unsigned integers become signed ones: of 8, 16 and 32 bits the next wider type, of 64 bits a decimal of 20 digits.
    pub signed: bool,
    /// Integers of 8 and 16 bits become integers of 32 bits.
    pub wide: bool,
    /// Decimals become doubles.
    pub floats: bool,
}

/// The schema of a file with the rows of `query`: timestamps in microseconds, in UTC if they have a zone; what `types` asks
/// for; no metadata, whose order is not fixed; all columns nullable, so that parts of an export have the same schema.
pub(crate) fn file_schema(query: &Schema, types: ColumnTypes) -> SchemaRef {
    let mut fields = Vec::with_capacity(query.fields().len());
    for field in query.fields() {
        fields.push(Field::new(field.name(), types.of(&file_type(field.data_type())), true));
    }
    Arc::new(Schema::new(fields))
}

impl ColumnTypes {
    /// The type of a column of type `kind`.
    fn of(self, kind: &DataType) -> DataType {
        match kind {
            DataType::Int8 | DataType::Int16 if self.wide => DataType::Int32,
            DataType::UInt8 if self.signed && self.wide => DataType::Int32,
            DataType::UInt8 if self.signed => DataType::Int16,
            DataType::UInt16 if self.signed => DataType::Int32,
            DataType::UInt32 if self.signed => DataType::Int64,
            // Also where decimals become doubles, which do not hold every integer of 64 bits.
            DataType::UInt64 if self.signed => DataType::Decimal128(20, 0),
            DataType::Decimal32(..) | DataType::Decimal64(..) | DataType::Decimal128(..) | DataType::Decimal256(..)
                if self.floats =>
            {
                DataType::Float64
            }
            kind => kind.clone(),
        }
    }

    /// The columns of a query whose type in the file is not that of the query: name, type there, type in the file.
    pub fn changes(self, query: &Schema) -> Vec<(String, DataType, DataType)> {
        let mut changes = Vec::new();
        for field in query.fields() {
            let kind = self.of(field.data_type());
            if kind != *field.data_type() {
                changes.push((field.name().clone(), field.data_type().clone(), kind));
            }
        }
        changes
    }
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
    use arrow::array::{AsArray, TimestampNanosecondArray, UInt64Array};
    use arrow::datatypes::{Decimal128Type, TimestampMicrosecondType};

    use super::*;

    #[test]
    fn times_become_microseconds_and_moments_are_in_utc() {
        let local = TimestampNanosecondArray::from(vec![Some(1_500), None]);
        let moments = local.clone().with_timezone("Europe/Paris");
        let fields = [("t", moments.data_type()), ("l", local.data_type())];
        let schema = Schema::new(fields.map(|(name, kind)| Field::new(name, kind.clone(), true)).to_vec());
        let batch = RecordBatch::try_new(Arc::new(schema.clone()), vec![Arc::new(moments), Arc::new(local)]).unwrap();
        let file = to_file(&batch, &file_schema(&schema, ColumnTypes::default())).unwrap();
        let kinds: Vec<String> = columns(&file.schema()).into_iter().map(|(_, kind)| kind).collect();
        assert_eq!(kinds, ["Timestamp(µs, \"UTC\")", "Timestamp(µs)"]);
        for column in file.columns() {
            assert_eq!(column.as_primitive::<TimestampMicrosecondType>().value(0), 1);
        }
    }

    #[test]
    fn unsigned_integers_and_decimals_become_what_readers_have() {
        let kinds =
            [DataType::UInt8, DataType::UInt16, DataType::UInt32, DataType::UInt64, DataType::Decimal128(10, 2)];
        let fields: Vec<Field> = kinds.into_iter().map(|kind| Field::new(kind.to_string(), kind, true)).collect();
        let schema = Schema::new(fields);
        let types = |types| columns(&file_schema(&schema, types)).into_iter().map(|(_, kind)| kind).collect::<Vec<_>>();
        let signed = ColumnTypes { signed: true, ..ColumnTypes::default() };
        assert_eq!(types(signed), ["Int16", "Int32", "Int64", "Decimal128(20, 0)", "Decimal128(10, 2)"]);
        let both = ColumnTypes { floats: true, ..signed };
        assert_eq!(types(both), ["Int16", "Int32", "Int64", "Decimal128(20, 0)", "Float64"]);
        let wide = ColumnTypes { wide: true, ..signed };
        assert_eq!(types(wide)[..3], ["Int32", "Int32", "Int64"]);
        assert_eq!(types(ColumnTypes::default())[3..], ["UInt64", "Decimal128(10, 2)"]);
        assert_eq!(signed.changes(&schema).len(), 4);

        let greatest =
            RecordBatch::try_from_iter([("n", Arc::new(UInt64Array::from(vec![u64::MAX])) as ArrayRef)]).unwrap();
        let file = to_file(&greatest, &file_schema(&greatest.schema(), signed)).unwrap();
        assert_eq!(file.column(0).as_primitive::<Decimal128Type>().value(0), i128::from(u64::MAX));
    }

    #[test]
    fn a_name_used_twice_is_found() {
        let fields = ["a", "b", "a"].map(|name| Field::new(name, DataType::Int64, true));
        assert_eq!(duplicate(&Schema::new(fields.to_vec())), Some("a"));
        assert_eq!(duplicate(&Schema::new(fields[..2].to_vec())), None);
    }
}
