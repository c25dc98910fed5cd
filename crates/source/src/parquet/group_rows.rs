//! The rows of a row group from its first on, in batches of bounded bytes.
//!
//! Texts and bytes are decoded as views. Views have no offsets that could overflow, and those into one page or dictionary share its
//! memory. So the bytes of each row are known before a value is copied, and batches are cut by them. The footer knows averages only,
//! and of values in a dictionary not even these.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{Array, AsArray, RecordBatch, UInt32Array};
use arrow::compute::{cast, concat_batches, take_record_batch};
use arrow::datatypes::{DataType, Field, FieldRef, Fields, Schema, SchemaRef};
use arrow::error::ArrowError;
use parquet::arrow::arrow_reader::ParquetRecordBatchReader;

/// Bytes of the values of a batch, unless one row has more.
const BATCH_BYTES: usize = 4 << 20;
/// Most rows that are decoded before their bytes are looked at.
const STEP_ROWS: usize = 64;
/// Bytes of a view, and about those of an offset, a validity bit and the like.
const VIEW_BYTES: usize = size_of::<u128>();

/// Reads a row group.
pub(crate) struct GroupRows {
    reader: ParquetRecordBatchReader,
    /// A batch of the reader, and how many of its rows are in earlier batches.
    rest: Option<(RecordBatch, usize)>,
}

impl GroupRows {
    /// The rows of `reader`, whose batches have [`step_rows`].
    pub fn new(reader: ParquetRecordBatchReader) -> Self {
        Self { reader, rest: None }
    }

    /// The next rows, at most `most`, with views; `None` at the end.
    ///
    /// # Errors
    /// Those of decoding.
    pub fn next(&mut self, most: usize) -> Result<Option<RecordBatch>, ArrowError> {
        let (mut pieces, mut rows, mut bytes) = (Vec::new(), 0, 0);
        loop {
            let (batch, start) = match self.rest.take() {
                Some(rest) => rest,
                None => match self.reader.next().transpose()? {
                    Some(batch) => (batch, 0),
                    None => break,
                },
            };

            let mut end = start;
            while end < batch.num_rows() && rows < most {
                let of_row = batch.columns().iter().map(|column| bytes_of(column, end..end + 1)).sum::<usize>();
                if rows > 0 && bytes + of_row > BATCH_BYTES {
                    break;
                }
                (end, rows, bytes) = (end + 1, rows + 1, bytes + of_row);
            }

            let is_cut = end < batch.num_rows();
            if start == 0 && !is_cut {
                pieces.push(batch);
                continue;
            }
            // A slice of lists would keep the values of all of them, which casts copy.
            if end > start {
                pieces.push(take_record_batch(&batch, &UInt32Array::from_iter_values(start as u32..end as u32))?);
            }
            if is_cut {
                self.rest = Some((batch, end));
                break;
            }
        }

        match <[RecordBatch; 1]>::try_from(pieces) {
            Ok([batch]) => Ok(Some(batch)),
            Err(pieces) => match pieces.first() {
                Some(first) => concat_batches(&first.schema(), &pieces).map(Some),
                None => Ok(None),
            },
        }
    }
}

/// How many rows are decoded at once of a group with so many rows and bytes.
pub(super) fn step_rows(rows: u64, bytes: u64) -> usize {
    let fitting = (BATCH_BYTES as u64).saturating_mul(rows) / bytes.max(1);
    usize::try_from(fitting).unwrap_or(STEP_ROWS).clamp(1, STEP_ROWS)
}

/// `schema` with views in place of texts and bytes, also of those in structs and lists.
pub(super) fn viewed(schema: &Schema) -> Schema {
    let fields: Vec<FieldRef> = schema.fields().iter().map(viewed_field).collect();
    Schema::new_with_metadata(fields, schema.metadata().clone())
}

fn viewed_field(field: &FieldRef) -> FieldRef {
    use DataType as D;
    let kind = match field.data_type() {
        D::Utf8 | D::LargeUtf8 => D::Utf8View,
        D::Binary | D::LargeBinary => D::BinaryView,
        D::Struct(fields) => D::Struct(fields.iter().map(viewed_field).collect()),
        D::List(item) => D::List(viewed_field(item)),
        D::LargeList(item) => D::LargeList(viewed_field(item)),
        _ => return Arc::clone(field),
    };
    Arc::new(field.as_ref().clone().with_data_type(kind))
}

/// `batch` with the types that `schema` has for its columns instead of views. It may lack columns of `schema`.
///
/// # Errors
/// If a value has no such type.
pub(super) fn without_views(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch, ArrowError> {
    let found = batch.schema();
    let fields: Fields = found.fields().iter().map(|field| plain_field(field, schema.fields())).collect();
    let columns = batch.columns().iter().zip(&fields);
    let columns = columns.map(|(column, field)| match column.data_type() == field.data_type() {
        true => Ok(Arc::clone(column)),
        false => cast(column, field.data_type()),
    });
    let columns = columns.collect::<Result<Vec<_>, _>>()?;
    RecordBatch::try_new(Arc::new(Schema::new_with_metadata(fields, found.metadata().clone())), columns)
}

fn plain_field(field: &FieldRef, among: &Fields) -> FieldRef {
    match among.iter().find(|other| other.name() == field.name()) {
        Some(other) => Arc::new(Field::clone(field).with_data_type(plain(field.data_type(), other.data_type()))),
        None => Arc::clone(field),
    }
}

/// The type `found` with what `wanted` has in the places of its views.
fn plain(found: &DataType, wanted: &DataType) -> DataType {
    use DataType as D;
    let item = |found: &FieldRef, wanted: &FieldRef| {
        Arc::new(Field::clone(found).with_data_type(plain(found.data_type(), wanted.data_type())))
    };
    match (found, wanted) {
        (D::Utf8View | D::BinaryView, _) => wanted.clone(),
        (D::Struct(found), D::Struct(wanted)) => {
            D::Struct(found.iter().map(|field| plain_field(field, wanted)).collect())
        }
        (D::List(found), D::List(wanted)) => D::List(item(found, wanted)),
        (D::LargeList(found), D::LargeList(wanted)) => D::LargeList(item(found, wanted)),
        _ => found.clone(),
    }
}

/// About the bytes of the values in `rows` of `array`.
fn bytes_of(array: &dyn Array, rows: Range<usize>) -> usize {
    use DataType as D;
    match array.data_type() {
        D::Utf8View => bytes_of_views(array.as_string_view().views(), rows),
        D::BinaryView => bytes_of_views(array.as_binary_view().views(), rows),
        D::Struct(_) => array.as_struct().columns().iter().map(|column| bytes_of(column, rows.clone())).sum(),
        D::List(_) => {
            let lists = array.as_list::<i32>();
            let items = rows.len() * VIEW_BYTES;
            items + bytes_of(lists.values(), items_of(lists.value_offsets(), rows, |offset| offset as usize))
        }
        D::LargeList(_) => {
            let lists = array.as_list::<i64>();
            let items = rows.len() * VIEW_BYTES;
            items + bytes_of(lists.values(), items_of(lists.value_offsets(), rows, |offset| offset as usize))
        }
        other => rows.len() * other.primitive_width().unwrap_or(VIEW_BYTES),
    }
}

fn bytes_of_views(views: &[u128], rows: Range<usize>) -> usize {
    // The length of a value is in the lowest 32 bits of its view.
    views.get(rows).unwrap_or_default().iter().map(|view| *view as u32 as usize + VIEW_BYTES).sum()
}

/// The items of the lists in `rows`.
fn items_of<O: Copy>(offsets: &[O], rows: Range<usize>, place: impl Fn(O) -> usize) -> Range<usize> {
    let at = |row: usize| offsets.get(row).copied().map_or(0, &place);
    at(rows.start)..at(rows.end)
}
