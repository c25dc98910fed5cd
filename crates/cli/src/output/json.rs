//! Rows of batches as JSON objects. Decimals keep their scale; times are RFC 3339; bytes are text
//! if they are UTF-8, otherwise `{"base64": ".."}`.

use std::io::Write;

use arrow::array::{Array, AsArray, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Float32Type, Float64Type};
use arrow::util::display::ArrayFormatter;
use base64::Engine;
use serde_json::Value;
use tidetable_layout::cell::ColumnText;

use crate::error::CliError;
use crate::output::cell_text::{CellText, Length, format_options, is_null};
use crate::output::intervals::IntervalColumn;
use crate::output::values::number_of_time;

/// Bytes that are written at once.
const CHUNK: usize = 64 << 10;

/// Bytes as JSON: text if they are UTF-8, else an object with Base64.
pub fn bytes_value(bytes: &[u8]) -> Value {
    match std::str::from_utf8(bytes) {
        Ok(text) => Value::from(text),
        Err(_) => serde_json::json!({ "base64": base64::engine::general_purpose::STANDARD.encode(bytes) }),
    }
}

/// Writes each row of a batch as an object on a line.
///
/// # Errors
/// If `out` cannot be written, or a column has an unsupported type.
pub fn write_json(out: &mut impl Write, batch: &RecordBatch) -> Result<(), CliError> {
    let mut columns: Vec<(Vec<u8>, JsonColumn<'_>)> = Vec::new();
    for (field, column) in batch.schema_ref().fields().iter().zip(batch.columns()) {
        let mut name = vec![if columns.is_empty() { b'{' } else { b',' }];
        serde_json::to_writer(&mut name, field.name())?;
        name.push(b':');
        columns.push((name, JsonColumn::new(column.as_ref())));
    }

    let mut lines = Vec::with_capacity(CHUNK + (4 << 10));
    for row in 0..batch.num_rows() {
        if columns.is_empty() {
            lines.push(b'{');
        }
        for (name, column) in &mut columns {
            lines.extend_from_slice(name);
            column.write(row, &mut lines)?;
        }
        lines.extend_from_slice(b"}\n");

        if lines.len() >= CHUNK {
            out.write_all(&lines)?;
            lines.clear();
        }
    }

    Ok(out.write_all(&lines)?)
}

/// How the values of a column are written.
enum JsonColumn<'a> {
    /// Numbers and booleans.
    Bare(&'a dyn Array, ColumnText<'a>),
    /// Times and dates, in quotes; they need no escapes.
    Quoted(&'a dyn Array, ColumnText<'a>),
    Text(&'a StringArray),
    Other(&'a dyn Array),
}

impl<'a> JsonColumn<'a> {
    fn new(array: &'a dyn Array) -> Self {
        match (array.data_type(), ColumnText::new(array)) {
            (DataType::Utf8, _) => Self::Text(array.as_string()),
            // Not all floats are numbers of JSON.
            (DataType::Float64, _) | (_, None) => Self::Other(array),
            (DataType::Timestamp(..) | DataType::Date32, Some(text)) => Self::Quoted(array, text),
            (_, Some(text)) => Self::Bare(array, text),
        }
    }

    fn write(&mut self, row: usize, out: &mut Vec<u8>) -> Result<(), CliError> {
        match self {
            Self::Bare(array, _) | Self::Quoted(array, _) if is_null(*array, row) => out.extend_from_slice(b"null"),
            Self::Bare(_, text) => text.write(row, out),
            Self::Quoted(array, text) => {
                if let Some(number) = number_of_time(*array, row) {
                    out.extend_from_slice(number.to_string().as_bytes());
                    return Ok(());
                }
                out.push(b'"');
                text.write(row, out);
                out.push(b'"');
            }
            Self::Text(array) if array.is_valid(row) => serde_json::to_writer(out, array.value(row))?,
            Self::Text(_) => out.extend_from_slice(b"null"),
            Self::Other(array) => write_value(out, *array, row)?,
        }
        Ok(())
    }
}

fn write_value(out: &mut impl Write, array: &dyn Array, row: usize) -> Result<(), CliError> {
    if is_null(array, row) {
        out.write_all(b"null")?;
        return Ok(());
    }

    if let Some(number) = number_of_time(array, row) {
        out.write_all(number.to_string().as_bytes())?;
        return Ok(());
    }

    match array.data_type() {
        DataType::List(_) => write_list(out, array.as_list::<i32>().value(row).as_ref()),
        DataType::LargeList(_) => write_list(out, array.as_list::<i64>().value(row).as_ref()),
        DataType::FixedSizeList(_, _) => write_list(out, array.as_fixed_size_list().value(row).as_ref()),
        DataType::Struct(fields) => {
            let parts = array.as_struct();
            let names = fields.iter().map(|field| field.name().as_str());
            write_object(out, names.zip(parts.columns()).map(|(name, column)| (name.to_owned(), column.as_ref(), row)))
        }
        DataType::Map(_, _) => {
            let entries = array.as_map().value(row);
            let (keys, values) = (entries.column(0), entries.column(1));
            // Names must be text: others are escaped, as in a table.
            let mut names = CellText::new(keys.as_ref(), Length::Whole)?;
            let pairs = (0..entries.len()).map(|at| (names.value(at), values.as_ref(), at));
            write_object(out, pairs)
        }
        DataType::Binary => json(out, &bytes_value(array.as_binary::<i32>().value(row))),
        DataType::LargeBinary => json(out, &bytes_value(array.as_binary::<i64>().value(row))),
        DataType::BinaryView => json(out, &bytes_value(array.as_binary_view().value(row))),
        DataType::Float32 => json(out, &float(f64::from(array.as_primitive::<Float32Type>().value(row)))),
        DataType::Float64 => json(out, &float(array.as_primitive::<Float64Type>().value(row))),
        kind => {
            let text = match IntervalColumn::new(array) {
                Some(intervals) => intervals.text(row),
                None => ArrayFormatter::try_new(array, &format_options(kind))?.value(row).to_string(),
            };
            let bare = kind.is_integer() || kind.is_decimal() || *kind == DataType::Boolean;
            if bare {
                out.write_all(text.as_bytes())?;
                return Ok(());
            }
            json(out, &Value::from(text))
        }
    }
}

/// JSON has no NaN and no infinities: they become strings.
fn float(value: f64) -> Value {
    serde_json::Number::from_f64(value).map_or_else(|| Value::from(value.to_string()), Value::Number)
}

fn json(out: &mut impl Write, value: &Value) -> Result<(), CliError> {
    serde_json::to_writer(out, value)?;
    Ok(())
}

fn write_list(out: &mut impl Write, items: &dyn Array) -> Result<(), CliError> {
    out.write_all(b"[")?;
    for at in 0..items.len() {
        if at > 0 {
            out.write_all(b",")?;
        }
        write_value(out, items, at)?;
    }
    out.write_all(b"]")?;
    Ok(())
}

fn write_object<'a, W: Write>(
    out: &mut W,
    pairs: impl Iterator<Item = (String, &'a dyn Array, usize)>,
) -> Result<(), CliError> {
    out.write_all(b"{")?;
    for (at, (name, array, row)) in pairs.enumerate() {
        if at > 0 {
            out.write_all(b",")?;
        }
        serde_json::to_writer(&mut *out, &name)?;
        out.write_all(b":")?;
        write_value(out, array, row)?;
    }
    out.write_all(b"}")?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, DictionaryArray, ListArray, NullArray};
    use arrow::buffer::OffsetBuffer;
    use arrow::datatypes::{Field, Int32Type};

    use super::*;

    #[test]
    fn nulls_of_any_type_are_null() {
        let untyped: ArrayRef = Arc::new(NullArray::new(2));
        let item = Arc::new(Field::new("item", DataType::Null, true));
        let list = ListArray::new(item, OffsetBuffer::from_lengths([1, 1]), Arc::clone(&untyped), None);
        let words: DictionaryArray<Int32Type> = [Some("a"), None].into_iter().collect();
        let columns: [(&str, ArrayRef); 3] = [("u", untyped), ("l", Arc::new(list)), ("d", Arc::new(words))];
        let batch = RecordBatch::try_from_iter(columns).unwrap();
        let mut out = Vec::new();
        write_json(&mut out, &batch).unwrap();
        let expected = "{\"u\":null,\"l\":[null],\"d\":\"a\"}\n{\"u\":null,\"l\":[null],\"d\":null}\n";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
}
