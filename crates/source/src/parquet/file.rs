//! An open Parquet file. Any thread may decode any slice of a row group.

use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray, RecordBatch, new_null_array};
use arrow::compute::concat_batches;
use bytes::Bytes;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder, RowSelection,
    RowSelector,
};
use parquet::data_type::Int96;
use parquet::errors::ParquetError;
use parquet::file::metadata::PageIndexPolicy;
use parquet::file::reader::ChunkReader;

use crate::column_diff::ColumnDiff;
use crate::content_hash::ContentHash;
use crate::error::SourceError;
use crate::format::{Foreign, LOOKED_AT};
use crate::origin::row_text;
use crate::parquet::coerce::{Coercion, Fault};
use crate::parquet::columns::{self, FileColumn};
use crate::parquet::int96::{self, Leaf};
use crate::plan::{Matched, PathColumn, match_columns};
use crate::reject::{RejectReason, Rejected, raw};
use crate::spec::{SchemaMode, SourceSpec};
use crate::time::{Remarks, TimeCounts};
use crate::value::ColumnPlan;

/// Bytes of the marks at both ends and of the length of the footer.
const SHORTEST: u64 = 12;

/// Where the bytes are.
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
    columns: Vec<ColumnPlan>,
    mask: ProjectionMask,
    /// One for each declared column; `None` for those that the file lacks, which are null.
    sources: Vec<Option<ColumnSource>>,
    /// Why every row is rejected, if so.
    refused: Option<ColumnDiff>,
}

/// Where the values of a declared column are, and their way to its type.
#[derive(Debug)]
struct ColumnSource {
    column: FileColumn,
    coercion: Coercion,
}

/// What became of a slice.
pub(crate) struct Parsed {
    pub columns: Vec<ArrayRef>,
    pub source: RecordBatch,
    /// Rows of `source` that were accepted; all when absent.
    pub kept: Option<Vec<u32>>,
    pub rejected: Vec<Rejected>,
    pub read: u64,
    pub times: TimeCounts,
}

impl ParquetFile {
    pub fn open_local(name: &str, path: PathBuf) -> Result<Self, SourceError> {
        let io = |source| SourceError::Io { path: name.to_owned(), source };
        let file = File::open(&path).map_err(io)?;
        let length = file.metadata().map_err(io)?.len();
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

    /// The columns that a source may declare.
    pub fn columns(&self) -> Vec<FileColumn> {
        columns::columns(self.footer.schema(), self.footer.parquet_schema())
    }

    /// The file with INT96 columns in microseconds.
    fn in_micros(self) -> Result<Self, SourceError> {
        let Some(schema) = columns::in_micros(self.footer.schema(), self.footer.parquet_schema()) else {
            return Ok(self);
        };
        let options = ArrowReaderOptions::new().with_schema(Arc::new(schema));
        let footer = ArrowReaderMetadata::try_new(Arc::clone(self.footer.metadata()), options)
            .map_err(|source| self.parquet(source))?;
        Ok(Self { footer, ..self })
    }

    /// The columns that the declaration is matched to: a struct of which no field is declared counts as one column.
    fn declarable(&self, spec: &SourceSpec) -> Vec<FileColumn> {
        let declared = |column: &FileColumn| spec.columns.iter().any(|wanted| wanted.name == column.name);
        let mut found: Vec<FileColumn> = Vec::new();
        for column in self.columns() {
            if column.path.len() == 1 || declared(&column) {
                found.push(column);
                continue;
            }
            let root = column.path.first().cloned().unwrap_or_default();
            let is_known = found.iter().any(|known| known.path.first() == Some(&root));
            if let (false, Ok(field)) = (is_known, self.footer.schema().field_with_name(&root)) {
                let data_type = field.data_type().clone();
                found.push(FileColumn { name: root.clone(), path: vec![root], data_type, leaf: None, ..column });
            }
        }
        found
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

    fn parquet(&self, source: ParquetError) -> SourceError {
        SourceError::Parquet { path: self.name.clone(), source }
    }
}

/// Checks that a file begins and ends as Parquet does.
fn whole<R: ChunkReader>(name: &str, reader: &R) -> Result<(), SourceError> {
    let path = || name.to_owned();
    let failed = |source| SourceError::Parquet { path: path(), source };
    let length = reader.len();
    let taken = |start: u64, most: u64| {
        let bytes = most.min(length.saturating_sub(start));
        reader.get_bytes(start, usize::try_from(bytes).unwrap_or_default()).map_err(failed)
    };
    if length == 0 {
        return Err(SourceError::ParquetUnfinished { path: path() });
    }
    let start = taken(0, LOOKED_AT as u64)?;
    // Another mark may stand for a footer under encryption, which the reader explains.
    if !start.starts_with(b"PAR") {
        let format = Foreign::instead_of_parquet(&start);
        return format.map_or(Ok(()), |format| Err(SourceError::Foreign { path: path(), format }));
    }
    let end = taken(length.saturating_sub(4), 4)?;
    if !end.starts_with(b"PAR") || length < SHORTEST {
        return Err(SourceError::ParquetUnfinished { path: path() });
    }
    Ok(())
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
        let found = file.declarable(spec);
        let header: Vec<String> = found.iter().map(|column| column.name.clone()).collect();
        let Matched { steps, mut diff, path_columns } = match_columns(&file.name, &header, spec, &columns)?;
        let mut sources = Vec::with_capacity(columns.len());
        for (index, column) in columns.iter().enumerate() {
            let place = steps.iter().position(|step| *step == Some(index));
            let Some(found) = place.and_then(|place| found.get(place)) else {
                sources.push(None);
                continue;
            };
            let coercion = Coercion::choose(found, column);
            match (coercion, spec.mode) {
                (None, SchemaMode::Reject) => diff.unlike.push((column.name.clone(), found.data_type.to_string())),
                (None, _) => {
                    return Err(SourceError::ColumnType {
                        path: file.name.clone(),
                        column: column.name.clone(),
                        found: found.data_type.clone(),
                        wanted: column.kind,
                    });
                }
                (Some(_), _) => {}
            }
            sources.push(coercion.map(|coercion| ColumnSource { column: found.clone(), coercion }));
        }
        let refused = (spec.mode == SchemaMode::Reject && !diff.is_empty()).then(|| diff.clone());
        // The raw batch is kept for rejected rows.
        let wanted = |path: &[String]| {
            refused.is_some() || sources.iter().flatten().any(|source| path.starts_with(&source.column.path))
        };
        let schema = file.footer.parquet_schema();
        let leaves = schema.columns().iter().enumerate().filter(|(_, leaf)| wanted(leaf.path().parts()));
        let mask = ProjectionMask::leaves(schema, leaves.map(|(leaf, _)| leaf));
        Ok((Self { file, columns, mask, sources, refused }, diff, path_columns))
    }

    /// Decodes `rows` rows of a group from row `skip` on; `first_row` is the number of the first in the file, from 1.
    pub fn parse(&self, group: usize, skip: usize, rows: usize, first_row: u64) -> Result<Parsed, SourceError> {
        let source = self.decode(group, skip, rows)?;
        if let Some(diff) = &self.refused {
            return Ok(self.refuse(source, diff, first_row));
        }
        let arrow = |source| SourceError::Arrow { path: self.file.name.clone(), source };
        let mut arrays = Vec::with_capacity(self.columns.len());
        let mut faults: Vec<(u32, usize, RejectReason)> = Vec::new();
        let mut remarks: Vec<Remarks> = Vec::new();
        let mut nans: Vec<Vec<u32>> = Vec::new();
        for (index, (column, place)) in self.columns.iter().zip(&self.sources).enumerate() {
            let Some(ColumnSource { column: found, coercion }) = place else {
                arrays.push(new_null_array(&column.kind.arrow(), source.num_rows()));
                continue;
            };
            let Some(array) = columns::values(&source, &found.path).map_err(arrow)? else {
                return Err(SourceError::Changed { path: self.file.name.clone() });
            };
            let coerced = match found.leaf.filter(|_| found.is_int96 && column.reader.reads_more_values()) {
                Some(leaf) => {
                    let values = self.int96(Leaf { group, column: leaf }, skip, rows)?;
                    coercion.apply_int96(&array, &values, column).map_err(arrow)?
                }
                None => coercion.apply(&array, column).map_err(arrow)?,
            };
            arrays.push(coerced.array);
            remarks.push(coerced.remarks);
            nans.push(coerced.nans);
            faults.extend(coerced.faults.into_iter().map(|Fault { row, reason }| (row, index, reason)));
        }
        let read = source.num_rows() as u64;
        let times = |kept: &dyn Fn(usize) -> bool| {
            let mut times = TimeCounts::default();
            remarks.iter().for_each(|remarks| times += remarks.counts(kept));
            times.nan = nans.iter().flatten().filter(|row| kept(**row as usize)).count() as u64;
            times
        };
        if faults.is_empty() {
            let times = times(&|_| true);
            return Ok(Parsed { columns: arrays, source, kept: None, rejected: Vec::new(), read, times });
        }
        faults.sort_by_key(|(row, index, _)| (*row, *index));
        faults.dedup_by_key(|(row, ..)| *row);
        let mut keep = vec![true; source.num_rows()];
        let mut rejected = Vec::with_capacity(faults.len());
        for (row, index, reason) in faults {
            if let Some(slot) = keep.get_mut(row as usize) {
                *slot = false;
            }
            rejected.push(Rejected {
                line: first_row + u64::from(row),
                lines: 1,
                column: self.columns.get(index).map(|column| column.name.clone()),
                reason,
                raw: raw(row_text(&source, row as usize).as_bytes()),
            });
        }
        let times = times(&|row| keep.get(row) == Some(&true));
        let kept = (0u32..).zip(&keep).filter(|(_, keep)| **keep).map(|(row, _)| row).collect();
        let keep = BooleanArray::from(keep);
        let columns =
            arrays.iter().map(|array| arrow::compute::filter(array, &keep)).collect::<Result<_, _>>().map_err(arrow)?;
        Ok(Parsed { columns, source, kept: Some(kept), rejected, read, times })
    }

    /// Rejects every row.
    fn refuse(&self, source: RecordBatch, diff: &ColumnDiff, first_row: u64) -> Parsed {
        let rows = source.num_rows();
        let rejected = |row: usize| Rejected {
            line: first_row + row as u64,
            lines: 1,
            column: None,
            reason: RejectReason::Columns(diff.clone()),
            raw: raw(row_text(&source, row).as_bytes()),
        };
        let rejected = (0..rows).map(rejected).collect();
        let columns = self.columns.iter().map(|column| new_null_array(&column.kind.arrow(), 0)).collect();
        Parsed { columns, source, kept: Some(Vec::new()), rejected, read: rows as u64, times: TimeCounts::default() }
    }

    /// The values of an INT96 column, as they are stored.
    fn int96(&self, leaf: Leaf, skip: usize, rows: usize) -> Result<Vec<Option<Int96>>, SourceError> {
        let metadata = self.file.footer.metadata();
        let values = match &self.file.bits {
            Bits::Memory { bytes, .. } => int96::read(bytes.clone(), metadata, leaf, skip, rows),
            Bits::Local { path, .. } => {
                let file =
                    File::open(path).map_err(|source| SourceError::Io { path: self.file.name.clone(), source })?;
                int96::read(file, metadata, leaf, skip, rows)
            }
        };
        values.map_err(|source| self.file.parquet(source))
    }

    fn decode(&self, group: usize, skip: usize, rows: usize) -> Result<RecordBatch, SourceError> {
        match &self.file.bits {
            Bits::Memory { bytes, .. } => self.decode_from(bytes.clone(), group, skip, rows),
            Bits::Local { path, length } => {
                let io = |source| SourceError::Io { path: self.file.name.clone(), source };
                let file = File::open(path).map_err(io)?;
                if file.metadata().map_err(io)?.len() != *length {
                    return Err(SourceError::Changed { path: self.file.name.clone() });
                }
                self.decode_from(file, group, skip, rows)
            }
        }
    }

    fn decode_from<R: ChunkReader + 'static>(
        &self,
        reader: R,
        group: usize,
        skip: usize,
        rows: usize,
    ) -> Result<RecordBatch, SourceError> {
        let selection = RowSelection::from(vec![RowSelector::skip(skip), RowSelector::select(rows)]);
        let reader: ParquetRecordBatchReader =
            ParquetRecordBatchReaderBuilder::new_with_metadata(reader, self.file.footer.clone())
                .with_row_groups(vec![group])
                .with_projection(self.mask.clone())
                .with_row_selection(selection)
                .with_batch_size(rows)
                .build()
                .map_err(|source| self.file.parquet(source))?;
        let schema = arrow::array::RecordBatchReader::schema(&reader);
        let batches = reader
            .collect::<Result<Vec<_>, _>>()
            .map_err(|source| self.file.parquet(ParquetError::ArrowError(source.to_string())))?;
        let batch = match <[RecordBatch; 1]>::try_from(batches) {
            Ok([batch]) => batch,
            Err(batches) => concat_batches(&schema, &batches)
                .map_err(|source| SourceError::Arrow { path: self.file.name.clone(), source })?,
        };
        if batch.num_rows() != rows {
            return Err(SourceError::Changed { path: self.file.name.clone() });
        }
        Ok(batch)
    }
}
