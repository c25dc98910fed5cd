//! `rows.T`: the rows of a cell scan as batches, with a map for each family.

use std::sync::Arc;

use arrow::array::{
    ArrayBuilder, ArrayRef, BinaryBuilder, Int64Array, ListArray, MapArray, RecordBatch, RecordBatchOptions,
    StructArray, TimestampMicrosecondArray,
};
use arrow::buffer::OffsetBuffer;
use arrow::datatypes::{DataType, SchemaRef};
use arrow::error::ArrowError;
use tidetable_cells::{BlockCell, CellRow, CellScan, ColumnName, RowSink, Rows};
use tidetable_store::Snapshot;

use crate::error::SqlError;
use crate::schema::{Family, RowView, cell_field, cell_fields};

/// Bytes of keys, qualifiers and values at which a batch is full.
const BATCH_BYTES: usize = 8 << 20;

/// The scan of the cells that `columns` of a view show.
pub(crate) fn row_scan(snapshot: Snapshot, view: &RowView, columns: &[usize]) -> CellScan {
    let families = families(view, columns);
    let shown = &view.shown;
    CellScan {
        rows: if shown.is_bounded() { Rows::WithinTimes } else { Rows::All },
        columns: Some(Arc::new(move |family: &str, _: Option<&[u8]>| families.iter().any(|own| own.name == family))),
        times: shown.time.clone(),
        newest: shown.versions,
        ..CellScan::new(snapshot)
    }
}

/// The families among the columns of a view; column 0 is the key, the others are families in order.
fn families(view: &RowView, columns: &[usize]) -> Vec<Family> {
    columns.iter().filter_map(|column| view.families.get(column.checked_sub(1)?).cloned()).collect()
}

/// Builder of a family's maps; with history the values are lists.
struct FamilyColumn {
    family: Family,
    /// For each row the first of its entries.
    starts: Vec<i32>,
    qualifiers: BinaryBuilder,
    /// For each entry the first of its cells; with history only.
    lists: Vec<i32>,
    times: Vec<i64>,
    /// Values of a family of bytes.
    values: BinaryBuilder,
    /// Values of a family of numbers.
    numbers: Vec<i64>,
}

impl FamilyColumn {
    fn new(family: Family) -> Self {
        Self {
            family,
            starts: Vec::new(),
            qualifiers: BinaryBuilder::new(),
            lists: Vec::new(),
            times: Vec::new(),
            values: BinaryBuilder::new(),
            numbers: Vec::new(),
        }
    }

    /// Adds the value of a cell.
    fn value(&mut self, bytes: &[u8]) -> Result<(), SqlError> {
        if !self.family.is_number {
            self.values.append_value(bytes);
            return Ok(());
        }
        let Ok(number) = bytes.try_into() else {
            let error = ArrowError::InvalidArgumentError(format!(
                "a cell of the aggregate family {} has {} bytes, not 8",
                self.family.name,
                bytes.len()
            ));
            return Err(SqlError::Query(error.into()));
        };
        self.numbers.push(i64::from_be_bytes(number));
        Ok(())
    }

    fn begin_row(&mut self) {
        self.starts.push(self.qualifiers.len() as i32);
    }

    fn begin_entry(&mut self, qualifier: &[u8], with_history: bool) {
        self.qualifiers.append_value(qualifier);
        if with_history {
            self.lists.push(self.times.len() as i32);
        }
    }

    /// Takes the maps that were built so far, of the type `kind`.
    fn take(&mut self, with_history: bool, kind: &DataType) -> Result<ArrayRef, ArrowError> {
        self.begin_row();
        let starts = OffsetBuffer::new(std::mem::take(&mut self.starts).into());

        let values: ArrayRef = match self.family.is_number {
            true => Arc::new(Int64Array::from(std::mem::take(&mut self.numbers))),
            false => Arc::new(self.values.finish()),
        };
        let values: ArrayRef = if with_history {
            let kind = self.family.value_type();
            self.lists.push(self.times.len() as i32);
            let lists = OffsetBuffer::new(std::mem::take(&mut self.lists).into());
            let times = TimestampMicrosecondArray::from(std::mem::take(&mut self.times)).with_timezone("UTC");
            let cells = StructArray::try_new(cell_fields(kind.clone()), vec![Arc::new(times), values], None)?;
            Arc::new(ListArray::try_new(cell_field(kind), lists, Arc::new(cells), None)?)
        } else {
            values
        };

        let DataType::Map(entries, sorted) = kind else {
            return Err(ArrowError::SchemaError(format!("family {} is not a map", self.family.name)));
        };
        let DataType::Struct(fields) = entries.data_type() else {
            return Err(ArrowError::SchemaError(format!("family {} has no entries", self.family.name)));
        };

        let pairs = StructArray::try_new(fields.clone(), vec![Arc::new(self.qualifiers.finish()), values], None)?;
        Ok(Arc::new(MapArray::try_new(Arc::clone(entries), starts, pairs, None, *sorted)?))
    }
}

/// Builds batches of rows, a map for each family, and sends them.
pub(crate) struct RowBatches<'a> {
    rows: usize,
    bytes: usize,
    /// Row keys, if the query reads them.
    keys: Option<BinaryBuilder>,
    families: Vec<FamilyColumn>,
    /// Index in `families` of each column of the current block.
    family_of: Vec<Option<usize>>,
    with_history: bool,
    schema: SchemaRef,
    batch_rows: usize,
    send: &'a mut dyn FnMut(RecordBatch) -> bool,
    /// The row key or value that is being written.
    scratch: Vec<u8>,
}

impl<'a> RowBatches<'a> {
    /// Sends `columns` of a view, as batches of at most `batch_rows` rows with this schema.
    pub(crate) fn new(
        view: &RowView,
        columns: &[usize],
        schema: SchemaRef,
        batch_rows: usize,
        send: &'a mut dyn FnMut(RecordBatch) -> bool,
    ) -> Self {
        Self {
            rows: 0,
            bytes: 0,
            keys: columns.contains(&0).then(BinaryBuilder::new),
            families: families(view, columns).into_iter().map(FamilyColumn::new).collect(),
            family_of: Vec::new(),
            with_history: view.shown.with_history,
            schema,
            batch_rows,
            send,
            scratch: Vec::new(),
        }
    }

    /// Sends the rows so far. Returns false if no more are wanted.
    pub(crate) fn flush(&mut self) -> Result<bool, SqlError> {
        if self.rows == 0 {
            return Ok(true);
        }
        let batch = self.take().map_err(|error| SqlError::Query(error.into()))?;
        Ok((self.send)(batch))
    }

    /// Takes the batch that was built so far.
    fn take(&mut self) -> Result<RecordBatch, ArrowError> {
        let mut columns: Vec<ArrayRef> = Vec::with_capacity(self.families.len() + 1);
        if let Some(keys) = &mut self.keys {
            columns.push(Arc::new(keys.finish()));
        }
        let skip = columns.len();
        for (family, field) in self.families.iter_mut().zip(self.schema.fields().iter().skip(skip)) {
            columns.push(family.take(self.with_history, field.data_type())?);
        }
        self.bytes = 0;
        let options = RecordBatchOptions::new().with_row_count(Some(std::mem::take(&mut self.rows)));
        RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options)
    }

    /// Adds a cell to the last row; `is_newest`: whether it is the first of its column.
    fn cell(&mut self, row: &mut CellRow<'_, '_>, cell: &BlockCell, is_newest: bool) -> Result<(), SqlError> {
        let family = self.family_of.get(cell.name as usize).copied().flatten();
        let Some(family) = family.and_then(|family| self.families.get_mut(family)) else { return Ok(()) };
        let qualifier = row.column(cell).qualifier;
        if is_newest {
            family.begin_entry(qualifier, self.with_history);
        }
        if self.with_history {
            family.times.push(cell.timestamp);
        }
        self.scratch.clear();
        row.write_value(cell, &mut self.scratch);
        family.value(&self.scratch)?;
        self.bytes += qualifier.len() + self.scratch.len();
        Ok(())
    }
}

impl RowSink for RowBatches<'_> {
    type Error = SqlError;

    fn begin(&mut self, columns: &[ColumnName<'_>]) -> Result<(), SqlError> {
        let families = &self.families;
        let mut family_of = Vec::with_capacity(columns.len());
        for column in columns {
            family_of.push(families.iter().position(|family| family.family.name == column.family));
        }
        self.family_of = family_of;
        Ok(())
    }

    fn row(&mut self, row: &mut CellRow<'_, '_>) -> Result<bool, SqlError> {
        let is_full = self.rows >= self.batch_rows || self.bytes >= BATCH_BYTES;
        if is_full && !self.flush()? {
            return Ok(false);
        }

        self.rows += 1;
        self.scratch.clear();
        row.write_key(&mut self.scratch);
        self.bytes += self.scratch.len();
        if let Some(keys) = &mut self.keys {
            keys.append_value(&self.scratch);
        }
        self.families.iter_mut().for_each(FamilyColumn::begin_row);

        let mut column = None;
        for cell in row.cells() {
            let is_newest = column.replace(cell.name) != Some(cell.name);
            self.cell(row, cell, is_newest)?;
        }
        Ok(true)
    }
}
