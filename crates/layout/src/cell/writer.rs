//! The cell bytes of single values.

use arrow::array::{Array, AsArray};

use crate::cell::json;
use crate::scalar::{ColumnView, ScalarRef};
use crate::schema::{Column, Encoding, ValueType};
use crate::time::calendar::Calendar;

/// Writes the cells of one column of a block; downcasts the column once, not for each cell.
pub struct CellWriter<'a> {
    array: &'a dyn Array,
    view: ColumnView<'a>,
    kind: ValueType,
    encoding: Encoding,
    calendar: Calendar,
}

impl<'a> CellWriter<'a> {
    /// A writer of the cells of `array`, a column of a group as `column` describes it.
    pub fn new(column: &Column, array: &'a dyn Array) -> Self {
        Self {
            array,
            view: ColumnView::new(array),
            kind: column.value,
            encoding: column.encoding,
            calendar: Calendar::default(),
        }
    }

    /// Appends the bytes of the cell at `index`; appends nothing if it is null.
    pub fn write(&mut self, index: usize, out: &mut Vec<u8>) {
        match self.kind {
            ValueType::Empty => {}
            ValueType::Bytes => {
                if let Some(bytes) = self.array.as_binary_opt::<i32>().filter(|bytes| bytes.is_valid(index)) {
                    out.extend_from_slice(bytes.value(index));
                }
            }
            ValueType::Field(_) => {
                let Some(scalar) = self.view.get(index) else { return };
                match (self.encoding, scalar) {
                    (Encoding::Int64, ScalarRef::UInt(value)) => out.extend_from_slice(&value.to_be_bytes()),
                    (Encoding::Int64, ScalarRef::Int(value) | ScalarRef::Time(value)) => {
                        out.extend_from_slice(&value.to_be_bytes());
                    }
                    (Encoding::Int64, ScalarRef::Date(days)) => out.extend_from_slice(&i64::from(days).to_be_bytes()),
                    (Encoding::Float64, ScalarRef::Float(value)) => out.extend_from_slice(&value.to_be_bytes()),
                    (Encoding::Json, scalar) => json::write_value(scalar, &mut self.calendar, out),
                    // Compilation rejects all other pairs but text.
                    _ => scalar.write_text(&mut self.calendar, out),
                }
            }
        }
    }
}

/// Appends the bytes of one cell; for many of a column use [`CellWriter`].
pub fn write_cell(column: &Column, array: &dyn Array, index: usize, out: &mut Vec<u8>) {
    CellWriter::new(column, array).write(index, out);
}
