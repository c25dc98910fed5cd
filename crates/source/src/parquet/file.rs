//! An open Parquet file. Any thread may decode any slice of a row group.

use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::compute::concat_batches;
use arrow::datatypes::SchemaRef;
use bytes::Bytes;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder, RowSelection,
    RowSelector,
};
use parquet::errors::ParquetError;
use parquet::file::metadata::PageIndexPolicy;
use parquet::file::reader::ChunkReader;

use crate::column_diff::ColumnDiff;
use crate::columnar::{ColumnarPlan, FileColumn, Int96Values, Leaf, Lists, Parsed, columns, in_micros, read_int96};
use crate::content_hash::ContentHash;
use crate::error::SourceError;
use crate::format::{Foreign, LOOKED_AT};
use crate::plan::PathColumn;
use crate::spec::SourceSpec;
use crate::value::ColumnPlan;

/// Bytes of the marks at both ends and of the length of the footer.
const SHORTEST: u64 = 12;
/// Cells of a dump that are decoded at once, about.
const SLICE_CELLS: u64 = 1 << 18;

/// Where the bytes of a file are, and how many there are.
#[derive(Debug)]
pub(crate) enum Bits {
    /// On disk: each decoder opens it again, because cloned handles share one position.
    Local { path: PathBuf, length: u64 },
    /// In memory, as a whole; with the hash of the stored bytes and their number, if it was compressed.
    Memory { bytes: Bytes, stored: Option<(ContentHash, u64)> },
}

/// A file and what its footer says.
#[derive(Debug)]
pub(crate) struct ParquetFile {
    name: String,
    bits: Bits,
    footer: ArrowReaderMetadata,
}

/// How the columns of one file are read.
#[derive(Debug)]
pub(crate) struct ParquetPlan {
    pub file: ParquetFile,
    plan: ColumnarPlan,
    mask: ProjectionMask,
}

impl ParquetFile {
    pub fn open_local(name: &str, path: PathBuf) -> Result<Self, SourceError> {
        let file = File::open(&path).map_err(|source| io_error(name, source))?;
        let length = file.metadata().map_err(|source| io_error(name, source))?.len();
        Self::open(name, Bits::Local { path, length }, &file)
    }

    /// Opens a file in memory; `stored` has the hash of the stored bytes and their number, if it was compressed.
    pub fn open_memory(name: &str, bytes: Bytes, stored: Option<(ContentHash, u64)>) -> Result<Self, SourceError> {
        Self::open(name, Bits::Memory { bytes: bytes.clone(), stored }, &bytes)
    }

    fn open<R: ChunkReader>(name: &str, bits: Bits, reader: &R) -> Result<Self, SourceError> {
        whole(name, reader)?;
        let options = ArrowReaderOptions::new().with_offset_index_policy(PageIndexPolicy::Optional);
        let footer = ArrowReaderMetadata::load(reader, options)
            .map_err(|source| SourceError::Parquet { path: name.to_owned(), source })?;
        Ok(Self { name: name.to_owned(), bits, footer })
    }

    /// The columns that a source with these lists of events may declare.
    pub fn columns(&self, lists: &Lists) -> Result<Vec<FileColumn>, SourceError> {
        let schema = lists.schema(self.footer.schema());
        let schema = schema.map_err(|source| SourceError::Arrow { path: self.name.clone(), source })?;
        Ok(columns(&schema, Some(self.footer.parquet_schema())))
    }

    pub fn schema(&self) -> &SchemaRef {
        self.footer.schema()
    }

    /// The file with INT96 columns in microseconds.
    fn in_micros(self) -> Result<Self, SourceError> {
        let Some(schema) = in_micros(self.footer.schema(), self.footer.parquet_schema()) else {
            return Ok(self);
        };
        let options = ArrowReaderOptions::new().with_schema(Arc::new(schema));
        let footer = ArrowReaderMetadata::try_new(Arc::clone(self.footer.metadata()), options)
            .map_err(|source| self.parquet(source))?;
        Ok(Self { footer, ..self })
    }

    pub fn bits(&self) -> &Bits {
        &self.bits
    }

    /// Rows and bytes of each row group.
    pub fn groups(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        let groups = self.footer.metadata().row_groups().iter();
        groups.map(|group| {
            let rows = usize::try_from(group.num_rows()).unwrap_or(0);
            (rows, u64::try_from(group.compressed_size()).unwrap_or(0))
        })
    }

    /// The first rows of the first row group that has some; `None` if none has.
    ///
    /// # Errors
    /// [`SourceError::Io`] and [`SourceError::Parquet`].
    pub fn first_rows(&self) -> Result<Option<RecordBatch>, SourceError> {
        const ROWS: usize = 1000;
        let mut groups = self.groups().enumerate();
        let Some((group, (rows, _))) = groups.find(|(_, (rows, _))| *rows > 0) else { return Ok(None) };
        self.decode(&ProjectionMask::all(), group, 0, rows.min(ROWS)).map(Some)
    }

    /// Decodes the columns of `mask` of `rows` rows of a group from row `skip` on.
    fn decode(
        &self,
        mask: &ProjectionMask,
        group: usize,
        skip: usize,
        rows: usize,
    ) -> Result<RecordBatch, SourceError> {
        match &self.bits {
            Bits::Memory { bytes, .. } => self.decode_from(bytes.clone(), mask, group, skip, rows),
            Bits::Local { path, length } => {
                let file = File::open(path).map_err(|source| io_error(&self.name, source))?;
                let found = file.metadata().map_err(|source| io_error(&self.name, source))?.len();
                if found != *length {
                    return Err(SourceError::Changed { path: self.name.clone() });
                }
                self.decode_from(file, mask, group, skip, rows)
            }
        }
    }

    fn decode_from<R: ChunkReader + 'static>(
        &self,
        reader: R,
        mask: &ProjectionMask,
        group: usize,
        skip: usize,
        rows: usize,
    ) -> Result<RecordBatch, SourceError> {
        let selection = RowSelection::from(vec![RowSelector::skip(skip), RowSelector::select(rows)]);
        let reader: ParquetRecordBatchReader =
            ParquetRecordBatchReaderBuilder::new_with_metadata(reader, self.footer.clone())
                .with_row_groups(vec![group])
                .with_projection(mask.clone())
                .with_row_selection(selection)
                .with_batch_size(rows)
                .build()
                .map_err(|source| self.parquet(source))?;

        let schema = arrow::array::RecordBatchReader::schema(&reader);
        let batches = reader
            .collect::<Result<Vec<_>, _>>()
            .map_err(|source| self.parquet(ParquetError::ArrowError(source.to_string())))?;
        let batch = match <[RecordBatch; 1]>::try_from(batches) {
            Ok([batch]) => batch,
            Err(batches) => concat_batches(&schema, &batches)
                .map_err(|source| SourceError::Arrow { path: self.name.clone(), source })?,
        };
        if batch.num_rows() != rows {
            return Err(SourceError::Changed { path: self.name.clone() });
        }
        Ok(batch)
    }

    fn parquet(&self, source: ParquetError) -> SourceError {
        SourceError::Parquet { path: self.name.clone(), source }
    }
}

/// Checks that a file begins and ends as Parquet does.
fn whole<R: ChunkReader>(name: &str, reader: &R) -> Result<(), SourceError> {
    let length = reader.len();
    if length == 0 {
        return Err(SourceError::ParquetUnfinished { path: name.to_owned() });
    }

    let start = bytes_at(name, reader, 0, LOOKED_AT as u64)?;
    // Another mark may stand for a footer under encryption, which the reader explains.
    if !start.starts_with(b"PAR") {
        let format = Foreign::instead_of_parquet(&start);
        return format.map_or(Ok(()), |format| Err(SourceError::Foreign { path: name.to_owned(), format }));
    }
    let end = bytes_at(name, reader, length.saturating_sub(4), 4)?;
    if !end.starts_with(b"PAR") || length < SHORTEST {
        return Err(SourceError::ParquetUnfinished { path: name.to_owned() });
    }
    Ok(())
}

/// The bytes from `start` on, at most `most`.
fn bytes_at<R: ChunkReader>(name: &str, reader: &R, start: u64, most: u64) -> Result<Bytes, SourceError> {
    let count = most.min(reader.len().saturating_sub(start));
    let bytes = reader.get_bytes(start, usize::try_from(count).unwrap_or_default());
    bytes.map_err(|source| SourceError::Parquet { path: name.to_owned(), source })
}

fn io_error(name: &str, source: io::Error) -> SourceError {
    SourceError::Io { path: name.to_owned(), source }
}

impl ParquetPlan {
    /// How the columns of `file` are read, how they differ from the declared ones, and which its path names.
    pub fn new(
        spec: &SourceSpec,
        file: ParquetFile,
        columns: Vec<ColumnPlan>,
    ) -> Result<(Self, ColumnDiff, Vec<PathColumn>), SourceError> {
        let is_old = columns.iter().any(|column| !column.reader.reads_more_values());
        let file = if is_old { file } else { file.in_micros()? };
        let leaves = file.footer.parquet_schema();
        let (plan, diff, path_columns) = ColumnarPlan::new(spec, &file.name, file.schema(), columns, |schema| {
            crate::columnar::columns(schema, Some(leaves))
        })?;
        let wanted = leaves.columns().iter().enumerate().filter(|(_, leaf)| plan.wants(leaf.path().parts()));
        let mask = ProjectionMask::leaves(leaves, wanted.map(|(leaf, _)| leaf));
        Ok((Self { file, plan, mask }, diff, path_columns))
    }

    /// How many rows of a group are decoded at once: `most`, and fewer of a dump whose rows have many cells.
    pub fn slice_rows(&self, group: usize, most: usize) -> usize {
        let Some(group) = self.file.footer.metadata().row_groups().get(group) else { return most };
        let values = group.columns().iter().map(|column| column.num_values()).max().unwrap_or_default();
        match (u64::try_from(values), u64::try_from(group.num_rows())) {
            (Ok(values), Ok(rows)) if values > SLICE_CELLS && rows > 0 && self.plan.is_dump() => {
                usize::try_from(SLICE_CELLS / (values / rows).max(1)).unwrap_or(most).clamp(1, most)
            }
            _ => most,
        }
    }

    /// Decodes `rows` rows of a group from row `skip` on; `first_row` is the number of the first in the file, from 1.
    pub fn parse(&self, group: usize, skip: usize, rows: usize, first_row: u64) -> Result<Parsed, SourceError> {
        let batch = self.file.decode(&self.mask, group, skip, rows)?;
        self.plan.parse(batch, first_row, &|leaf| self.int96(Leaf { group, column: leaf }, skip, rows))
    }

    /// The values of an INT96 column, as they are stored.
    fn int96(&self, leaf: Leaf, skip: usize, rows: usize) -> Result<Int96Values, SourceError> {
        let metadata = self.file.footer.metadata();
        let values = match &self.file.bits {
            Bits::Memory { bytes, .. } => read_int96(bytes.clone(), metadata, leaf, skip, rows),
            Bits::Local { path, .. } => {
                let file = File::open(path).map_err(|source| io_error(&self.file.name, source))?;
                read_int96(file, metadata, leaf, skip, rows)
            }
        };
        values.map_err(|source| self.file.parquet(source))
    }
}
