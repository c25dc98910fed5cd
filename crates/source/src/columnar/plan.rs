//! How the columns of a file become the declared ones, batch by batch.

use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray, RecordBatch, new_null_array};
use arrow::datatypes::Schema;
use parquet::data_type::Int96;

use crate::column_diff::ColumnDiff;
use crate::columnar::coerce::{Coercion, Fault};
use crate::columnar::columns::{self, FileColumn};
use crate::columnar::explode::{Exploded, Lists};
use crate::error::SourceError;
use crate::origin::row_text;
use crate::plan::{Matched, PathColumn, match_columns};
use crate::reject::{RejectReason, Rejected, raw};
use crate::spec::{SchemaMode, SourceSpec};
use crate::time::{Remarks, TimeCounts};
use crate::value::ColumnPlan;

/// How the columns of one file are read.
#[derive(Debug)]
pub(crate) struct ColumnarPlan {
    path: String,
    columns: Vec<ColumnPlan>,
    /// One for each declared column; `None` for those that the file lacks, which are null.
    sources: Vec<Option<ColumnSource>>,
    lists: Lists,
    /// Why every row is rejected, if so.
    refused: Option<ColumnDiff>,
}

/// Where the values of a declared column are, and their way to its type.
#[derive(Debug)]
struct ColumnSource {
    column: FileColumn,
    coercion: Coercion,
}

/// What became of a batch.
pub(crate) struct Parsed {
    pub columns: Vec<ArrayRef>,
    /// The events, as the file has them.
    pub source: RecordBatch,
    /// For each event its row in the file, counted from the first of the batch; `None` if they are the same.
    pub records: Option<Vec<u32>>,
    /// Rows of `source` that were accepted; all when absent.
    pub kept: Option<Vec<u32>>,
    pub rejected: Vec<Rejected>,
    pub read: u64,
    pub times: TimeCounts,
}

/// The stored values of a leaf of INT96.
pub(crate) type Int96Values = Vec<Option<Int96>>;

impl ColumnarPlan {
    /// How columns of the file at `path` are read, how they differ from the declared ones, and which its path names.
    /// `schema` is that of its batches, and `find` gives the columns of the schema of its events.
    ///
    /// # Errors
    /// [`SourceError::MissingColumn`], [`SourceError::ColumnType`], [`SourceError::MissingList`] and
    /// [`SourceError::PathValue`].
    pub fn new(
        spec: &SourceSpec,
        path: &str,
        schema: &Arc<Schema>,
        columns: Vec<ColumnPlan>,
        find: impl FnOnce(&Schema) -> Vec<FileColumn>,
    ) -> Result<(Self, ColumnDiff, Vec<PathColumn>), SourceError> {
        let lists = Lists::new(spec.lists());
        if let Some(list) = lists.missing(schema) {
            let header = schema.fields().iter().map(|field| field.name().clone()).collect();
            return Err(SourceError::MissingList { path: path.to_owned(), list: list.to_owned(), header });
        }
        let events = lists.schema(schema).map_err(|source| SourceError::Arrow { path: path.to_owned(), source })?;
        let found = columns::declarable(&events, find(&events), spec);
        let header: Vec<String> = found.iter().map(|column| column.name.clone()).collect();
        let Matched { steps, mut diff, path_columns } = match_columns(path, &header, spec, &columns)?;
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
                        path: path.to_owned(),
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
        Ok((Self { path: path.to_owned(), columns, sources, lists, refused }, diff, path_columns))
    }

    /// Whether the leaf at `path` of the file is needed. The raw batch is kept for rejected rows.
    pub fn wants(&self, path: &[String]) -> bool {
        self.refused.is_some()
            || self.sources.iter().flatten().any(|source| path.starts_with(&source.column.path))
            || path.first().is_some_and(|root| self.lists.is_root(root))
    }

    /// The declared columns of the rows of `batch`; `first_row` is the number of the first in the file, from 1. `int96`
    /// reads the values of a leaf of INT96.
    ///
    /// # Errors
    /// [`SourceError::Arrow`], [`SourceError::Changed`], and those of `int96`.
    pub fn parse(
        &self,
        batch: RecordBatch,
        first_row: u64,
        int96: &dyn Fn(usize) -> Result<Int96Values, SourceError>,
    ) -> Result<Parsed, SourceError> {
        if let Some(diff) = &self.refused {
            return Ok(self.refuse(batch, diff, first_row));
        }
        let arrow = |source| SourceError::Arrow { path: self.path.clone(), source };
        let whole = batch.clone();
        let exploded = match self.lists.is_empty() {
            true => Exploded { batch, records: None, faults: Vec::new() },
            false => self.lists.explode(batch).map_err(arrow)?,
        };
        let Exploded { batch: source, records, faults: list_faults } = exploded;
        let record = |row: u32| records.as_ref().map_or(row, |records| records.get(row as usize).copied().unwrap_or(0));

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
                return Err(SourceError::Changed { path: self.path.clone() });
            };
            let coerced = match found.leaf.filter(|_| found.is_int96 && column.reader.reads_more_values()) {
                Some(leaf) => {
                    let mut values = int96(leaf)?;
                    if let Some(records) = &records {
                        values = records.iter().map(|row| values.get(*row as usize).cloned().flatten()).collect();
                    }
                    coercion.apply_int96(&array, &values, column).map_err(arrow)?
                }
                None => coercion.apply(&array, column).map_err(arrow)?,
            };
            arrays.push(coerced.array);
            remarks.push(coerced.remarks);
            nans.push(coerced.nans);
            faults.extend(coerced.faults.into_iter().map(|Fault { row, reason }| (row, index, reason)));
        }

        let read = source.num_rows() as u64 + list_faults.len() as u64;
        let times = |kept: &dyn Fn(usize) -> bool| {
            let mut times = TimeCounts::default();
            remarks.iter().for_each(|remarks| times += remarks.counts(kept));
            times.nan = nans.iter().flatten().filter(|row| kept(**row as usize)).count() as u64;
            times
        };
        if faults.is_empty() && list_faults.is_empty() {
            let times = times(&|_| true);
            let rejected = Vec::new();
            return Ok(Parsed { columns: arrays, source, records, kept: None, rejected, read, times });
        }

        faults.sort_by_key(|(row, index, _)| (*row, *index));
        faults.dedup_by_key(|(row, ..)| *row);
        let mut keep = vec![true; source.num_rows()];
        let mut rejected = Vec::with_capacity(faults.len() + list_faults.len());
        for (row, index, reason) in faults {
            if let Some(slot) = keep.get_mut(row as usize) {
                *slot = false;
            }
            rejected.push(Rejected {
                line: first_row + u64::from(record(row)),
                lines: 1,
                column: self.columns.get(index).map(|column| column.name.clone()),
                reason,
                raw: raw(row_text(&source, row as usize).as_bytes()),
            });
        }
        for (row, reason) in list_faults {
            let raw = raw(row_text(&whole, row as usize).as_bytes());
            rejected.push(Rejected { line: first_row + u64::from(row), lines: 1, column: None, reason, raw });
        }
        rejected.sort_by_key(|row| row.line);
        let times = times(&|row| keep.get(row) == Some(&true));
        let kept = (0u32..).zip(&keep).filter(|(_, keep)| **keep).map(|(row, _)| row).collect();
        let keep = BooleanArray::from(keep);
        let columns =
            arrays.iter().map(|array| arrow::compute::filter(array, &keep)).collect::<Result<_, _>>().map_err(arrow)?;
        Ok(Parsed { columns, source, records, kept: Some(kept), rejected, read, times })
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
        let (read, times) = (rows as u64, TimeCounts::default());
        Parsed { columns, source, records: None, kept: Some(Vec::new()), rejected, read, times }
    }
}
