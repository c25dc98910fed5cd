//! What the footer of a published Parquet file tells of its rows, for the logs that engines skip files by.

use arrow::array::{Array, ArrayRef, UInt64Array};
use arrow::compute::{SortOptions, sort_limit};
use bytes::Bytes;
use parquet::arrow::arrow_reader::statistics::StatisticsConverter;
use parquet::arrow::parquet_to_arrow_schema;
use parquet::errors::ParquetError;
use parquet::file::metadata::{ParquetMetaData, ParquetMetaDataReader};
use tidetable_blobs::Blobs;

/// Bytes at the end of a file that are read first: the footer of most files.
const TAIL: u64 = 64 << 10;

/// Statistics of a file.
#[derive(Debug)]
pub(crate) struct FileStats {
    pub(crate) rows: u64,
    /// The columns whose nulls are counted.
    pub(crate) columns: Vec<ColumnStats>,
}

/// Statistics of a column of a file.
#[derive(Debug)]
pub(crate) struct ColumnStats {
    pub(crate) name: String,
    /// The id of the column in the file, if it has one.
    pub(crate) id: Option<i32>,
    pub(crate) nulls: u64,
    /// Bytes of its values, compressed.
    pub(crate) bytes: u64,
    /// An array of a value that no value is less than, of the type of the column; `None` if the footer does not tell one. Not
    /// always a present value: Parquet cuts long texts.
    pub(crate) least: Option<ArrayRef>,
    /// As `least`, of the greatest.
    pub(crate) greatest: Option<ArrayRef>,
}

/// The statistics of the Parquet file at `path`; the error is why its footer cannot be read.
pub(crate) fn stats(blobs: &dyn Blobs, path: &str) -> Result<FileStats, String> {
    file_stats(&footer(blobs, path)?)
}

/// The footer of a Parquet file; the error is why it cannot be read.
fn footer(blobs: &dyn Blobs, path: &str) -> Result<ParquetMetaData, String> {
    let file = blobs.open(path).map_err(|error| error.to_string())?;
    let mut wanted = TAIL;
    loop {
        let length = wanted.min(file.len());
        let at = file.len() - length;
        let tail = file.read_at(at, length as usize).map_err(|error| error.to_string())?;

        let mut reader = ParquetMetaDataReader::new();
        match reader.try_parse_sized(&Bytes::from(tail.to_vec()), file.len()) {
            Ok(()) => return reader.finish().map_err(|error| error.to_string()),
            Err(ParquetError::NeedMoreData(needed)) if needed as u64 > length && length < file.len() => {
                wanted = needed as u64;
            }
            Err(error) => return Err(error.to_string()),
        }
    }
}

/// The statistics that a footer holds.
fn file_stats(footer: &ParquetMetaData) -> Result<FileStats, String> {
    let file = footer.file_metadata();
    let described = file.schema_descr();
    let schema = parquet_to_arrow_schema(described, file.key_value_metadata()).map_err(|error| error.to_string())?;
    let groups = footer.row_groups();
    let rows: Vec<u64> = groups.iter().map(|group| group.num_rows().unsigned_abs()).collect();

    let mut columns = Vec::with_capacity(schema.fields().len());
    for (at, field) in schema.fields().iter().enumerate() {
        let Ok(column) = StatisticsConverter::try_new(field.name(), &schema, described) else { continue };
        let column = column.with_missing_null_counts_as_zero(false);
        let Ok(counted) = column.row_group_null_counts(groups) else { continue };
        if counted.null_count() > 0 {
            continue;
        }

        let (mins, maxes) = (column.row_group_mins(groups).ok(), column.row_group_maxes(groups).ok());
        let info = described.root_schema().get_fields().get(at).map(|field| field.get_basic_info());
        let leaves = (0..described.num_columns()).filter(|leaf| described.get_column_root_idx(*leaf) == at);
        let chunks = leaves.flat_map(|leaf| groups.iter().filter_map(move |group| group.columns().get(leaf)));
        columns.push(ColumnStats {
            name: field.name().clone(),
            id: info.filter(|info| info.has_id()).map(|info| info.id()),
            nulls: counted.values().iter().sum(),
            bytes: chunks.map(|chunk| chunk.compressed_size().unsigned_abs()).sum(),
            least: mins.and_then(|mins| bound(&mins, &counted, &rows, false)),
            greatest: maxes.and_then(|maxes| bound(&maxes, &counted, &rows, true)),
        });
    }
    Ok(FileStats { rows: file.num_rows().unsigned_abs(), columns })
}

/// The least or greatest of the bounds of row groups; `None` if a group with values has none.
fn bound(bounds: &ArrayRef, nulls: &UInt64Array, rows: &[u64], greatest: bool) -> Option<ArrayRef> {
    let is_unknown = |group: usize| bounds.is_null(group) && rows.get(group) != nulls.values().get(group);
    if (0..bounds.len()).any(is_unknown) {
        return None;
    }
    let order = SortOptions { descending: greatest, nulls_first: false };
    sort_limit(bounds, Some(order), Some(1)).ok().filter(|first| first.len() == 1 && first.is_valid(0))
}
