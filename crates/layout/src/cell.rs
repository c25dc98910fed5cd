//! The Bigtable bytes of stored values.

use arrow::array::{Array, AsArray};

use crate::civil::Calendar;
use crate::datum::{Datum, View};
use crate::json;
use crate::schema::Column;
use crate::value::{Encoding, ValueType};

/// Writes the cells of one column of a block: its type is found out once.
pub struct CellWriter<'a> {
    array: &'a dyn Array,
    view: View<'a>,
    kind: ValueType,
    encoding: Encoding,
    calendar: Calendar,
}

impl<'a> CellWriter<'a> {
    /// A writer of the cells of `array`, a column of a group as `column` describes it.
    pub fn new(column: &Column, array: &'a dyn Array) -> Self {
        Self {
            array,
            view: View::new(array),
            kind: column.value,
            encoding: column.encoding,
            calendar: Calendar::default(),
        }
    }

    /// Appends the bytes of the cell at `index`; nothing if it is absent.
    pub fn write(&mut self, index: usize, out: &mut Vec<u8>) {
        match self.kind {
            ValueType::Empty => {}
            ValueType::Bytes => {
                if let Some(bytes) = self.array.as_binary_opt::<i32>().filter(|bytes| bytes.is_valid(index)) {
                    out.extend_from_slice(bytes.value(index));
                }
            }
            ValueType::Field(_) => {
                let Some(datum) = self.view.get(index) else { return };
                match (self.encoding, datum) {
                    (Encoding::Int64, Datum::UInt(value)) => out.extend_from_slice(&value.to_be_bytes()),
                    (Encoding::Int64, Datum::Int(value) | Datum::Time(value)) => {
                        out.extend_from_slice(&value.to_be_bytes());
                    }
                    (Encoding::Int64, Datum::Date(days)) => out.extend_from_slice(&i64::from(days).to_be_bytes()),
                    (Encoding::Float64, Datum::Float(value)) => out.extend_from_slice(&value.to_be_bytes()),
                    (Encoding::Json, datum) => json::write_value(datum, &mut self.calendar, out),
                    // Compilation lets no other pair through but text.
                    _ => datum.write_text(&mut self.calendar, out),
                }
            }
        }
    }
}

/// Appends the bytes of one cell; for many of a column use [`CellWriter`].
pub fn write_cell(column: &Column, array: &dyn Array, index: usize, out: &mut Vec<u8>) {
    CellWriter::new(column, array).write(index, out);
}
