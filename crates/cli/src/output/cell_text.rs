//! Values of a column as text, for tables and CSV.

use arrow::array::{Array, AsArray, BinaryArray, BinaryViewArray, LargeBinaryArray, ListArray, MapArray};
use arrow::datatypes::DataType;
use arrow::error::ArrowError;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use tidetable_layout::cell::ColumnText;

use crate::output::intervals::IntervalColumn;
use crate::output::values::{count, number_of_time};

/// Longest binary value that is shown whole.
const LONGEST: usize = 24;
/// Bytes shown of a longer one.
const SHOWN: usize = 8;

/// Formats values. Bytes are text if they are UTF-8, otherwise escaped; maps and structs are
/// `{key: value}`, lists `[a, b]`, and nulls in them `null`.
pub enum CellText<'a> {
    Bytes(&'a BinaryArray, Length),
    LargeBytes(&'a LargeBinaryArray, Length),
    ViewBytes(&'a BinaryViewArray, Length),
    List(&'a ListArray, Box<CellText<'a>>),
    Map(&'a MapArray, Box<[CellText<'a>; 2]>),
    Struct(&'a dyn Array, Vec<(&'a str, CellText<'a>)>),
    Plain(&'a dyn Array, ColumnText<'a>),
    Interval(&'a dyn Array, IntervalColumn<'a>),
    Other(&'a dyn Array, ArrayFormatter<'a>),
}

/// How much is shown of binary values.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Length {
    /// All.
    #[default]
    Whole,
    /// The first bytes and the length, since sketches and images are unreadable.
    Short,
}

impl<'a> CellText<'a> {
    /// Prepares a column.
    ///
    /// # Errors
    /// If its type cannot be shown.
    pub fn new(column: &'a dyn Array, length: Length) -> Result<Self, ArrowError> {
        Ok(match column.data_type() {
            DataType::Binary => Self::Bytes(column.as_binary(), length),
            DataType::LargeBinary => Self::LargeBytes(column.as_binary(), length),
            DataType::BinaryView => Self::ViewBytes(column.as_binary_view(), length),
            DataType::List(_) => {
                let list = column.as_list();
                Self::List(list, Box::new(Self::new(list.values().as_ref(), length)?))
            }
            DataType::Map(_, _) => {
                let map = column.as_map();
                let parts = [Self::new(map.keys().as_ref(), length)?, Self::new(map.values().as_ref(), length)?];
                Self::Map(map, Box::new(parts))
            }
            DataType::Struct(fields) => {
                let parts = fields.iter().zip(column.as_struct().columns());
                let parts = parts.map(|(field, part)| Ok((field.name().as_str(), Self::new(part.as_ref(), length)?)));
                Self::Struct(column, parts.collect::<Result<_, ArrowError>>()?)
            }
            _ => match (ColumnText::new(column), IntervalColumn::new(column)) {
                (Some(text), _) => Self::Plain(column, text),
                (None, Some(intervals)) => Self::Interval(column, intervals),
                (None, None) => {
                    Self::Other(column, ArrayFormatter::try_new(column, &format_options(column.data_type()))?)
                }
            },
        })
    }

    /// The text of a row; empty for null.
    pub fn value(&mut self, row: usize) -> String {
        let mut out = Vec::new();
        self.append(row, &mut out);
        String::from_utf8_lossy(&out).into_owned()
    }

    /// Appends the text of a row, in UTF-8; nothing for null.
    pub fn append(&mut self, row: usize, out: &mut Vec<u8>) {
        if !self.is_null(row) {
            self.write(row, out);
        }
    }

    /// Whether texts may need quotes in CSV.
    pub fn may_need_quotes(&self) -> bool {
        !matches!(self, Self::Plain(array, _) if *array.data_type() != DataType::Utf8)
    }

    fn is_null(&self, row: usize) -> bool {
        match self {
            Self::Bytes(array, _) => array.is_null(row),
            Self::LargeBytes(array, _) => array.is_null(row),
            Self::ViewBytes(array, _) => array.is_null(row),
            Self::List(array, _) => array.is_null(row),
            Self::Map(array, _) => array.is_null(row),
            Self::Struct(array, _) | Self::Plain(array, _) | Self::Interval(array, _) | Self::Other(array, _) => {
                is_null(*array, row)
            }
        }
    }

    fn write_part(&mut self, row: usize, out: &mut Vec<u8>) {
        if self.is_null(row) { out.extend_from_slice(b"null") } else { self.write(row, out) }
    }

    fn write(&mut self, row: usize, out: &mut Vec<u8>) {
        match self {
            Self::Bytes(array, length) => write_bytes(array.value(row), *length, out),
            Self::LargeBytes(array, length) => write_bytes(array.value(row), *length, out),
            Self::ViewBytes(array, length) => write_bytes(array.value(row), *length, out),
            Self::List(array, items) => {
                out.push(b'[');
                for (at, item) in ends(array.value_offsets(), row).enumerate() {
                    out.extend_from_slice(if at == 0 { b"" } else { b", " });
                    items.write_part(item, out);
                }
                out.push(b']');
            }
            Self::Map(array, parts) => {
                let [keys, values] = parts.as_mut();
                out.push(b'{');
                for (at, entry) in ends(array.value_offsets(), row).enumerate() {
                    out.extend_from_slice(if at == 0 { b"" } else { b", " });
                    keys.write_part(entry, out);
                    out.extend_from_slice(b": ");
                    values.write_part(entry, out);
                }
                out.push(b'}');
            }
            Self::Struct(_, parts) => {
                out.push(b'{');
                for (at, (name, part)) in parts.iter_mut().enumerate() {
                    out.extend_from_slice(if at == 0 { b"" } else { b", " });
                    out.extend_from_slice(name.as_bytes());
                    out.extend_from_slice(b": ");
                    part.write_part(row, out);
                }
                out.push(b'}');
            }
            Self::Plain(array, text) => match number_of_time(*array, row) {
                Some(number) => out.extend_from_slice(number.to_string().as_bytes()),
                None => text.write(row, out),
            },
            Self::Interval(_, intervals) => out.extend_from_slice(intervals.text(row).as_bytes()),
            Self::Other(_, formatter) => out.extend_from_slice(formatter.value(row).to_string().as_bytes()),
        }
    }
}

/// Whether a value is null. Arrow's `is_null` knows the null mask of an array only, which untyped NULLs and dictionaries lack.
pub(crate) fn is_null(array: &dyn Array, row: usize) -> bool {
    match array.data_type() {
        DataType::Null => true,
        DataType::Dictionary(..) | DataType::RunEndEncoded(..) => {
            array.logical_nulls().is_some_and(|nulls| nulls.is_null(row))
        }
        _ => array.is_null(row),
    }
}

fn ends(offsets: &[i32], row: usize) -> std::ops::Range<usize> {
    offsets[row] as usize..offsets[row + 1] as usize
}

/// Format options of values of a type. Results are in UTC; times nested in lists, maps and structs keep their zone, so
/// their offset is shown.
pub(crate) fn format_options(kind: &DataType) -> FormatOptions<'static> {
    let is_utc = |zone: &str| matches!(zone, "UTC" | "Z" | "+00:00");
    let format = match kind {
        DataType::Timestamp(_, Some(zone)) if !is_utc(zone) => "%Y-%m-%dT%H:%M:%S%.f%:z",
        _ => "%Y-%m-%dT%H:%M:%S%.fZ",
    };
    FormatOptions::new().with_timestamp_tz_format(Some(format)).with_timestamp_format(Some("%Y-%m-%dT%H:%M:%S%.f"))
}

/// Bytes as text, escaped if they are not UTF-8.
pub fn write_bytes(bytes: &[u8], length: Length, out: &mut Vec<u8>) {
    match (std::str::from_utf8(bytes), length) {
        (Ok(text), _) => out.extend_from_slice(text.as_bytes()),
        (Err(_), Length::Short) if bytes.len() > LONGEST => {
            let first = bytes.get(..SHOWN).unwrap_or_default();
            let short = format!("{}.. ({})", first.escape_ascii(), count(bytes.len() as u64, "byte"));
            out.extend_from_slice(short.as_bytes());
        }
        (Err(_), _) => out.extend(bytes.escape_ascii()),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{
        ArrayRef, BinaryBuilder, DictionaryArray, Int64Builder, ListBuilder, MapBuilder, NullArray, StructArray,
        TimestampMicrosecondBuilder,
    };
    use arrow::buffer::OffsetBuffer;
    use arrow::datatypes::{Field, Int32Type};

    use super::*;

    #[test]
    fn what_is_nested_is_readable() {
        let mut map = MapBuilder::new(None, BinaryBuilder::new(), ListBuilder::new(Int64Builder::new()));
        map.keys().append_value(b"ID");
        map.values().append_value([Some(1), None]);
        map.keys().append_value(b"\xff");
        map.values().append(false);
        map.append(true).unwrap();
        map.append(true).unwrap();
        map.append(false).unwrap();
        let map: ArrayRef = Arc::new(map.finish());
        let field = Arc::new(Field::new("m", map.data_type().clone(), true));
        let whole = StructArray::from(vec![(field, Arc::clone(&map))]);
        let texts = |array: &dyn Array| -> Vec<String> {
            let mut text = CellText::new(array, Length::Whole).unwrap();
            (0..array.len()).map(|row| text.value(row)).collect()
        };
        assert_eq!(texts(map.as_ref()), ["{ID: [1, null], \\xff: null}", "{}", ""]);
        assert_eq!(texts(&whole)[1..], ["{m: {}}", "{m: null}"]);
        assert_eq!(texts(map.slice(1, 2).as_ref()), ["{}", ""]);
    }

    #[test]
    fn untyped_nulls_are_null() {
        let untyped: ArrayRef = Arc::new(NullArray::new(2));
        assert_eq!(CellText::new(untyped.as_ref(), Length::Whole).unwrap().value(1), "");
        let field = Arc::new(Field::new("item", DataType::Null, true));
        let list = ListArray::new(field, OffsetBuffer::from_lengths([2]), untyped, None);
        assert_eq!(CellText::new(&list, Length::Whole).unwrap().value(0), "[null, null]");
        let words: DictionaryArray<Int32Type> = [Some("a"), None].into_iter().collect();
        assert_eq!((is_null(&words, 0), is_null(&words, 1)), (false, true));
    }

    #[test]
    fn nested_times_show_their_offset() {
        let mut list = ListBuilder::new(TimestampMicrosecondBuilder::new().with_timezone("Europe/Paris"));
        list.append_value([Some(1_514_764_800_500_000), None]);
        let list = list.finish();
        let text = CellText::new(&list, Length::Whole).unwrap().value(0);
        assert_eq!(text, "[2018-01-01T01:00:00.500+01:00, null]");
    }

    #[test]
    fn long_bytes_are_shortened_where_asked() {
        let short = |bytes: &[u8]| {
            let mut out = Vec::new();
            write_bytes(bytes, Length::Short, &mut out);
            String::from_utf8(out).unwrap()
        };
        assert_eq!(short(&[0xff; 2_000]), format!("{}.. (2,000 bytes)", "\\xff".repeat(8)));
        assert_eq!(short(&[0xff; 24]), "\\xff".repeat(24));
        assert_eq!(short(&[b'a'; 2_000]), "a".repeat(2_000));
    }
}
