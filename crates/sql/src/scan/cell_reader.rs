//! Cell reader: from blocks to batches of the cells that pass a query's filters on family, qualifier and timestamp.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, BinaryArray, BinaryBuilder, BooleanArray, RecordBatch, RecordBatchOptions, StringArray, StringBuilder,
    TimestampMicrosecondArray, TimestampMicrosecondBuilder,
};
use arrow::buffer::BooleanBuffer;
use arrow::datatypes::{Schema, SchemaRef};
use datafusion::error::Result;
use datafusion::physical_expr::utils::collect_columns;
use datafusion::physical_plan::PhysicalExpr;
use tidetable_layout::cell::{CellParts, CellRef, CellSelection, GroupsWithout, Passes, visit_cells};
use tidetable_layout::schema::{QualifierKind, TimestampKind};
use tidetable_layout::{Block, Group, GroupBlock, Projection, StoredSchema};

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

/// Whether stripes know the timestamps of all their cells: no group has cells at timestamp 0.
pub(crate) fn has_stored_timestamps(schema: &StoredSchema) -> bool {
    schema.groups.iter().all(|group| group.timestamps == TimestampKind::Stored && !group.keeps_duplicates())
}

/// Reads cells from blocks.
pub(crate) struct CellReader {
    selection: CellSelection,
    /// Filters that use the family, or family and qualifier: evaluated once a column, or once a name of the dictionary.
    of_names: CellFilter,
    /// Filters that use the timestamp: evaluated once a record.
    of_times: CellFilter,
    parts: CellParts,
    columns: Vec<usize>,
    batch: SchemaRef,
    batch_rows: usize,
    built: CellColumns,
}

/// Filters over some columns of `cells.T`.
struct CellFilter {
    fields: Fields,
    filters: Vec<Expr>,
}

/// The names and timestamps of some cells of one family.
struct CellNames<'a> {
    family: &'a str,
    qualifiers: &'a dyn Fn() -> BinaryArray,
    times: &'a dyn Fn() -> TimestampMicrosecondArray,
    len: usize,
}

/// The timestamps of names: filters on names ask for none.
fn no_times() -> TimestampMicrosecondArray {
    TimestampMicrosecondArray::from(Vec::<i64>::new()).with_timezone("UTC")
}

impl CellFilter {
    fn new<'a>(table: &Schema, filters: impl Iterator<Item = &'a Expr> + Clone) -> Result<Self> {
        let fields = Fields::of(table, filters.clone(), &[])?;
        Ok(Self { filters: fields.bind_all(filters)?, fields })
    }

    fn uses(&self, column: usize) -> bool {
        self.fields.place(column).is_some()
    }

    /// Which of these cells pass; `None` without filters.
    fn evaluate(&self, names: &CellNames<'_>) -> Result<Option<BooleanArray>> {
        let column = |at: &usize| -> ArrayRef {
            match *at {
                CELL_FAMILY => Arc::new(StringArray::from_iter_values(std::iter::repeat_n(names.family, names.len))),
                CELL_QUALIFIER => Arc::new((names.qualifiers)()),
                _ => Arc::new((names.times)()),
            }
        };
        let columns = self.fields.at().iter().map(column).collect();
        let options = RecordBatchOptions::new().with_row_count(Some(names.len));
        let batch = RecordBatch::try_new_with_options(Arc::clone(self.fields.schema()), columns, &options)?;
        passing(&self.filters, &batch)
    }
}

impl CellReader {
    /// Outputs `columns` of `cells.T`, whose schema is `table`, as batches of the schema `batch`.
    pub(crate) fn new(
        schema: &StoredSchema,
        table: &Schema,
        filters: &[Expr],
        columns: &[usize],
        batch: SchemaRef,
        batch_rows: usize,
    ) -> Result<Self> {
        let uses = |filter: &Expr, at: usize| collect_columns(filter).iter().any(|column| column.index() == at);
        let of_names = CellFilter::new(table, filters.iter().filter(|filter| !uses(filter, CELL_TIMESTAMP)))?;
        let of_times = CellFilter::new(table, filters.iter().filter(|filter| uses(filter, CELL_TIMESTAMP)))?;
        // Columns of which the name is known and does not pass are not read. A filter that fails is evaluated again.
        let is_wanted = |_: &Group, family: &str, qualifier: Option<&[u8]>| {
            if qualifier.is_none() && of_names.uses(CELL_QUALIFIER) {
                return true;
            }
            let qualifiers = || BinaryArray::from_iter_values(qualifier);
            let names = CellNames { family, qualifiers: &qualifiers, times: &no_times, len: 1 };
            of_names.evaluate(&names).ok().flatten().is_none_or(|passes| passes.true_count() > 0)
        };
        let selection = CellSelection::new(schema, GroupsWithout::Nothing, is_wanted);
        let parts = CellParts { key: columns.contains(&CELL_KEY), value: columns.contains(&CELL_VALUE) };
        let (columns, built) = (columns.to_vec(), CellColumns::default());
        Ok(Self { selection, of_names, of_times, parts, columns, batch, batch_rows, built })
    }

    /// The projection of blocks.
    pub(crate) fn projection(&self) -> &Projection {
        &self.selection.projection
    }

    /// Calls `send` with each full batch; returns false once it does.
    pub(crate) fn block(
        &mut self,
        mut block: Block,
        send: &mut dyn FnMut(RecordBatch) -> bool,
    ) -> Result<bool, SqlError> {
        let Self { selection, of_names, of_times, parts, columns, batch, batch_rows, built } = self;
        block.groups = selection.groups(std::mem::take(&mut block.groups));
        let passes = |group: &Group, stored: &GroupBlock, name: (&str, &[u8])| {
            passes(of_names, of_times, group, stored, name).map_err(SqlError::Query)
        };
        let mut wants_more = true;
        visit_cells(&selection.schema, &block, *parts, passes, |cell| {
            if wants_more {
                built.push(cell, columns);
                if built.rows >= *batch_rows {
                    wants_more = send(built.take(columns, batch)?);
                }
            }
            Ok(())
        })?;
        Ok(wants_more)
    }

    /// The last, partial batch.
    pub(crate) fn rest(mut self) -> Result<Option<RecordBatch>, SqlError> {
        if self.built.rows == 0 { Ok(None) } else { self.built.take(&self.columns, &self.batch).map(Some) }
    }
}

/// The records of a group whose cells of this family, and of this qualifier unless it varies, pass both filters.
fn passes(
    of_names: &CellFilter,
    of_times: &CellFilter,
    group: &Group,
    stored: &GroupBlock,
    (family, qualifier): (&str, &[u8]),
) -> Result<Passes> {
    let dynamic = stored.qualifiers.as_ref().filter(|_| group.qualifier == QualifierKind::Dynamic);
    // A joined cell is one of all records of its row, at timestamp 0.
    let is_joined = group.keeps_duplicates();
    let len = if is_joined { 1 } else { stored.len() };
    let zero = is_joined || group.timestamps == TimestampKind::Zero;
    let times = || {
        let times = stored.timestamps.as_ref().filter(|_| !zero);
        let times = times.map_or_else(|| vec![0; len], |times| times.clone());
        TimestampMicrosecondArray::from(times).with_timezone("UTC")
    };
    let mut all: Option<BooleanBuffer> = None;
    let mut narrow = |more: BooleanBuffer| {
        all = Some(match all.take() {
            Some(all) => &all & &more,
            None => more,
        });
    };
    if let Some(names) = dynamic {
        // The dictionary is that of the stripe: a filter may fail for names that none of these records has.
        let mut is_used = vec![false; names.dictionary.len()];
        names.codes.iter().for_each(|code| {
            if let Some(used) = is_used.get_mut(*code as usize) {
                *used = true;
            }
        });
        let used = || names.dictionary.iter().zip(&is_used).filter(|(_, used)| **used).map(|(name, _)| name);
        let len = used().count();
        let qualifiers = || BinaryArray::from_iter_values(used());
        if let Some(passes) =
            of_names.evaluate(&CellNames { family, qualifiers: &qualifiers, times: &no_times, len })?
        {
            if passes.true_count() == 0 {
                return Ok(Passes::None);
            }
            if passes.true_count() < passes.len() {
                let mut verdicts = passes.values().iter();
                let by_code: Vec<bool> = is_used.iter().map(|used| *used && verdicts.next() == Some(true)).collect();
                narrow(names.codes.iter().map(|code| by_code.get(*code as usize) == Some(&true)).collect());
            }
        }
    } else {
        let qualifiers = || BinaryArray::from_iter_values([qualifier]);
        let one = CellNames { family, qualifiers: &qualifiers, times: &no_times, len: 1 };
        if of_names.evaluate(&one)?.is_some_and(|passes| passes.true_count() == 0) {
            return Ok(Passes::None);
        }
    }
    let qualifiers = || match dynamic {
        Some(names) => {
            let name = |code: &u32| names.dictionary.get(*code as usize).map_or(&[][..], AsRef::as_ref);
            BinaryArray::from_iter_values(names.codes.iter().map(name))
        }
        None => BinaryArray::from_iter_values(std::iter::repeat_n(qualifier, len)),
    };
    if let Some(passes) = of_times.evaluate(&CellNames { family, qualifiers: &qualifiers, times: &times, len })? {
        if passes.true_count() == 0 && len > 0 {
            return Ok(Passes::None);
        }
        if passes.true_count() < len {
            narrow(passes.values().clone());
        }
    }
    Ok(all.map_or(Passes::All, Passes::Records))
}

/// Builders of the cell columns; unprojected ones stay empty.
struct CellColumns {
    rows: usize,
    row_key: BinaryBuilder,
    family: StringBuilder,
    qualifier: BinaryBuilder,
    timestamp: TimestampMicrosecondBuilder,
    value: BinaryBuilder,
}

impl Default for CellColumns {
    fn default() -> Self {
        Self {
            rows: 0,
            row_key: BinaryBuilder::new(),
            family: StringBuilder::new(),
            qualifier: BinaryBuilder::new(),
            timestamp: TimestampMicrosecondBuilder::new().with_timezone("UTC"),
            value: BinaryBuilder::new(),
        }
    }
}

impl CellColumns {
    fn push(&mut self, cell: CellRef<'_>, columns: &[usize]) {
        self.rows += 1;
        for column in columns {
            match column {
                0 => self.row_key.append_value(cell.row_key),
                1 => self.family.append_value(cell.family),
                2 => self.qualifier.append_value(cell.qualifier),
                3 => self.timestamp.append_value(cell.timestamp),
                _ => self.value.append_value(cell.value),
            }
        }
    }

    /// Takes the batch built so far.
    fn take(&mut self, columns: &[usize], schema: &SchemaRef) -> Result<RecordBatch, SqlError> {
        let column = |at: &usize| -> ArrayRef {
            match at {
                0 => Arc::new(self.row_key.finish()),
                1 => Arc::new(self.family.finish()),
                2 => Arc::new(self.qualifier.finish()),
                3 => Arc::new(self.timestamp.finish()),
                _ => Arc::new(self.value.finish()),
            }
        };
        let arrays = columns.iter().map(column).collect();
        let options = RecordBatchOptions::new().with_row_count(Some(std::mem::take(&mut self.rows)));
        let batch = RecordBatch::try_new_with_options(Arc::clone(schema), arrays, &options);
        batch.map_err(|error| SqlError::Query(error.into()))
    }
}
