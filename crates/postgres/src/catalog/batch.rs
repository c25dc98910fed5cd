//! Rows of a table of system catalogs.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{
    ArrayRef, BooleanArray, Float32Array, Int16Array, Int32Array, Int64Array, RecordBatch, StringArray, new_null_array,
};
use arrow::datatypes::{DataType, Field, Schema, TimeUnit};
use arrow::error::ArrowError;

use crate::catalog::shapes::{Shape, table_oid};
use crate::types::TYPE_KEY;

/// A value of a row.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Cell {
    Null,
    Bool(bool),
    Int(i64),
    Text(String),
}

impl From<bool> for Cell {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<i64> for Cell {
    fn from(value: i64) -> Self {
        Self::Int(value)
    }
}

impl From<&str> for Cell {
    fn from(value: &str) -> Self {
        Self::Text(value.to_owned())
    }
}

/// Values by the names of their columns; others have the [default](default_of) of their type.
pub(super) type Row = HashMap<&'static str, Cell>;

/// Makes a row.
macro_rules! row {
    ($($column:ident: $value:expr),* $(,)?) => {
        $crate::catalog::batch::Row::from([$((stringify!($column), $crate::catalog::batch::Cell::from($value))),*])
    };
}
pub(super) use row;

/// The rows of a table.
///
/// # Errors
/// If a value does not fit into its column.
pub(super) fn batch((schema, table, columns): Shape, rows: &[Row]) -> Result<RecordBatch, ArrowError> {
    let (mut fields, mut arrays) = (Vec::new(), Vec::new());
    // Each table of PostgreSQL also has its own object id.
    let own = Some("tableoid:oid").filter(|_| schema == "pg_catalog");
    let own_oid = Cell::Int(table_oid(table).unwrap_or_default());
    for column in columns.split_whitespace().chain(own) {
        let (name, kind) = column.split_once(':').unwrap_or((column, "text"));
        let values: Vec<Cell> = rows.iter().map(|row| row.get(name).cloned().unwrap_or(default_of(kind))).collect();
        let values = if name == "tableoid" { vec![own_oid.clone(); rows.len()] } else { values };
        let array = array(kind, &values);
        // Text, too, is said to be text: it may come from tables with other types of it.
        let metadata = HashMap::from([(TYPE_KEY.to_owned(), type_of(kind).to_owned())]);
        fields.push(Field::new(name, array.data_type().clone(), true).with_metadata(metadata));
        arrays.push(array);
    }
    RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays)
}

/// The name in `pg_type` of the type of a column.
fn type_of(kind: &str) -> String {
    match kind.strip_suffix("[]") {
        Some(item) => format!("_{item}"),
        None => kind.to_owned(),
    }
}

/// What a column has where a row does not say: what PostgreSQL has for a plain table.
fn default_of(kind: &str) -> Cell {
    match kind {
        "bool" => Cell::Bool(false),
        "oid" | "int2" | "int4" | "int8" => Cell::Int(0),
        "char" => Cell::Text(String::new()),
        _ => Cell::Null,
    }
}

fn array(kind: &str, values: &[Cell]) -> ArrayRef {
    let integers = || values.iter().map(|value| if let Cell::Int(number) = value { Some(*number) } else { None });
    match kind {
        "bool" => {
            let value = |value: &Cell| if let Cell::Bool(value) = value { Some(*value) } else { None };
            Arc::new(values.iter().map(value).collect::<BooleanArray>())
        }
        "oid" | "int8" => Arc::new(integers().collect::<Int64Array>()),
        "int4" => Arc::new(integers().map(|value| i32::try_from(value?).ok()).collect::<Int32Array>()),
        "int2" => Arc::new(integers().map(|value| i16::try_from(value?).ok()).collect::<Int16Array>()),
        "float4" => Arc::new(integers().map(|value| Some(value? as f32)).collect::<Float32Array>()),
        "timestamptz" => new_null_array(&DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())), values.len()),
        kind if kind.ends_with("[]") => {
            let item = match kind {
                "int2[]" => DataType::Int16,
                "oid[]" => DataType::Int64,
                _ => DataType::Utf8,
            };
            new_null_array(&DataType::List(Arc::new(Field::new_list_field(item, true))), values.len())
        }
        _ => {
            let text = |value: &Cell| if let Cell::Text(text) = value { Some(text.clone()) } else { None };
            Arc::new(values.iter().map(text).collect::<StringArray>())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::shapes::SHAPES;
    use crate::types::{PgType, columns};

    #[test]
    fn every_table_has_columns_of_known_types() {
        for shape in SHAPES {
            let batch = batch(shape, &[]).unwrap();
            for (column, declared) in columns(&batch.schema()).iter().zip(shape.2.split_whitespace()) {
                let kind = declared.split_once(':').unwrap().1;
                assert_eq!(Some(column.kind), PgType::of_name(&type_of(kind)), "{}.{declared}", shape.1);
            }
        }
    }

    #[test]
    fn rows_have_defaults() {
        let batch = batch(("s", "t", "a:oid b:bool c:name d:text[]"), &[row! { c: "x" }, row! { a: 7 }]).unwrap();
        assert_eq!(batch.num_rows(), 2);
        assert_eq!(
            (batch.column(0).null_count(), batch.column(2).null_count(), batch.column(3).null_count()),
            (0, 1, 2)
        );
    }
}
