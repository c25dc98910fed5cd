//! Lists, maps and unions as text: JSON of what is nested, and the plain text of single values.

use std::ops::Range;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, StringBuilder, StructArray};
use arrow::datatypes::DataType;
use arrow::error::ArrowError;
use arrow::util::display::array_value_to_string;

/// Each value of a column as text: lists and maps as JSON, other values as messages show them. A null stays one.
pub(super) fn texts(array: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    let nulls = array.logical_nulls();
    let mut texts = StringBuilder::new();
    let mut text = String::new();
    for row in 0..array.len() {
        if nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)) {
            texts.append_null();
            continue;
        }
        text.clear();
        write_value(array.as_ref(), row, &mut text)?;
        texts.append_value(&text);
    }
    Ok(std::sync::Arc::new(texts.finish()))
}

/// Each row as a line of JSON with the names of its columns.
pub(super) fn lines(batch: &RecordBatch) -> Result<String, ArrowError> {
    let rows = StructArray::from(batch.clone());
    let mut text = String::new();
    for row in 0..rows.len() {
        write_json(&rows, row, &mut text)?;
        text.push('\n');
    }
    Ok(text)
}

/// A value that is not nested is not quoted.
fn write_value(array: &dyn Array, row: usize, into: &mut String) -> Result<(), ArrowError> {
    if let Some(union) = array.as_any().downcast_ref::<arrow::array::UnionArray>() {
        return write_value(union.child(union.type_id(row)).as_ref(), union.value_offset(row), into);
    }
    match bytes_of(array, row) {
        Some(bytes) if array.is_valid(row) => into.push_str(&text_of_bytes(bytes)),
        _ if array.data_type().is_nested() => write_json(array, row, into)?,
        _ => into.push_str(&array_value_to_string(array, row)?),
    }
    Ok(())
}

/// Appends a value as JSON. Numbers keep their digits; times are in quotes.
fn write_json(array: &dyn Array, row: usize, into: &mut String) -> Result<(), ArrowError> {
    if let Some(union) = array.as_any().downcast_ref::<arrow::array::UnionArray>() {
        return write_json(union.child(union.type_id(row)).as_ref(), union.value_offset(row), into);
    }
    if array.is_null(row) {
        into.push_str("null");
        return Ok(());
    }

    if let Some((items, range)) = elements(array, row) {
        into.push('[');
        for (at, item) in range.enumerate() {
            into.push_str(if at > 0 { "," } else { "" });
            write_json(items.as_ref(), item, into)?;
        }
        into.push(']');
    } else if let Some(map) = array.as_map_opt() {
        let range = range_of(map.value_offsets(), row);
        into.push('{');
        for (at, entry) in range.enumerate() {
            into.push_str(if at > 0 { "," } else { "" });
            let mut key = String::new();
            write_value(map.keys().as_ref(), entry, &mut key)?;
            push_quoted(&key, into);
            into.push(':');
            write_json(map.values().as_ref(), entry, into)?;
        }
        into.push('}');
    } else if let Some(parent) = array.as_struct_opt() {
        into.push('{');
        for (at, (field, child)) in parent.fields().iter().zip(parent.columns()).enumerate() {
            into.push_str(if at > 0 { "," } else { "" });
            push_quoted(field.name(), into);
            into.push(':');
            write_json(child.as_ref(), row, into)?;
        }
        into.push('}');
    } else if array.data_type().is_nested() {
        // No writer of files has other nested types.
        into.push_str("null");
    } else {
        let mut text = String::new();
        write_value(array, row, &mut text)?;
        let is_bare = match array.data_type() {
            DataType::Boolean => true,
            // JSON has neither NaN nor infinity.
            kind => kind.is_numeric() && text.bytes().any(|byte| byte.is_ascii_digit()),
        };
        if is_bare { into.push_str(&text) } else { push_quoted(&text, into) }
    }
    Ok(())
}

/// The items of a list, and which of them are of a row.
fn elements(array: &dyn Array, row: usize) -> Option<(&ArrayRef, Range<usize>)> {
    match array.data_type() {
        DataType::List(_) => {
            let list = array.as_list::<i32>();
            Some((list.values(), range_of(list.value_offsets(), row)))
        }
        DataType::LargeList(_) => {
            let list = array.as_list::<i64>();
            Some((list.values(), range_of(list.value_offsets(), row)))
        }
        DataType::ListView(_) => {
            let list = array.as_list_view::<i32>();
            let start = list.value_offset(row).cast_unsigned() as usize;
            Some((list.values(), start..start + list.value_size(row).cast_unsigned() as usize))
        }
        DataType::LargeListView(_) => {
            let list = array.as_list_view::<i64>();
            let start = list.value_offset(row).cast_unsigned() as usize;
            Some((list.values(), start..start + list.value_size(row).cast_unsigned() as usize))
        }
        DataType::FixedSizeList(..) => {
            let list = array.as_fixed_size_list();
            let start = list.value_offset(row).cast_unsigned() as usize;
            Some((list.values(), start..start + list.value_length().cast_unsigned() as usize))
        }
        _ => None,
    }
}

/// The range of a row by the offsets of its start and its end.
fn range_of<T: Copy + TryInto<usize>>(offsets: &[T], row: usize) -> Range<usize> {
    let at = |place: usize| offsets.get(place).copied().and_then(|offset| offset.try_into().ok()).unwrap_or(0);
    at(row)..at(row + 1)
}

/// The bytes of a binary value; `None` for other types.
fn bytes_of(array: &dyn Array, row: usize) -> Option<&[u8]> {
    match array.data_type() {
        DataType::Binary => Some(array.as_binary::<i32>().value(row)),
        DataType::LargeBinary => Some(array.as_binary::<i64>().value(row)),
        _ => None,
    }
}

/// Bytes as text if they are UTF-8, and as hexadecimal digits if not.
fn text_of_bytes(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) => text.to_owned(),
        Err(_) => bytes.iter().map(|byte| format!("{byte:02x}")).collect(),
    }
}

fn push_quoted(text: &str, into: &mut String) {
    into.push_str(&serde_json::Value::from(text).to_string());
}
