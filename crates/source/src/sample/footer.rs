//! The columns of a file that has them with their types.

use arrow::datatypes::{DataType, Fields, Schema};
use chrono_tz::Tz;
use tidetable_layout::FieldType;

use crate::columnar::FileColumn;
use crate::spec::ColumnSpec;

/// The columns that can be read, and the names of the others with their types.
pub(super) fn columns(found: &[FileColumn], zone: Option<Tz>) -> (Vec<ColumnSpec>, Vec<String>) {
    let (mut columns, mut left_out) = (Vec::new(), Vec::new());
    for column in found {
        match kind(&column.data_type) {
            Some(kind) => {
                let local = matches!(column.data_type, DataType::Timestamp(_, None));
                let timezone = zone.filter(|_| local);
                columns.push(ColumnSpec { timezone, ..ColumnSpec::new(column.name.clone(), kind) });
            }
            None => left_out.push(named(column)),
        }
    }
    (columns, left_out)
}

/// The lists whose elements are most likely events: the first list of structs, and that inside of it.
pub(super) fn likely_lists(schema: &Schema) -> Vec<String> {
    first_list(schema.fields(), "").into_iter().collect()
}

/// The path of the first list of structs in `fields`, and inside of its elements; `prefix` leads to them.
fn first_list(fields: &Fields, prefix: &str) -> Option<String> {
    fields.iter().find_map(|field| {
        let path = format!("{prefix}{}", field.name());
        match field.data_type() {
            DataType::Struct(children) => first_list(children, &format!("{path}.")),
            DataType::List(item) | DataType::LargeList(item) => match item.data_type() {
                DataType::Struct(children) => Some(first_list(children, &format!("{path}.")).unwrap_or(path)),
                _ => None,
            },
            _ => None,
        }
    })
}

/// A column with its type. The type of what is nested is long, so it is only named.
pub(super) fn named(column: &FileColumn) -> String {
    let kind = match &column.data_type {
        DataType::List(_) | DataType::LargeList(_) | DataType::FixedSizeList(..) | DataType::ListView(_) => "List",
        DataType::Map(..) => "Map",
        other => return format!("{} ({other})", column.name),
    };
    format!("{} ({kind})", column.name)
}

fn kind(from: &DataType) -> Option<FieldType> {
    use DataType as D;

    Some(match from {
        D::Dictionary(_, value) => kind(value)?,
        D::Utf8 | D::LargeUtf8 | D::Utf8View => FieldType::Text,
        // Most writers without annotations mean text; the sample tells.
        D::Binary | D::LargeBinary | D::BinaryView | D::FixedSizeBinary(_) => FieldType::Text,
        D::UInt64 => FieldType::UInt64,
        integer if integer.is_integer() => FieldType::Int64,
        D::Float16 | D::Float32 | D::Float64 => FieldType::Float64,
        D::Decimal32(precision, scale)
        | D::Decimal64(precision, scale)
        | D::Decimal128(precision, scale)
        | D::Decimal256(precision, scale) => {
            let scale = u8::try_from(*scale).ok().filter(|scale| scale <= precision && *precision <= 38);
            scale.map_or(FieldType::Float64, |scale| FieldType::Decimal { precision: *precision, scale })
        }
        D::Boolean => FieldType::Bool,
        D::Timestamp(..) => FieldType::Timestamp,
        D::Date32 | D::Date64 => FieldType::Date,
        _ => return None,
    })
}
