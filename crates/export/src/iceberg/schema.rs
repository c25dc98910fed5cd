//! The schema of an Iceberg table, and the bounds of its columns as manifests have them.

use std::collections::BTreeMap;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::{
    DataType, Date32Type, Decimal128Type, Float32Type, Float64Type, Int32Type, Int64Type, TimeUnit,
    TimestampMicrosecondType,
};
use serde_json::{Value, json};
use tidetable_store::published::ColumnIds;

use crate::iceberg::manifest::DataFile;
use crate::table::footer::FileStats;

/// The columns as fields of a schema; the error is a column whose type Iceberg lacks, with that type.
pub(crate) fn fields(ids: &ColumnIds) -> Result<Value, (String, String)> {
    let mut fields = Vec::with_capacity(ids.columns.len());
    for (name, kind, id) in &ids.columns {
        let Some(kind) = kind.parse().ok().and_then(|kind| type_name(&kind)) else {
            return Err((name.clone(), kind.clone()));
        };
        fields.push(json!({ "id": id, "name": name, "required": false, "type": kind }));
    }
    Ok(Value::Array(fields))
}

/// Names by which readers find the columns of files without ids, such as those of a day that is no longer published.
pub(crate) fn name_mapping(ids: &ColumnIds) -> String {
    let names = ids.columns.iter().map(|(name, _, id)| json!({ "field-id": id, "names": [name] }));
    Value::Array(names.collect()).to_string()
}

/// The name of a type in Iceberg; `None` if it has no such type, or files have it in another form.
fn type_name(kind: &DataType) -> Option<String> {
    Some(match kind {
        DataType::Boolean => "boolean".to_owned(),
        DataType::Int32 => "int".to_owned(),
        DataType::Int64 => "long".to_owned(),
        DataType::Float32 => "float".to_owned(),
        DataType::Float64 => "double".to_owned(),
        DataType::Utf8 => "string".to_owned(),
        DataType::Binary => "binary".to_owned(),
        DataType::Date32 => "date".to_owned(),
        DataType::Timestamp(TimeUnit::Microsecond, Some(_)) => "timestamptz".to_owned(),
        DataType::Timestamp(TimeUnit::Microsecond, None) => "timestamp".to_owned(),
        DataType::Decimal128(digits, scale) if *scale >= 0 => format!("decimal({digits}, {scale})"),
        _ => return None,
    })
}

/// A file with these statistics. Columns of files without ids are told by their names.
pub(crate) fn data_file(path: String, bytes: u64, stats: &FileStats, ids: &ColumnIds) -> DataFile {
    let rows = stats.rows.cast_signed();
    let mut file = DataFile { path, rows, bytes: bytes.cast_signed(), ..DataFile::default() };
    let by_name: BTreeMap<&str, i32> = ids.columns.iter().map(|(name, _, id)| (name.as_str(), *id)).collect();
    let has_ids = stats.columns.iter().any(|column| column.id.is_some());
    for column in &stats.columns {
        let named = by_name.get(column.name.as_str()).copied().filter(|_| !has_ids);
        let Some(id) = column.id.or(named) else { continue };
        file.sizes.insert(id, column.bytes.cast_signed());
        file.values.insert(id, rows);
        file.nulls.insert(id, column.nulls.cast_signed());
        if let (Some(least), Some(greatest)) =
            (column.least.as_ref().and_then(bound), column.greatest.as_ref().and_then(bound))
        {
            file.least.insert(id, least);
            file.greatest.insert(id, greatest);
        }
    }
    file
}

/// The only value of an array, serialized as single values are; `None` if its type has no bounds.
fn bound(first: &ArrayRef) -> Option<Vec<u8>> {
    Some(match first.data_type() {
        DataType::Boolean => vec![u8::from(first.as_boolean().value(0))],
        DataType::Int32 => first.as_primitive::<Int32Type>().value(0).to_le_bytes().to_vec(),
        DataType::Date32 => first.as_primitive::<Date32Type>().value(0).to_le_bytes().to_vec(),
        DataType::Int64 => first.as_primitive::<Int64Type>().value(0).to_le_bytes().to_vec(),
        DataType::Timestamp(TimeUnit::Microsecond, _) => {
            first.as_primitive::<TimestampMicrosecondType>().value(0).to_le_bytes().to_vec()
        }
        DataType::Float32 => first.as_primitive::<Float32Type>().value(0).to_le_bytes().to_vec(),
        DataType::Float64 => first.as_primitive::<Float64Type>().value(0).to_le_bytes().to_vec(),
        DataType::Utf8 => first.as_string::<i32>().value(0).as_bytes().to_vec(),
        DataType::Binary => first.as_binary::<i32>().value(0).to_vec(),
        DataType::Decimal128(..) => unscaled(first.as_primitive::<Decimal128Type>().value(0)),
        _ => return None,
    })
}

/// A number in two's complement, greatest byte first, in as few bytes as hold it.
fn unscaled(value: i128) -> Vec<u8> {
    let bytes = value.to_be_bytes();
    let spare = bytes.windows(2).take_while(|pair| {
        let (first, next) = (pair[0], pair[1]);
        (first == 0 && next < 0x80) || (first == 0xff && next >= 0x80)
    });
    bytes.iter().skip(spare.count()).copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_take_as_few_bytes_as_hold_them() {
        for (value, bytes) in [
            (0, vec![0]),
            (127, vec![0x7f]),
            (128, vec![0, 0x80]),
            (-1, vec![0xff]),
            (-128, vec![0x80]),
            (-129, vec![0xff, 0x7f]),
            (150, vec![0, 0x96]),
        ] {
            assert_eq!(unscaled(value), bytes, "{value}");
        }
        assert_eq!(unscaled(i128::MAX).len(), 16);
    }

    #[test]
    fn a_column_of_another_type_is_named() {
        let column = |kind: &DataType| ("a".to_owned(), kind.to_string(), 1);
        let ids = |kind| ColumnIds { last: 1, columns: vec![column(&kind)] };
        let known = fields(&ids(DataType::Decimal128(10, 2))).unwrap();
        assert_eq!(known, json!([{ "id": 1, "name": "a", "required": false, "type": "decimal(10, 2)" }]));
        assert_eq!(fields(&ids(DataType::Int8)).unwrap_err(), ("a".to_owned(), "Int8".to_owned()));
    }
}
