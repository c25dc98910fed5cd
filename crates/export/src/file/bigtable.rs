//! Parquet for Dataflow's "Parquet to Bigtable" template: one record per row, with a list of its cells.
//!
//! ```text
//! message root {
//!   required binary key;
//!   required group cells (LIST) {
//!     repeated group array {
//!       required binary family (STRING);
//!       required binary qualifier;
//!       required int64 timestamp;
//!       required binary value;
//!     }
//!   }
//! }
//! ```
//! The list has two levels, as Avro writes it. The Arrow writer cannot, so the columns are written directly.

use std::io::Write;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::error::ArrowError;
use parquet::basic::Compression;
use parquet::data_type::{ByteArray, ByteArrayType, DataType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;

use crate::file::cells::Cells;
use crate::file::spec::{FileSpec, parquet_properties};

const MESSAGE: &str = "message root { required binary key; required group cells (LIST) { repeated group array { \
    required binary family (STRING); required binary qualifier; required int64 timestamp; required binary value; } } }";

/// Maximum number of cells of a row that the template accepts, unless it splits rows.
const MAX_CELLS: usize = 100_000;

/// Cells per row group, at least.
const GROUP: usize = 1 << 18;

/// Writes cells sorted by row key.
pub(crate) struct BigtableParquet<W: Write + Send> {
    writer: SerializedFileWriter<W>,
    rows: RowBuffer,
}

/// Buffered rows, all but the last of them complete.
#[derive(Default)]
struct RowBuffer {
    keys: Vec<ByteArray>,
    families: Vec<ByteArray>,
    qualifiers: Vec<ByteArray>,
    timestamps: Vec<i64>,
    values: Vec<ByteArray>,
    /// 0 for the first cell of a row, 1 for the others.
    repetition: Vec<i16>,
    /// Number of cells of the last row.
    last: usize,
}

impl<W: Write + Send> BigtableParquet<W> {
    pub(crate) fn new(out: W, spec: &FileSpec<'_>) -> Result<Self, ArrowError> {
        let schema = Arc::new(parse_message_type(MESSAGE)?);
        let properties = Arc::new(parquet_properties(spec.metadata).set_compression(Compression::SNAPPY).build());
        Ok(Self { writer: SerializedFileWriter::new(out, schema, properties)?, rows: RowBuffer::default() })
    }

    /// Adds a batch of cells; writes a row group once enough are there.
    pub(crate) fn write(&mut self, batch: &RecordBatch) -> Result<(), ArrowError> {
        let cells = Cells::of(batch)?;
        for at in 0..cells.len() {
            let key = cells.keys.value(at);
            if self.rows.keys.last().map(ByteArray::data) != Some(key) {
                if self.rows.repetition.len() >= GROUP {
                    self.write_group()?;
                }
                self.rows.keys.push(key.to_vec().into());
                self.rows.last = 0;
            }

            self.rows.repetition.push(i16::from(self.rows.last > 0));
            self.rows.last += 1;
            if self.rows.last > MAX_CELLS {
                let key = String::from_utf8_lossy(key).into_owned();
                return Err(ArrowError::InvalidArgumentError(format!(
                    "row {key} has more than {MAX_CELLS} cells, which the template does not take: limit the query"
                )));
            }

            self.rows.families.push(cells.families.value(at).as_bytes().to_vec().into());
            self.rows.qualifiers.push(cells.qualifiers.value(at).to_vec().into());
            self.rows.timestamps.push(cells.timestamps.value(at));
            self.rows.values.push(cells.values.value(at).to_vec().into());
        }

        Ok(())
    }

    pub(crate) fn finish(mut self) -> Result<W, ArrowError> {
        if !self.rows.keys.is_empty() {
            self.write_group()?;
        }
        Ok(self.writer.into_inner()?)
    }

    fn write_group(&mut self) -> Result<(), ParquetError> {
        let rows = std::mem::take(&mut self.rows);
        let present = vec![1; rows.repetition.len()];
        let levels = Some((present.as_slice(), rows.repetition.as_slice()));
        let mut group = self.writer.next_row_group()?;
        column::<ByteArrayType, W>(&mut group, &rows.keys, None)?;
        column::<ByteArrayType, W>(&mut group, &rows.families, levels)?;
        column::<ByteArrayType, W>(&mut group, &rows.qualifiers, levels)?;
        column::<Int64Type, W>(&mut group, &rows.timestamps, levels)?;
        column::<ByteArrayType, W>(&mut group, &rows.values, levels)?;
        group.close()?;
        Ok(())
    }
}

/// Writes the next column of a row group, with its definition and repetition `levels`.
fn column<T: DataType, W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    values: &[T::T],
    levels: Option<(&[i16], &[i16])>,
) -> Result<(), ParquetError> {
    let Some(mut column) = group.next_column()? else { return Ok(()) };
    let (definition, repetition) = levels.unzip();
    column.typed::<T>().write_batch(values, definition, repetition)?;
    column.close()
}
