//! Row reader: from blocks to batches of rows with a map for each family.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{
    ArrayRef, BinaryArray, BinaryBuilder, ListArray, MapArray, RecordBatch, RecordBatchOptions, StructArray,
    TimestampMicrosecondArray,
};
use arrow::buffer::OffsetBuffer;
use arrow::datatypes::{DataType, SchemaRef};
use arrow::error::ArrowError;
use tidetable_layout::cell::{CellSelection, GroupsWithout};
use tidetable_layout::schema::TimestampKind;
use tidetable_layout::{Block, Projection, StoredSchema};

use crate::error::SqlError;
use crate::scan::cells::{CellRef, cells_of_block};
use crate::schema::{RowView, cell_field, cell_fields};

/// Bytes of keys, qualifiers and values at which a batch is full.
const BATCH_BYTES: usize = 8 << 20;

/// Reads rows from blocks.
pub(crate) struct RowReader<'a> {
    schema: &'a StoredSchema,
    part: CellSelection,
    time: Option<Range<i64>>,
    columns: RowColumns,
    batch_rows: usize,
}

impl<'a> RowReader<'a> {
    /// Outputs `columns` of a view, with the schema `batch`. `may_empty_rows`: whether rules, tombstones or upserts may
    /// leave rows without cells.
    pub(crate) fn new(
        schema: &'a StoredSchema,
        view: &RowView,
        columns: &[usize],
        batch: SchemaRef,
        batch_rows: usize,
        may_empty_rows: bool,
    ) -> Self {
        let family = |column: &usize| Some(view.families.get(column.checked_sub(1)?)?.clone());
        let families: Vec<String> = columns.iter().filter_map(family).collect();
        let time = view.shown.is_bounded().then(|| view.shown.time.clone());
        let without = match (time.is_some(), may_empty_rows) {
            (true, _) => GroupsWithout::Timestamps,
            (false, true) => GroupsWithout::Rows,
            (false, false) => GroupsWithout::Nothing,
        };
        let part = CellSelection::new(schema, without, |_, family, _| families.iter().any(|own| own == family));
        Self { schema, part, time, columns: RowColumns::new(view, columns.contains(&0), families, batch), batch_rows }
    }

    /// The projection of blocks.
    pub(crate) fn projection(&self) -> &Projection {
        &self.part.projection
    }

    /// Calls `send` with each full batch; returns false once it does.
    pub(crate) fn block(
        &mut self,
        mut block: Block,
        send: &mut dyn FnMut(RecordBatch) -> bool,
    ) -> Result<bool, SqlError> {
        let Self { schema, part, time, columns, batch_rows } = self;
        let shown = time.as_ref().map(|time| rows_with_cells(schema, &block, time));
        let is_shown = |row: usize| shown.as_ref().is_none_or(|shown| shown.get(row) == Some(&true));
        block.groups = part.groups(std::mem::take(&mut block.groups));
        let block = block;
        let mut key = Vec::new();
        let (mut next, mut more) = (0, true);
        // Starts rows up to and including `last`; those before it have no cells of the projected families.
        let mut rows = |columns: &mut RowColumns, last: usize, more: &mut bool| -> Result<(), SqlError> {
            while next <= last {
                if columns.is_full(*batch_rows) {
                    *more = send(columns.take()?);
                }
                if is_shown(next) {
                    key.clear();
                    block.keys.write(next, &mut key);
                    columns.row(&key);
                }
                next += 1;
            }
            Ok(())
        };
        cells_of_block(&part.schema, &block, |cell| {
            if more {
                rows(columns, cell.row, &mut more)?;
                columns.cell(&cell);
            }
            Ok(())
        })?;
        if more && !block.keys.is_empty() {
            rows(columns, block.keys.len() - 1, &mut more)?;
        }
        Ok(more)
    }

    /// The last, partial batch.
    pub(crate) fn rest(mut self) -> Result<Option<RecordBatch>, SqlError> {
        if self.columns.rows == 0 { Ok(None) } else { self.columns.take().map(Some) }
    }
}

/// For each row, whether it has a cell in `time`. Every record has a cell.
fn rows_with_cells(schema: &StoredSchema, block: &Block, time: &Range<i64>) -> Vec<bool> {
    let mut shown = vec![false; block.keys.len()];
    for (group, stored) in schema.groups.iter().zip(&block.groups) {
        let Some(stored) = stored else { continue };
        // A joined cell has timestamp 0, not those of its records.
        let zero = group.timestamps == TimestampKind::Zero || group.keeps_duplicates();
        let times = if zero { None } else { stored.timestamps.as_deref() };
        for (row, shown) in shown.iter_mut().enumerate().filter(|(_, shown)| !**shown) {
            let records = stored.records(row);
            *shown = match times.and_then(|times| times.get(records.clone())) {
                Some(times) => times.iter().any(|at| time.contains(at)),
                None => !records.is_empty() && time.contains(&0),
            };
        }
    }
    shown
}

/// Builders of the row columns.
struct RowColumns {
    rows: usize,
    bytes: usize,
    key: Option<BinaryBuilder>,
    families: Vec<FamilyColumn>,
    /// Family of the last cell.
    last: usize,
    with_history: bool,
    time: Range<i64>,
    versions: usize,
    schema: SchemaRef,
}

/// Builder of a family's maps; with history the values are lists.
struct FamilyColumn {
    name: String,
    /// Entry offsets by row.
    starts: Vec<i32>,
    qualifiers: BinaryBuilder,
    /// Cell offsets by entry; with history only.
    lists: Vec<i32>,
    times: Vec<i64>,
    values: BinaryBuilder,
    /// The last qualifier of the row, and its count of cells kept.
    qualifier: Vec<u8>,
    kept: usize,
}

impl FamilyColumn {
    fn new(name: String) -> Self {
        Self {
            name,
            starts: Vec::new(),
            qualifiers: BinaryBuilder::new(),
            lists: Vec::new(),
            times: Vec::new(),
            values: BinaryBuilder::new(),
            qualifier: Vec::new(),
            kept: 0,
        }
    }

    fn entries(&self) -> i32 {
        arrow::array::ArrayBuilder::len(&self.qualifiers) as i32
    }

    fn row(&mut self) {
        self.starts.push(self.entries());
        self.kept = 0;
    }

    /// Adds a cell, unless `versions` newer ones were added; returns the bytes added.
    fn cell(&mut self, cell: &CellRef<'_>, with_history: bool, versions: usize) -> usize {
        if self.kept > 0 && self.qualifier == cell.qualifier {
            if self.kept >= versions {
                return 0;
            }
            self.kept += 1;
        } else {
            self.qualifiers.append_value(cell.qualifier);
            self.qualifier.clear();
            self.qualifier.extend_from_slice(cell.qualifier);
            self.kept = 1;
            if with_history {
                self.lists.push(self.times.len() as i32);
            }
        }
        if with_history {
            self.times.push(cell.timestamp);
        }
        self.values.append_value(cell.value);
        cell.qualifier.len() + cell.value.len()
    }

    /// Takes the maps built so far.
    fn take(&mut self, with_history: bool, kind: &DataType) -> Result<ArrayRef, ArrowError> {
        self.starts.push(self.entries());
        let starts = OffsetBuffer::new(std::mem::take(&mut self.starts).into());
        let values: BinaryArray = self.values.finish();
        let values: ArrayRef = if with_history {
            self.lists.push(self.times.len() as i32);
            let lists = OffsetBuffer::new(std::mem::take(&mut self.lists).into());
            let times = TimestampMicrosecondArray::from(std::mem::take(&mut self.times)).with_timezone("UTC");
            let cells = StructArray::try_new(cell_fields(), vec![Arc::new(times), Arc::new(values)], None)?;
            Arc::new(ListArray::try_new(cell_field(), lists, Arc::new(cells), None)?)
        } else {
            Arc::new(values)
        };
        let DataType::Map(entries, sorted) = kind else {
            return Err(ArrowError::SchemaError(format!("family {} is not a map", self.name)));
        };
        let DataType::Struct(fields) = entries.data_type() else {
            return Err(ArrowError::SchemaError(format!("family {} has no entries", self.name)));
        };
        let pairs = StructArray::try_new(fields.clone(), vec![Arc::new(self.qualifiers.finish()), values], None)?;
        Ok(Arc::new(MapArray::try_new(Arc::clone(entries), starts, pairs, None, *sorted)?))
    }
}

impl RowColumns {
    fn new(view: &RowView, with_key: bool, families: Vec<String>, schema: SchemaRef) -> Self {
        Self {
            rows: 0,
            bytes: 0,
            key: with_key.then(BinaryBuilder::new),
            families: families.into_iter().map(FamilyColumn::new).collect(),
            last: 0,
            with_history: view.shown.with_history,
            time: view.shown.time.clone(),
            versions: view.shown.versions,
            schema,
        }
    }

    fn is_full(&self, rows: usize) -> bool {
        self.rows >= rows || self.bytes >= BATCH_BYTES
    }

    fn row(&mut self, key: &[u8]) {
        self.rows += 1;
        self.bytes += key.len();
        if let Some(keys) = &mut self.key {
            keys.append_value(key);
        }
        self.families.iter_mut().for_each(FamilyColumn::row);
    }

    /// Adds a cell to the last row.
    fn cell(&mut self, cell: &CellRef<'_>) {
        if !self.time.contains(&cell.timestamp) {
            return;
        }
        if self.families.get(self.last).is_none_or(|family| family.name != cell.family) {
            let Some(found) = self.families.iter().position(|family| family.name == cell.family) else { return };
            self.last = found;
        }
        if let Some(family) = self.families.get_mut(self.last) {
            self.bytes += family.cell(cell, self.with_history, self.versions);
        }
    }

    /// Takes the batch built so far.
    fn take(&mut self) -> Result<RecordBatch, SqlError> {
        let wrong = |error: ArrowError| SqlError::Query(error.into());
        let mut columns: Vec<ArrayRef> = Vec::with_capacity(self.families.len() + 1);
        if let Some(keys) = &mut self.key {
            columns.push(Arc::new(keys.finish()));
        }
        let skip = columns.len();
        for (family, field) in self.families.iter_mut().zip(self.schema.fields().iter().skip(skip)) {
            columns.push(family.take(self.with_history, field.data_type()).map_err(wrong)?);
        }
        self.bytes = 0;
        let options = RecordBatchOptions::new().with_row_count(Some(std::mem::take(&mut self.rows)));
        RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options).map_err(wrong)
    }
}
