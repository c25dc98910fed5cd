//! Ids of columns, by which an Iceberg table tells columns apart: files have them, and the list of the export notes them.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use parquet::arrow::PARQUET_FIELD_ID_META_KEY;
use tidetable_store::published::ColumnIds;

/// The ids of `columns` (names and printed types) after those `known`. A column keeps its id while its values of before can be
/// read as its type. A new one gets the next id, and so does one whose name was dropped before.
pub(crate) fn assigned(known: &ColumnIds, columns: &[(String, String)]) -> ColumnIds {
    let mut last = known.last;
    let mut ids = Vec::with_capacity(columns.len());
    for (name, kind) in columns {
        let before = known.columns.iter().find(|(known, before, _)| known == name && reads_as(before, kind));
        let id = before.map_or(last + 1, |(_, _, id)| *id);
        last = last.max(id);
        ids.push((name.clone(), kind.clone(), id));
    }
    ColumnIds { last, columns: ids }
}

/// Whether files with values of type `before` are read as columns of type `now`, both printed.
fn reads_as(before: &str, now: &str) -> bool {
    let (Ok(was), Ok(is)) = (before.parse::<DataType>(), now.parse::<DataType>()) else { return before == now };
    match (was, is) {
        (DataType::Int32, DataType::Int64) | (DataType::Float32, DataType::Float64) => true,
        (DataType::Decimal128(digits, scale), DataType::Decimal128(wider, same)) => scale == same && digits <= wider,
        (was, is) => was == is,
    }
}

/// The schema of a file whose columns have these ids.
pub(crate) fn with_ids(schema: &Schema, ids: &ColumnIds) -> SchemaRef {
    let mut fields = Vec::with_capacity(schema.fields().len());
    for field in schema.fields() {
        let id = ids.columns.iter().find(|(name, ..)| name == field.name());
        let metadata = id.map(|(.., id)| (PARQUET_FIELD_ID_META_KEY.to_owned(), id.to_string()));
        let metadata: HashMap<String, String> = metadata.into_iter().collect();
        fields.push(Field::clone(field).with_metadata(metadata));
    }
    Arc::new(Schema::new(fields))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn columns(columns: &[(&str, &str)]) -> Vec<(String, String)> {
        columns.iter().map(|(name, kind)| ((*name).to_owned(), (*kind).to_owned())).collect()
    }

    fn ids(known: &ColumnIds) -> Vec<i32> {
        known.columns.iter().map(|(.., id)| *id).collect()
    }

    #[test]
    fn a_dropped_column_leaves_its_id_to_nobody() {
        let first = assigned(&ColumnIds::default(), &columns(&[("a", "Int64"), ("b", "Utf8")]));
        assert_eq!((ids(&first), first.last), (vec![1, 2], 2));
        let dropped = assigned(&first, &columns(&[("c", "Utf8"), ("a", "Int64")]));
        assert_eq!((ids(&dropped), dropped.last), (vec![3, 1], 3));
        let again = assigned(&dropped, &columns(&[("a", "Int64"), ("b", "Utf8"), ("c", "Utf8")]));
        assert_eq!((ids(&again), again.last), (vec![1, 4, 3], 4));
        assert_eq!(assigned(&again, &columns(&[("a", "Int64"), ("b", "Utf8"), ("c", "Utf8")])), again);
    }

    #[test]
    fn a_column_keeps_its_id_while_its_files_can_be_read() {
        for (before, now, keeps) in [
            ("Int32", "Int64", true),
            ("Int64", "Int32", false),
            ("Float32", "Float64", true),
            ("Decimal128(10, 2)", "Decimal128(12, 2)", true),
            ("Decimal128(10, 2)", "Decimal128(12, 3)", false),
            ("Utf8", "Date32", false),
        ] {
            let known = assigned(&ColumnIds::default(), &columns(&[("a", before)]));
            assert_eq!(ids(&assigned(&known, &columns(&[("a", now)]))) == [1], keeps, "{before} {now}");
        }
    }
}
