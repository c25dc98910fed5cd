//! How the columns of a file become the declared ones, batch by batch.

use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray, RecordBatch, new_null_array};
use arrow::compute::filter;
use arrow::datatypes::Schema;
use arrow::error::ArrowError;
use parquet::data_type::Int96;

use crate::column_diff::ColumnDiff;
use crate::columnar::coerce::Coercion;
use crate::columnar::columns::{self, FileColumn};
use crate::columnar::explode::{Exploded, Lists};
use crate::columnar::type_words::type_words;
use crate::csv::TextNotes;
use crate::dump::{Dump, DumpRows, UnlikeColumn, unlike_column};
use crate::error::SourceError;
use crate::origin::row_text;
use crate::plan::{Declaration, Matched, PathColumn, match_columns};
use crate::reject::{RejectReason, Rejected, raw};
use crate::spec::{SchemaMode, SourceSpec};
use crate::time::{Adjusted, Remarks};
use crate::value::ColumnPlan;

/// How the columns of one file are read.
#[derive(Debug)]
pub(crate) struct ColumnarPlan {
    path: String,
    columns: Vec<ColumnPlan>,
    /// One for each declared column; `None` for those that the file lacks, which are null.
    sources: Vec<Option<ColumnSource>>,
    lists: Lists,
    /// What makes rows of a dump of Bigtable, if the file is one.
    dump: Option<Dump>,
    /// Why every row is rejected, if so.
    refused: Option<ColumnDiff>,
}

/// Where the values of a declared column are, and their way to its type.
#[derive(Debug)]
struct ColumnSource {
    column: FileColumn,
    coercion: Coercion,
}

/// The declared columns of a batch, with the rows that were rejected.
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
    pub times: Adjusted,
    /// Lists of events that are empty.
    pub notes: TextNotes,
}

/// The declared columns of all events of a batch, and what is to be said of their values.
#[derive(Default)]
struct TypedEvents {
    arrays: Vec<ArrayRef>,
    /// One a row at most, in ascending order: that of the first column.
    faults: Vec<EventFault>,
    /// One for each column.
    remarks: Vec<Remarks>,
    /// The rows with NaN, which are null, once for each of their columns.
    nans: Vec<u32>,
}

/// An event whose value does not fit the declared `column`.
struct EventFault {
    row: u32,
    column: usize,
    reason: RejectReason,
}

impl TypedEvents {
    /// The adjusted times and the NaNs of the rows that are kept; of all without `keep`.
    fn times(&self, keep: Option<&[bool]>) -> Adjusted {
        let mut times = Adjusted::default();
        for remarks in &self.remarks {
            times.add_column(remarks, keep);
        }
        let is_kept = |row: &&u32| keep.is_none_or(|keep| keep.get(**row as usize) == Some(&true));
        times.counts.nan = self.nans.iter().filter(is_kept).count() as u64;
        times
    }
}

/// The stored values of a leaf of INT96.
pub(crate) type Int96Values = Vec<Option<Int96>>;

impl ColumnarPlan {
    /// How columns of the file at `path` are read, how they differ from the declared ones, and which its path names.
    /// `schema` is that of its batches, and `find` gives the columns of the schema of its events.
    ///
    /// # Errors
    /// [`SourceError::MissingColumn`], [`SourceError::ColumnType`], [`SourceError::MissingList`], [`SourceError::NotDump`],
    /// [`SourceError::DumpColumn`] and [`SourceError::PathValue`].
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
        let dump = match spec.format {
            Some(format) if format.is_dump() => {
                if let Some(UnlikeColumn { column, found, wanted }) = unlike_column(schema) {
                    let (path, found) = (path.to_owned(), type_words(&found));
                    return Err(SourceError::DumpColumn { path, column, found, wanted });
                }
                Some(Dump::new(spec, path, schema)?)
            }
            _ => None,
        };
        let (events, found) = match &dump {
            Some(dump) => (dump.schema(), columns::columns(&dump.schema(), None)),
            None => {
                let events = lists.schema(schema);
                let events = events.map_err(|source| SourceError::Arrow { path: path.to_owned(), source })?;
                let found = find(&events);
                (events, found)
            }
        };
        let found = columns::declarable(&events, found, spec);
        let header: Vec<String> = found.iter().map(|column| column.name.clone()).collect();
        let Matched { steps, mut diff, path_columns } = match_columns(path, &header, Declaration::of(spec, &columns))?;
        if dump.is_some() {
            // All dumps have these columns; a source takes what it needs of them.
            diff.extra.clear();
        } else if spec.mode != SchemaMode::Reject {
            // A column without values is told when a file has some.
            diff.extra.retain(|name| !found.iter().any(|column| column.name == *name && column.data_type.is_null()));
        }

        let mut sources = Vec::with_capacity(columns.len());
        for (index, column) in columns.iter().enumerate() {
            let place = steps.iter().position(|step| *step == Some(index));
            let Some(found) = place.and_then(|place| found.get(place)) else {
                sources.push(None);
                continue;
            };
            let is_typed = dump.is_some() && found.data_type == column.kind.arrow();
            let coercion = if is_typed { Some(Coercion::Same) } else { Coercion::choose(found, column) };
            if coercion.is_none() {
                if spec.mode != SchemaMode::Reject {
                    let (found, wanted) = (type_words(&found.data_type), column.kind);
                    let (path, column) = (path.to_owned(), column.name.clone());
                    return Err(SourceError::ColumnType { path, column, found, wanted });
                }
                diff.unlike.push((column.name.clone(), type_words(&found.data_type)));
            }
            sources.push(coercion.map(|coercion| ColumnSource { column: found.clone(), coercion }));
        }

        let refused = (spec.mode == SchemaMode::Reject && !diff.is_empty()).then(|| diff.clone());
        Ok((Self { path: path.to_owned(), columns, sources, lists, dump, refused }, diff, path_columns))
    }

    /// Whether the file is a dump of Bigtable.
    pub fn is_dump(&self) -> bool {
        self.dump.is_some()
    }

    /// Whether the leaf at `path` of the file is needed. The raw batch is kept for rejected rows.
    pub fn wants(&self, path: &[String]) -> bool {
        self.refused.is_some()
            || self.dump.is_some()
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
        let file_rows = batch.clone();
        let exploded = match &self.dump {
            Some(dump) => {
                let DumpRows { batch, records, faults, empty } = dump.rows(&batch)?;
                Exploded { batch, records: Some(records), faults, empty }
            }
            None if self.lists.is_empty() => Exploded { batch, records: None, faults: Vec::new(), empty: Vec::new() },
            None => self.lists.explode(batch).map_err(|source| self.arrow(source))?,
        };
        let typed = self.typed(&exploded, int96)?;
        let notes = self.list_notes(&exploded, file_rows.num_rows(), first_row);

        let read = exploded.batch.num_rows() as u64 + exploded.faults.len() as u64;
        if typed.faults.is_empty() && exploded.faults.is_empty() {
            let times = typed.times(None);
            let Exploded { batch: source, records, .. } = exploded;
            return Ok(Parsed {
                columns: typed.arrays,
                source,
                records,
                kept: None,
                rejected: Vec::new(),
                read,
                times,
                notes,
            });
        }

        let mut keep = vec![true; exploded.batch.num_rows()];
        for fault in &typed.faults {
            if let Some(slot) = keep.get_mut(fault.row as usize) {
                *slot = false;
            }
        }
        let times = typed.times(Some(&keep));
        let kept = (0u32..).zip(&keep).filter(|(_, keep)| **keep).map(|(row, _)| row).collect();
        let keep = BooleanArray::from(keep);
        let columns = typed.arrays.iter().map(|array| filter(array, &keep)).collect::<Result<_, _>>();
        let columns = columns.map_err(|source| self.arrow(source))?;

        let rejected = self.rejected(typed.faults, &exploded, &file_rows, first_row);
        let Exploded { batch: source, records, .. } = exploded;
        Ok(Parsed { columns, source, records, kept: Some(kept), rejected, read, times, notes })
    }

    /// How many records have lists of events, and which lists are empty.
    fn list_notes(&self, exploded: &Exploded, records: usize, first_row: u64) -> TextNotes {
        let mut notes = TextNotes::default();
        if !self.lists.is_empty() {
            notes.list_records = records as u64;
        }
        for record in &exploded.empty {
            notes.empty_lists.add(first_row + u64::from(*record));
        }
        notes
    }

    /// The declared columns of all events, whether their values fit or not.
    fn typed(
        &self,
        exploded: &Exploded,
        int96: &dyn Fn(usize) -> Result<Int96Values, SourceError>,
    ) -> Result<TypedEvents, SourceError> {
        let mut typed = TypedEvents::default();
        for (index, (column, place)) in self.columns.iter().zip(&self.sources).enumerate() {
            let Some(ColumnSource { column: found, coercion }) = place else {
                typed.arrays.push(new_null_array(&column.kind.arrow(), exploded.batch.num_rows()));
                typed.remarks.push(Remarks::default());
                continue;
            };
            let array = columns::values(&exploded.batch, &found.path).map_err(|source| self.arrow(source))?;
            let array = array.ok_or_else(|| SourceError::Changed { path: self.path.clone() })?;

            let coerced = match found.leaf.filter(|_| found.is_int96 && column.reader.reads_more_values()) {
                Some(leaf) => {
                    let mut values = int96(leaf)?;
                    if let Some(records) = &exploded.records {
                        values = records.iter().map(|row| values.get(*row as usize).cloned().flatten()).collect();
                    }
                    coercion.apply_int96(&array, &values, column)
                }
                None => coercion.apply(&array, column),
            };
            let coerced = coerced.map_err(|source| self.arrow(source))?;

            typed.arrays.push(coerced.array);
            typed.remarks.push(coerced.remarks);
            typed.nans.extend(coerced.nans);
            for fault in coerced.faults {
                typed.faults.push(EventFault { row: fault.row, column: index, reason: fault.reason });
            }
        }

        typed.faults.sort_by_key(|fault| (fault.row, fault.column));
        typed.faults.dedup_by_key(|fault| fault.row);
        Ok(typed)
    }

    /// The rejected events and rows of the file, in the order of the file.
    fn rejected(
        &self,
        faults: Vec<EventFault>,
        exploded: &Exploded,
        file_rows: &RecordBatch,
        first_row: u64,
    ) -> Vec<Rejected> {
        let mut rejected = Vec::with_capacity(faults.len() + exploded.faults.len());
        for EventFault { row, column, reason } in faults {
            rejected.push(Rejected {
                line: first_row + u64::from(exploded.record(row)),
                lines: 1,
                column: self.columns.get(column).map(|column| column.name.clone()),
                reason,
                raw: raw(row_text(&exploded.batch, row as usize).as_bytes()),
            });
        }
        for (row, reason) in &exploded.faults {
            let raw = raw(row_text(file_rows, *row as usize).as_bytes());
            let line = first_row + u64::from(*row);
            rejected.push(Rejected { line, lines: 1, column: None, reason: reason.clone(), raw });
        }

        rejected.sort_by_key(|row| row.line);
        rejected
    }

    fn arrow(&self, source: ArrowError) -> SourceError {
        SourceError::Arrow { path: self.path.clone(), source }
    }

    /// Rejects every row of a file whose columns differ from the declared ones by `diff`.
    fn refuse(&self, source: RecordBatch, diff: &ColumnDiff, first_row: u64) -> Parsed {
        let rows = source.num_rows();
        let mut rejected = Vec::with_capacity(rows);
        for (line, row) in (first_row..).zip(0..rows) {
            let raw = raw(row_text(&source, row).as_bytes());
            rejected.push(Rejected { line, lines: 1, column: None, reason: RejectReason::Columns(diff.clone()), raw });
        }

        let columns = self.columns.iter().map(|column| new_null_array(&column.kind.arrow(), 0)).collect();
        let (read, times) = (rows as u64, Adjusted::default());
        Parsed {
            columns,
            source,
            records: None,
            kept: Some(Vec::new()),
            rejected,
            read,
            times,
            notes: TextNotes::default(),
        }
    }
}
