//! An open Parquet file. Any thread may decode any slice of a row group.

use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::compute::concat_batches;
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use bytes::Bytes;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder, RowSelection,
    RowSelector,
};
use parquet::basic::Type;
use parquet::errors::ParquetError;
use parquet::file::metadata::PageIndexPolicy;
use parquet::file::reader::ChunkReader;
use parquet::schema::types::ColumnDescPtr;

use crate::column_diff::ColumnDiff;
use crate::columnar::{ColumnarPlan, FileColumn, Int96Values, Leaf, Lists, Parsed, columns, in_micros, read_int96};
use crate::content_hash::ContentHash;
use crate::dump::TIME_TYPES;
use crate::error::SourceError;
use crate::format::{Foreign, Format, LOOKED_AT};
use crate::parquet::group_rows::{GroupRows, step_rows, viewed, without_views};
use crate::plan::PathColumn;
use crate::spec::SourceSpec;
use crate::value::ColumnPlan;

/// Bytes of the marks at both ends and of the length of the footer.
const SHORTEST: u64 = 12;
/// Bytes of texts in a slice of a row group, above which the group is read row by row.
const LARGE_SLICE: u64 = 64 << 20;
/// Bytes of a column of texts in a row group, above which a slice of it could reach the 2 GiB that Arrow's offsets have.
const LARGE_COLUMN: u64 = 1 << 30;

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
    /// The footer with views in place of texts and bytes, for rows that are read in order.
    views: ArrowReaderMetadata,
}

/// `rows` rows of a row group from row `skip` on.
#[derive(Debug, Clone)]
pub(crate) struct GroupSlice {
    pub group: usize,
    pub skip: usize,
    pub rows: usize,
    /// The rows, if they were read in order.
    pub decoded: Option<RecordBatch>,
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

    /// Refuses INT96 in the cells of a dump: Arrow has no type for all of its times.
    fn check_dump_times(&self) -> Result<(), SourceError> {
        let mut leaves = self.footer.parquet_schema().columns().iter();
        let is_time = |leaf: &&ColumnDescPtr| {
            leaf.physical_type() == Type::INT96 && leaf.path().parts().first().is_some_and(|root| root == "cells")
        };
        let Some(leaf) = leaves.find(is_time) else { return Ok(()) };
        let column = leaf.path().string();
        Err(SourceError::DumpColumn { path: self.name.clone(), column, found: "INT96".to_owned(), wanted: TIME_TYPES })
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
        let Some((group, _)) = groups.find(|(_, (rows, _))| *rows > 0) else { return Ok(None) };
        let mut rows = self.rows(&self.with_views(), &ProjectionMask::all(), group)?;
        let batch = rows.next(ROWS).map_err(|source| self.undecoded(&source))?;
        batch.map(|batch| self.without_views(&batch)).transpose()
    }

    /// What its footer says, with views in place of texts and bytes.
    fn with_views(&self) -> ArrowReaderMetadata {
        let options = ArrowReaderOptions::new().with_schema(Arc::new(viewed(self.footer.schema())));
        let found = ArrowReaderMetadata::try_new(Arc::clone(self.footer.metadata()), options);
        found.unwrap_or_else(|_| self.footer.clone())
    }

    /// A batch with the types of the file instead of views.
    fn without_views(&self, batch: &RecordBatch) -> Result<RecordBatch, SourceError> {
        let found = without_views(batch, self.footer.schema());
        found.map_err(|source| SourceError::Arrow { path: self.name.clone(), source })
    }

    /// The columns of `mask` of a group from its first row on, with the types of `footer`.
    fn rows(
        &self,
        footer: &ArrowReaderMetadata,
        mask: &ProjectionMask,
        group: usize,
    ) -> Result<GroupRows, SourceError> {
        let columns = self.footer.metadata().row_groups().get(group);
        let rows = columns.map_or(0, |group| u64::try_from(group.num_rows()).unwrap_or_default());
        let step = step_rows(rows, self.bytes_of_texts(mask, group).sum());
        let reader = match &self.bits {
            Bits::Memory { bytes, .. } => rows_from(bytes.clone(), footer, mask, group, step),
            Bits::Local { .. } => rows_from(self.reopened()?, footer, mask, group, step),
        };
        reader.map(GroupRows::new).map_err(|source| self.parquet(source))
    }

    /// About the bytes of the values of each column of texts or bytes of `mask`, in a group.
    fn bytes_of_texts(&self, mask: &ProjectionMask, group: usize) -> impl Iterator<Item = u64> {
        let columns = self.footer.metadata().row_groups().get(group).map(|group| group.columns()).unwrap_or_default();
        let texts = columns
            .iter()
            .enumerate()
            .filter(|(leaf, column)| mask.leaf_included(*leaf) && column.column_type() == Type::BYTE_ARRAY);
        texts.map(|(_, column)| {
            // A dictionary has a value once, however often it occurs.
            let values = column.unencoded_byte_array_data_bytes().unwrap_or_default();
            u64::try_from(values.max(column.uncompressed_size())).unwrap_or_default()
        })
    }

    /// The file on disk, opened again.
    fn reopened(&self) -> Result<File, SourceError> {
        let Bits::Local { path, length } = &self.bits else {
            return Err(SourceError::Changed { path: self.name.clone() });
        };
        let file = File::open(path).map_err(|source| io_error(&self.name, source))?;
        let found = file.metadata().map_err(|source| io_error(&self.name, source))?.len();
        match found == *length {
            true => Ok(file),
            false => Err(SourceError::Changed { path: self.name.clone() }),
        }
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
            Bits::Local { .. } => self.decode_from(self.reopened()?, mask, group, skip, rows),
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
        let batches = reader.collect::<Result<Vec<_>, _>>().map_err(|source| self.undecoded(&source))?;
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

    fn undecoded(&self, source: &ArrowError) -> SourceError {
        self.parquet(ParquetError::ArrowError(source.to_string()))
    }

    fn parquet(&self, source: ParquetError) -> SourceError {
        SourceError::Parquet { path: self.name.clone(), source }
    }
}

/// Reads the columns of `mask` of a row group, `step` rows at once.
fn rows_from<R: ChunkReader + 'static>(
    reader: R,
    footer: &ArrowReaderMetadata,
    mask: &ProjectionMask,
    group: usize,
    step: usize,
) -> Result<ParquetRecordBatchReader, ParquetError> {
    ParquetRecordBatchReaderBuilder::new_with_metadata(reader, footer.clone())
        .with_row_groups(vec![group])
        .with_projection(mask.clone())
        .with_batch_size(step)
        .build()
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
        if spec.format.is_some_and(Format::is_dump) {
            file.check_dump_times()?;
        }
        let is_old = columns.iter().any(|column| !column.reader.reads_more_values());
        let file = if is_old { file } else { file.in_micros()? };
        let leaves = file.footer.parquet_schema();
        let (plan, diff, path_columns) = ColumnarPlan::new(spec, &file.name, file.schema(), columns, |schema| {
            crate::columnar::columns(schema, Some(leaves))
        })?;
        let wanted = leaves.columns().iter().enumerate().filter(|(_, leaf)| plan.wants(leaf.path().parts()));
        let mask = ProjectionMask::leaves(leaves, wanted.map(|(leaf, _)| leaf));
        let views = file.with_views();
        Ok((Self { file, plan, mask, views }, diff, path_columns))
    }

    /// Whether the rows of a group are read one after the other, by their bytes, instead of in slices of `most` rows that any thread
    /// decodes: those of a dump, whose rows differ by orders of magnitude, and large texts.
    pub fn reads_in_order(&self, group: usize, most: usize) -> bool {
        if self.plan.is_dump() {
            return true;
        }
        let Some((rows, _)) = self.file.groups().nth(group) else { return false };
        let (mut all, mut largest) = (0_u64, 0);
        for bytes in self.file.bytes_of_texts(&self.mask, group) {
            all += bytes;
            largest = bytes.max(largest);
        }
        let of_slice = all as f64 * rows.min(most) as f64 / rows.max(1) as f64;
        largest > LARGE_COLUMN || of_slice > LARGE_SLICE as f64
    }

    /// The rows of a group one after the other.
    pub fn rows(&self, group: usize) -> Result<GroupRows, SourceError> {
        self.file.rows(&self.views, &self.mask, group)
    }

    /// The next rows of a group, at most `most`; `None` at its end.
    pub fn next_rows(&self, rows: &mut GroupRows, most: usize) -> Result<Option<RecordBatch>, SourceError> {
        rows.next(most).map_err(|source| self.file.undecoded(&source))
    }

    /// Parses rows of a group, which are decoded unless they were read in order; `first_row` is the number of the first in the file,
    /// from 1.
    pub fn parse(&self, slice: GroupSlice, first_row: u64) -> Result<Parsed, SourceError> {
        let GroupSlice { group, skip, rows, decoded } = slice;
        let batch = match decoded {
            Some(batch) => self.file.without_views(&batch)?,
            None => self.file.decode(&self.mask, group, skip, rows)?,
        };
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
