//! Maps, structs and nested lists as JSON, with the values that `tidetable sql --output json` has: decimals keep their scale, times
//! are RFC 3339, bytes are text if they are UTF-8 and otherwise `{"base64": ".."}`.

use arrow::array::{Array, AsArray};
use arrow::datatypes::{DataType, Float32Type, Float64Type};
use arrow::util::display::{ArrayFormatter, FormatOptions};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::{BufMut, BytesMut};
use serde_json::Value;
use tidetable_layout::cell::ColumnText;

const MOMENT: &str = "%Y-%m-%dT%H:%M:%S%.fZ";
const LOCAL: &str = "%Y-%m-%dT%H:%M:%S%.f";

/// Appends the value of a row.
pub(crate) fn write_json(array: &dyn Array, row: usize, out: &mut BytesMut) {
    if array.is_null(row) || *array.data_type() == DataType::Null {
        out.put_slice(b"null");
        return;
    }

    match array.data_type() {
        DataType::List(_) => list(array.as_list::<i32>().value(row).as_ref(), out),
        DataType::LargeList(_) => list(array.as_list::<i64>().value(row).as_ref(), out),
        DataType::FixedSizeList(..) => list(array.as_fixed_size_list().value(row).as_ref(), out),
        DataType::Struct(fields) => {
            let parts = fields.iter().zip(array.as_struct().columns());
            for (place, (field, part)) in parts.enumerate() {
                out.put_u8(if place == 0 { b'{' } else { b',' });
                name(field.name(), out);
                write_json(part.as_ref(), row, out);
            }
            out.put_slice(if fields.is_empty() { b"{}" } else { b"}" });
        }
        DataType::Map(..) => {
            let entries = array.as_map().value(row);
            let (keys, values) = (entries.column(0), entries.column(1));
            out.put_u8(b'{');
            for place in 0..entries.len() {
                if place > 0 {
                    out.put_u8(b',');
                }
                name(&key(keys.as_ref(), place), out);
                write_json(values.as_ref(), place, out);
            }
            out.put_u8(b'}');
        }
        DataType::Binary => json(out, &bytes(array.as_binary::<i32>().value(row))),
        DataType::LargeBinary => json(out, &bytes(array.as_binary::<i64>().value(row))),
        DataType::BinaryView => json(out, &bytes(array.as_binary_view().value(row))),
        DataType::Float32 => json(out, &float(array.as_primitive::<Float32Type>().value(row).into())),
        DataType::Float64 => json(out, &float(array.as_primitive::<Float64Type>().value(row))),
        kind => {
            let text = plain(array, row);
            match is_bare(kind) {
                true => out.put_slice(text.as_bytes()),
                false => json(out, &Value::from(text)),
            }
        }
    }
}

/// The text of a value that is neither nested nor bytes.
fn plain(array: &dyn Array, row: usize) -> String {
    if let Some(mut column) = ColumnText::new(array) {
        let mut text = Vec::new();
        column.write(row, &mut text);
        return String::from_utf8_lossy(&text).into_owned();
    }
    let options = FormatOptions::new().with_timestamp_tz_format(Some(MOMENT)).with_timestamp_format(Some(LOCAL));
    match ArrayFormatter::try_new(array, &options) {
        Ok(formatter) => formatter.value(row).to_string(),
        Err(_) => String::new(),
    }
}

/// The name of an entry of a map: names are text, so bytes that are none are escaped.
fn key(keys: &dyn Array, row: usize) -> String {
    let of_bytes = |bytes: &[u8]| match std::str::from_utf8(bytes) {
        Ok(text) => text.to_owned(),
        Err(_) => bytes.escape_ascii().to_string(),
    };
    match keys.data_type() {
        DataType::Binary => of_bytes(keys.as_binary::<i32>().value(row)),
        DataType::LargeBinary => of_bytes(keys.as_binary::<i64>().value(row)),
        DataType::BinaryView => of_bytes(keys.as_binary_view().value(row)),
        _ => plain(keys, row),
    }
}

/// Whether a value of a type has a text of its own in JSON, without quotes.
fn is_bare(kind: &DataType) -> bool {
    kind.is_integer() || kind.is_decimal() || *kind == DataType::Boolean
}

fn bytes(bytes: &[u8]) -> Value {
    match std::str::from_utf8(bytes) {
        Ok(text) => Value::from(text),
        Err(_) => serde_json::json!({ "base64": STANDARD.encode(bytes) }),
    }
}

/// JSON has no NaN and no infinities: they become strings.
fn float(value: f64) -> Value {
    serde_json::Number::from_f64(value).map_or_else(|| Value::from(value.to_string()), Value::Number)
}

fn list(items: &dyn Array, out: &mut BytesMut) {
    out.put_u8(b'[');
    for place in 0..items.len() {
        if place > 0 {
            out.put_u8(b',');
        }
        write_json(items, place, out);
    }
    out.put_u8(b']');
}

fn name(name: &str, out: &mut BytesMut) {
    json(out, &Value::from(name));
    out.put_u8(b':');
}

fn json(out: &mut BytesMut, value: &Value) {
    // A buffer in memory takes all.
    let _ = serde_json::to_writer(out.writer(), value);
}
