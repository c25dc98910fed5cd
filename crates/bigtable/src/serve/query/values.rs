//! Values of SQL results, row by row.

use arrow::array::{Array, AsArray};
use arrow::datatypes::{DataType, Date32Type, Float32Type, Float64Type, Int64Type, TimestampMicrosecondType};
use bytes::Bytes;
use prost_types::Timestamp;
use tidetable_layout::time::civil_from_days;

use crate::proto::data::value::Kind;
use crate::proto::data::{ArrayValue, Value};
use crate::proto::dates::Date;

const MICROS: i64 = 1_000_000;

/// The value at `row` of a column of a [normal](super::types::normal) type.
pub(super) fn value(column: &dyn Array, row: usize) -> Value {
    Value { r#type: None, kind: if column.is_null(row) { None } else { kind(column, row) } }
}

fn kind(column: &dyn Array, row: usize) -> Option<Kind> {
    Some(match column.data_type() {
        DataType::Int64 => Kind::IntValue(column.as_primitive_opt::<Int64Type>()?.value(row)),
        DataType::Float32 => Kind::FloatValue(column.as_primitive_opt::<Float32Type>()?.value(row).into()),
        DataType::Float64 => Kind::FloatValue(column.as_primitive_opt::<Float64Type>()?.value(row)),
        DataType::Boolean => Kind::BoolValue(column.as_boolean_opt()?.value(row)),
        DataType::Binary => Kind::BytesValue(Bytes::copy_from_slice(column.as_binary_opt::<i32>()?.value(row))),
        DataType::Utf8 => Kind::StringValue(column.as_string_opt::<i32>()?.value(row).to_owned()),

        DataType::Timestamp(..) => {
            let micros = column.as_primitive_opt::<TimestampMicrosecondType>()?.value(row);
            let nanos = i32::try_from(micros.rem_euclid(MICROS) * 1_000).unwrap_or_default();
            Kind::TimestampValue(Timestamp { seconds: micros.div_euclid(MICROS), nanos })
        }
        DataType::Date32 => Kind::DateValue(date(column.as_primitive_opt::<Date32Type>()?.value(row))),

        DataType::List(_) => {
            let items = column.as_list_opt::<i32>()?.value(row);
            array((0..items.len()).map(|at| value(items.as_ref(), at)).collect())
        }
        DataType::Struct(_) => {
            let fields = column.as_struct_opt()?;
            array(fields.columns().iter().map(|field| value(field.as_ref(), row)).collect())
        }
        DataType::Map(..) => {
            // Each entry is an array of key and value.
            let entries = column.as_map_opt()?.value(row);
            array((0..entries.len()).map(|at| value(&entries, at)).collect())
        }
        _ => return None,
    })
}

fn array(values: Vec<Value>) -> Kind {
    Kind::ArrayValue(ArrayValue { values })
}

/// The day of so many days since the epoch.
fn date(days: i32) -> Date {
    let (year, month, day) = civil_from_days(days.into());
    Date { year: i32::try_from(year).unwrap_or_default(), month: month.cast_signed(), day: day.cast_signed() }
}
