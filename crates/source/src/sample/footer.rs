//! The columns of a Parquet file.

use arrow::datatypes::{DataType, Schema};
use chrono_tz::Tz;
use tidetable_layout::FieldType;

use crate::spec::ColumnSpec;

/// The columns that can be read, and the names of the others with why.
pub(super) fn columns(schema: &Schema, zone: Option<Tz>) -> (Vec<ColumnSpec>, Vec<String>) {
    let (mut columns, mut left_out) = (Vec::new(), Vec::new());
    for field in schema.fields() {
        match kind(field.data_type()) {
            Some(kind) => {
                let local = matches!(field.data_type(), DataType::Timestamp(_, None));
                let timezone = zone.filter(|_| local);
                columns.push(ColumnSpec { timezone, ..ColumnSpec::new(field.name().clone(), kind) });
            }
            None => left_out.push(format!("{} ({})", field.name(), field.data_type())),
        }
    }
    (columns, left_out)
}

fn kind(from: &DataType) -> Option<FieldType> {
    use DataType as D;
    Some(match from {
        D::Dictionary(_, value) => kind(value)?,
        D::Utf8 | D::LargeUtf8 | D::Utf8View => FieldType::Text,
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
