//! `cells.T`: filters on family, qualifier and timestamp as a filter of a cell scan, and its rows as batches of cells.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, BinaryArray, BinaryBuilder, BooleanArray, RecordBatch, RecordBatchOptions, StringArray, StringBuilder,
    TimestampMicrosecondArray, TimestampMicrosecondBuilder,
};
use arrow::datatypes::{Schema, SchemaRef};
use datafusion::error::Result;
use datafusion::physical_expr::utils::collect_columns;
use datafusion::physical_plan::PhysicalExpr;
use tidetable_cells::{CellFilter, CellRow, ColumnName, Passes, RowSink, is_at_zero};
use tidetable_layout::block::Qualifiers;
use tidetable_layout::schema::QualifierKind;
use tidetable_layout::{Group, GroupBlock};

use crate::error::SqlError;
use crate::pushdown::dependence::is_of_columns;
use crate::scan::records::{Fields, passing};
use crate::schema::{CELL_FAMILY, CELL_KEY, CELL_QUALIFIER, CELL_TIMESTAMP, CELL_VALUE};

type Expr = Arc<dyn PhysicalExpr>;

/// Whether the scan of cells evaluates this filter: it uses family, qualifier and timestamp only.
pub(crate) fn is_of_names_and_times(filter: &Expr) -> bool {
    let known = [CELL_FAMILY, CELL_QUALIFIER, CELL_TIMESTAMP];
    is_of_columns(filter) && collect_columns(filter).iter().all(|column| known.contains(&column.index()))
}

/// The filters of a scan of cells, by how often they are evaluated.
pub(crate) struct CellFilters {
    /// Filters that use the family, or family and qualifier: evaluated once a column, or once a name of the dictionary.
    of_names: ColumnFilters,
    /// Filters that use the timestamp: evaluated once a record.
    of_times: ColumnFilters,
}

/// Filters over some columns of `cells.T`, and the columns that they use.
struct ColumnFilters {
    fields: Fields,
    filters: Vec<Expr>,
}

/// The timestamps of names: filters on names ask for none.
fn no_times() -> TimestampMicrosecondArray {
    TimestampMicrosecondArray::from(Vec::<i64>::new()).with_timezone("UTC")
}

impl ColumnFilters {
    fn new<'a>(table: &Schema, filters: impl Iterator<Item = &'a Expr> + Clone) -> Result<Self> {
        let fields = Fields::of(table, filters.clone(), &[])?;
        Ok(Self { filters: fields.bind_all(filters)?, fields })
    }

    fn uses(&self, column: usize) -> bool {
        self.fields.place(column).is_some()
    }

    /// Which of `len` cells of a family pass, by their qualifiers and timestamps; `None` without filters.
    fn evaluate(
        &self,
        family: &str,
        len: usize,
        qualifiers: impl Fn() -> BinaryArray,
        times: impl Fn() -> TimestampMicrosecondArray,
    ) -> Result<Option<BooleanArray>> {
        let mut columns: Vec<ArrayRef> = Vec::with_capacity(self.fields.at().len());
        for column in self.fields.at() {
            columns.push(match *column {
                CELL_FAMILY => Arc::new(StringArray::from_iter_values(std::iter::repeat_n(family, len))),
                CELL_QUALIFIER => Arc::new(qualifiers()),
                _ => Arc::new(times()),
            });
        }
        let options = RecordBatchOptions::new().with_row_count(Some(len));
        let batch = RecordBatch::try_new_with_options(Arc::clone(self.fields.schema()), columns, &options)?;
        passing(&self.filters, &batch)
    }
}

impl CellFilters {
    /// Takes all filters of a scan over `cells.T`, whose schema is `table`.
    pub(crate) fn new(table: &Schema, filters: &[Expr]) -> Result<Self> {
        let uses_time = |filter: &&Expr| collect_columns(filter).iter().any(|column| column.index() == CELL_TIMESTAMP);
        Ok(Self {
            of_names: ColumnFilters::new(table, filters.iter().filter(|filter| !uses_time(filter)))?,
            of_times: ColumnFilters::new(table, filters.iter().filter(uses_time))?,
        })
    }

    /// The records of a group whose cells pass both filters in a column.
    fn passing_records(&self, group: &Group, stored: &GroupBlock, column: ColumnName<'_>) -> Result<Passes> {
        let ColumnName { family, qualifier } = column;
        let dynamic = stored.qualifiers.as_ref().filter(|_| group.qualifier == QualifierKind::Dynamic);
        let by_name = match dynamic {
            Some(names) => self.passing_names(family, names)?,
            None => {
                let verdict =
                    self.of_names.evaluate(family, 1, || BinaryArray::from_iter_values([qualifier]), no_times)?;
                verdict.map_or(Passes::All, |verdict| if verdict.value(0) { Passes::All } else { Passes::None })
            }
        };
        if matches!(by_name, Passes::None) {
            return Ok(Passes::None);
        }

        // A joined cell is one of all records of its row, at timestamp 0.
        let len = if group.keeps_duplicates() { 1 } else { stored.len() };
        let qualifiers = || match dynamic {
            Some(names) => {
                let name = |code: &u32| names.dictionary.get(*code as usize).map_or(&[][..], AsRef::as_ref);
                BinaryArray::from_iter_values(names.codes.iter().map(name))
            }
            None => BinaryArray::from_iter_values(std::iter::repeat_n(qualifier, len)),
        };
        let times = || {
            let times = stored.timestamps.as_ref().filter(|_| !is_at_zero(group));
            let times = times.map_or_else(|| vec![0; len], |times| times.clone());
            TimestampMicrosecondArray::from(times).with_timezone("UTC")
        };
        let Some(by_time) = self.of_times.evaluate(family, len, qualifiers, times)? else { return Ok(by_name) };
        Ok(match by_name {
            _ if by_time.true_count() == len => by_name,
            _ if by_time.true_count() == 0 => Passes::None,
            Passes::Records(by_name) => Passes::Records(&by_name & by_time.values()),
            _ => Passes::Records(by_time.values().clone()),
        })
    }

    /// The records whose names pass. The dictionary is that of the stripe: a filter may fail for names that none of these
    /// records has.
    fn passing_names(&self, family: &str, names: &Qualifiers) -> Result<Passes> {
        let mut is_wanted = vec![false; names.dictionary.len()];
        for code in &names.codes {
            if let Some(is_used) = is_wanted.get_mut(*code as usize) {
                *is_used = true;
            }
        }
        let used = names.dictionary.iter().zip(&is_wanted).filter(|(_, is_used)| **is_used);
        let used: Vec<&[u8]> = used.map(|(name, _)| name.as_ref()).collect();
        let qualifiers = || BinaryArray::from_iter_values(&used);
        let Some(verdict) = self.of_names.evaluate(family, used.len(), qualifiers, no_times)? else {
            return Ok(Passes::All);
        };

        if verdict.true_count() == 0 {
            return Ok(Passes::None);
        }
        if verdict.true_count() == verdict.len() {
            return Ok(Passes::All);
        }
        let mut verdicts = verdict.values().iter();
        for is_used in is_wanted.iter_mut().filter(|is_used| **is_used) {
            *is_used = verdicts.next() == Some(true);
        }
        let wanted = names.codes.iter().map(|code| is_wanted.get(*code as usize) == Some(&true));
        Ok(Passes::Records(wanted.collect()))
    }
}

impl CellFilter<SqlError> for CellFilters {
    /// A filter that fails is evaluated again, for the names that records have.
    fn may_pass(&self, family: &str, qualifier: Option<&[u8]>) -> bool {
        if qualifier.is_none() && self.of_names.uses(CELL_QUALIFIER) {
            return true;
        }
        let verdict = self.of_names.evaluate(family, 1, || BinaryArray::from_iter_values(qualifier), no_times);
        verdict.ok().flatten().is_none_or(|passes| passes.true_count() > 0)
    }

    fn passes(&self, group: &Group, records: &GroupBlock, column: ColumnName<'_>) -> Result<Passes, SqlError> {
        self.passing_records(group, records, column).map_err(SqlError::Query)
    }
}

/// Sends cells as batches; builders of columns that are not projected stay empty.
pub(crate) struct CellBatches<'a> {
    columns: &'a [usize],
    schema: SchemaRef,
    batch_rows: usize,
    send: &'a mut dyn FnMut(RecordBatch) -> bool,
    rows: usize,
    row_key: BinaryBuilder,
    family: StringBuilder,
    qualifier: BinaryBuilder,
    timestamp: TimestampMicrosecondBuilder,
    value: BinaryBuilder,
    /// The row key and the value of the current cell.
    scratch: [Vec<u8>; 2],
}

impl<'a> CellBatches<'a> {
    /// Sends `columns` of `cells.T`, as batches of `batch_rows` cells with this schema.
    pub(crate) fn new(
        columns: &'a [usize],
        schema: SchemaRef,
        batch_rows: usize,
        send: &'a mut dyn FnMut(RecordBatch) -> bool,
    ) -> Self {
        Self {
            columns,
            schema,
            batch_rows,
            send,
            rows: 0,
            row_key: BinaryBuilder::new(),
            family: StringBuilder::new(),
            qualifier: BinaryBuilder::new(),
            timestamp: TimestampMicrosecondBuilder::new().with_timezone("UTC"),
            value: BinaryBuilder::new(),
            scratch: [Vec::new(), Vec::new()],
        }
    }

    /// Sends the cells so far. Returns false if no more are wanted.
    pub(crate) fn flush(&mut self) -> Result<bool, SqlError> {
        if self.rows == 0 {
            return Ok(true);
        }

        let mut arrays: Vec<ArrayRef> = Vec::with_capacity(self.columns.len());
        for column in self.columns {
            arrays.push(match *column {
                CELL_KEY => Arc::new(self.row_key.finish()),
                CELL_FAMILY => Arc::new(self.family.finish()),
                CELL_QUALIFIER => Arc::new(self.qualifier.finish()),
                CELL_TIMESTAMP => Arc::new(self.timestamp.finish()),
                _ => Arc::new(self.value.finish()),
            });
        }
        let options = RecordBatchOptions::new().with_row_count(Some(std::mem::take(&mut self.rows)));
        let batch = RecordBatch::try_new_with_options(Arc::clone(&self.schema), arrays, &options);
        Ok((self.send)(batch.map_err(|error| SqlError::Query(error.into()))?))
    }
}

impl RowSink for CellBatches<'_> {
    type Error = SqlError;

    fn row(&mut self, row: &mut CellRow<'_, '_>) -> Result<bool, SqlError> {
        let [mut key, mut value] = std::mem::take(&mut self.scratch);
        key.clear();
        if self.columns.contains(&CELL_KEY) {
            row.write_key(&mut key);
        }

        for cell in row.cells() {
            let name = row.column(cell);
            for column in self.columns {
                match *column {
                    CELL_KEY => self.row_key.append_value(&key),
                    CELL_FAMILY => self.family.append_value(name.family),
                    CELL_QUALIFIER => self.qualifier.append_value(name.qualifier),
                    CELL_TIMESTAMP => self.timestamp.append_value(cell.timestamp),
                    CELL_VALUE => {
                        value.clear();
                        row.write_value(cell, &mut value);
                        self.value.append_value(&value);
                    }
                    _ => {}
                }
            }
            self.rows += 1;
            if self.rows >= self.batch_rows && !self.flush()? {
                return Ok(false);
            }
        }
        self.scratch = [key, value];
        Ok(true)
    }
}
