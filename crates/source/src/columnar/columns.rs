//! The columns of a file: fields of structs are columns with dotted names, such as `resource.host`.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, make_array};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{DataType, Field, FieldRef, Fields, Schema, TimeUnit};
use arrow::error::ArrowError;
use parquet::basic::{LogicalType, Type};
use parquet::schema::types::SchemaDescriptor;

use crate::columnar::json_text::texts;
use crate::spec::SourceSpec;

const UUID: &str = "arrow.uuid";

/// A column that a source may declare.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FileColumn {
    /// The names on its path, joined by points: what a declaration calls it.
    pub name: String,
    /// The names from the root of the schema to it.
    pub path: Vec<String>,
    pub data_type: DataType,
    /// Its place among the leaves of a Parquet file; `None` for nested columns and other formats.
    pub leaf: Option<usize>,
    /// Whether it is stored as INT96, whose range exceeds that of every Arrow timestamp.
    pub is_int96: bool,
    pub is_uuid: bool,
}

/// The columns of a file; `leaves` are those of Parquet. Where two have one name, the one that is not a field of a struct has it.
pub(crate) fn columns(schema: &Schema, leaves: Option<&SchemaDescriptor>) -> Vec<FileColumn> {
    let mut columns = Vec::new();
    add(schema.fields(), &[], leaves, &mut columns);
    let roots: BTreeSet<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
    columns.retain(|column| column.path.len() == 1 || !roots.contains(column.name.as_str()));
    columns
}

/// Appends the columns of `fields`, which are inside of the structs named by `parents`.
fn add(fields: &Fields, parents: &[String], leaves: Option<&SchemaDescriptor>, columns: &mut Vec<FileColumn>) {
    for field in fields {
        let mut path = parents.to_vec();
        path.push(field.name().clone());
        if let DataType::Struct(children) = field.data_type() {
            add(children, &path, leaves, columns);
            continue;
        }

        let place = leaves.and_then(|leaves| leaves.columns().iter().position(|leaf| leaf.path().parts() == path));
        let leaf = leaves.zip(place).map(|(leaves, place)| leaves.column(place));
        columns.push(FileColumn {
            name: path.join("."),
            data_type: field.data_type().clone(),
            leaf: place,
            is_int96: leaf.as_ref().is_some_and(|leaf| leaf.physical_type() == Type::INT96),
            is_uuid: leaf.as_ref().is_some_and(|leaf| leaf.logical_type_ref() == Some(&LogicalType::Uuid))
                || field.extension_type_name() == Some(UUID)
                || field.metadata().get("logicalType").is_some_and(|name| name == "uuid"),
            path,
        });
    }
}

/// The columns that the declaration is matched to: a struct of which no field is declared counts as one column.
pub(super) fn declarable(schema: &Schema, columns: Vec<FileColumn>, spec: &SourceSpec) -> Vec<FileColumn> {
    let mut found: Vec<FileColumn> = Vec::new();
    for column in columns {
        let is_declared = spec.columns.iter().any(|wanted| wanted.name == column.name);
        if column.path.len() == 1 || is_declared {
            found.push(column);
            continue;
        }
        let root = column.path.first().cloned().unwrap_or_default();
        let is_known = found.iter().any(|known| known.path.first() == Some(&root));
        if let (false, Ok(field)) = (is_known, schema.field_with_name(&root)) {
            let data_type = field.data_type().clone();
            found.push(FileColumn { name: root.clone(), path: vec![root], data_type, leaf: None, ..column });
        }
    }
    found
}

/// The schema with INT96 columns in microseconds; `None` if there are none.
pub(crate) fn in_micros(schema: &Schema, leaves: &SchemaDescriptor) -> Option<Schema> {
    let int96 = leaves.columns().iter().filter(|leaf| leaf.physical_type() == Type::INT96);
    let int96: Vec<&[String]> = int96.map(|leaf| leaf.path().parts()).collect();
    if int96.is_empty() {
        return None;
    }

    let fields = schema.fields().iter().map(|field| micros_field(field, &mut Vec::new(), &int96));
    Some(Schema::new_with_metadata(fields.collect::<Fields>(), schema.metadata().clone()))
}

fn micros_field(field: &FieldRef, parents: &mut Vec<String>, int96: &[&[String]]) -> FieldRef {
    parents.push(field.name().clone());
    let data_type = match field.data_type() {
        DataType::Struct(children) => {
            DataType::Struct(children.iter().map(|child| micros_field(child, parents, int96)).collect())
        }
        DataType::Timestamp(TimeUnit::Nanosecond, zone) if int96.contains(&parents.as_slice()) => {
            DataType::Timestamp(TimeUnit::Microsecond, zone.clone())
        }
        other => other.clone(),
    };
    parents.pop();
    Arc::new(Field::clone(field).with_data_type(data_type))
}

/// The values of the column at `path`: null where a struct around it is. `None` if the batch lacks it.
pub(super) fn values(batch: &RecordBatch, path: &[String]) -> Result<Option<ArrayRef>, ArrowError> {
    let Some((root, inner)) = path.split_first() else { return Ok(None) };
    let Some(mut array) = batch.column_by_name(root).map(Arc::clone) else { return Ok(None) };
    for name in inner {
        let Some(parent) = array.as_struct_opt() else { return Ok(None) };
        let Some(child) = parent.column_by_name(name) else { return Ok(None) };
        array = if parent.nulls().is_none() {
            Arc::clone(child)
        } else {
            // A union has no nulls of its own.
            let child =
                &if matches!(child.data_type(), DataType::Union(..)) { texts(child)? } else { Arc::clone(child) };
            let nulls = NullBuffer::union(parent.nulls(), child.logical_nulls().as_ref());
            make_array(child.to_data().into_builder().nulls(nulls).build()?)
        };
    }
    Ok(Some(array))
}
