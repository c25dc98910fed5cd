//! Values of results as clients get them, in text or in binary.
//!
//! | module | contents |
//! |---|---|
//! | `values` | a column of a batch, in one of few types of Arrow |
//! | `text`, `binary` | one value in either format |
//! | `numeric` | decimals in base 10,000 |
//! | `times` | dates, times and intervals as text |
//! | `json` | maps, structs and nested lists |

mod binary;
mod json;
mod numeric;
mod text;
mod times;
mod values;

use arrow::array::RecordBatch;
use bytes::{BufMut, BytesMut};

use crate::error::Refusal;
use crate::types::Column;
pub(crate) use binary::{EPOCH_DAYS, EPOCH_MICROS};
pub(crate) use numeric::read as read_numeric;
pub(crate) use times::{MICROS_PER_DAY, NANOS_PER_MICRO};
pub(crate) use values::Values;

/// The format of a value on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Format {
    /// As text of UTF-8.
    #[default]
    Text,
    /// As bytes, in an order that depends on the type.
    Binary,
}

impl Format {
    /// The code of the format in messages.
    pub(crate) fn code(self) -> i16 {
        match self {
            Self::Text => 0,
            Self::Binary => 1,
        }
    }
}

/// The rows of a batch, ready to be written.
#[derive(Debug)]
pub(crate) struct Rows {
    columns: Vec<Values>,
    count: usize,
}

impl Rows {
    /// Prepares a batch whose columns are `columns`.
    ///
    /// # Errors
    /// If a column cannot be converted to the type that it was described with.
    pub(crate) fn new(batch: &RecordBatch, columns: &[Column]) -> Result<Self, Refusal> {
        let pairs = batch.columns().iter().zip(columns);
        let values = pairs.map(|(array, column)| Values::new(array, column.kind)).collect::<Result<Vec<_>, _>>()?;
        Ok(Self { columns: values, count: batch.num_rows() })
    }

    /// The number of rows.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Appends the values of a row, each after its length; `formats` has a format for each column.
    pub(crate) fn write(&self, row: usize, formats: &[Format], out: &mut BytesMut) {
        for (place, values) in self.columns.iter().enumerate() {
            let format = formats.get(place).copied().unwrap_or_default();
            write_value(values, row, format, out);
        }
    }

    /// The columns, for whoever writes them otherwise.
    pub(crate) fn columns(&self) -> &[Values] {
        &self.columns
    }
}

/// Appends a value after its length, which is -1 for null.
pub(crate) fn write_value(values: &Values, row: usize, format: Format, out: &mut BytesMut) {
    if values.is_null(row) {
        out.put_i32(-1);
        return;
    }

    let start = out.len();
    out.put_i32(0);
    match format {
        Format::Text => values.write_text(row, out),
        Format::Binary => values.write_binary(row, out),
    }
    let length = i32::try_from(out.len() - start - size_of::<i32>()).unwrap_or(i32::MAX);
    if let Some(place) = out.get_mut(start..start + size_of::<i32>()) {
        place.copy_from_slice(&length.to_be_bytes());
    }
}
