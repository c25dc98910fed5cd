//! Fills the gaps of sorted groups.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, Float64Array, RecordBatch, RecordBatchOptions, TimestampMicrosecondArray, UInt64Array,
};
use arrow::compute::{concat_batches, take};
use arrow::datatypes::{DataType, Float64Type, SchemaRef, TimestampMicrosecondType};
use arrow::row::{RowConverter, Rows, SortField};
use datafusion::common::{exec_err, internal_err};
use datafusion::error::Result;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::physical_expr::expressions::Column;
use futures::StreamExt;
use tidetable_functions::TimeGrid;

use crate::gapfill::filling::Filling;
use crate::gapfill::node::FillKind;

/// Rows of an output batch, unless one group has more.
const ROWS_OF_BATCH: usize = 8_192;
/// Most rows that one group is filled with.
const MAX_ROWS_OF_GROUP: usize = 50_000_000;

/// Reads sorted rows and gives out groups without gaps.
pub(super) struct Filler {
    input: SendableRecordBatchStream,
    filling: Filling,
    schema: SchemaRef,
    grid: TimeGrid,
    /// All starts of buckets, if the grid has both bounds.
    bounded: Option<Arc<[i64]>>,
    keys: Option<RowConverter>,
    /// Places of the keys and of the time among the columns.
    key_columns: Vec<usize>,
    time_column: usize,
    /// Batches of a group that may go on.
    open: Vec<RecordBatch>,
    /// Groups that are complete, and the first that is not given out.
    complete: Option<(Groups, usize)>,
    is_at_end: bool,
}

/// Whole groups in one batch.
struct Groups {
    batch: RecordBatch,
    ranges: Vec<Range<usize>>,
}

/// What an output row is made of.
struct OutputRow {
    /// A row of its group, from which it has the keys.
    key: u64,
    /// The row that it is, unless it is added.
    row: Option<u64>,
    time: Option<i64>,
}

impl Filler {
    pub(super) fn new(input: SendableRecordBatchStream, filling: Filling, schema: SchemaRef) -> Result<Self> {
        let place = |expr: &Arc<dyn datafusion::physical_plan::PhysicalExpr>| match expr.downcast_ref::<Column>() {
            Some(column) => Ok(column.index()),
            None => internal_err!("{expr} is no column of groups"),
        };
        let key_columns = filling.keys.iter().map(place).collect::<Result<Vec<usize>>>()?;
        let time_column = place(&filling.time)?;

        let Some(grid) = TimeGrid::new(&filling.grid.width, filling.grid.zone.as_deref())? else {
            return internal_err!("a grid without a width");
        };
        let of_input = input.schema();
        let fields: Vec<SortField> =
            key_columns.iter().map(|key| SortField::new(of_input.field(*key).data_type().clone())).collect();
        let keys = if fields.is_empty() { None } else { Some(RowConverter::new(fields)?) };
        let bounded = match (filling.grid.start, filling.grid.end) {
            (Some(start), Some(end)) => Some(starts(&grid, grid.start(start)?, end)?.into()),
            _ => None,
        };
        let (open, complete) = (Vec::new(), None);
        Ok(Self {
            input,
            filling,
            schema,
            grid,
            bounded,
            keys,
            key_columns,
            time_column,
            open,
            complete,
            is_at_end: false,
        })
    }

    /// The next rows; `None` at the end.
    ///
    /// # Errors
    /// Those of the input, and if a group has too many buckets.
    pub(super) async fn next(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            if let Some((groups, first)) = self.complete.take() {
                let (batch, next) = self.filled(&groups, first)?;
                if next < groups.ranges.len() {
                    self.complete = Some((groups, next));
                }
                return Ok(Some(batch));
            }
            if self.is_at_end {
                return Ok(None);
            }
            match self.input.next().await.transpose()? {
                Some(batch) => self.add(batch)?,
                None => {
                    self.is_at_end = true;
                    let last = std::mem::take(&mut self.open);
                    self.close(&last)?;
                }
            }
        }
    }

    /// Adds a batch; all its groups but the last are complete.
    fn add(&mut self, batch: RecordBatch) -> Result<()> {
        let ranges = self.ranges(&batch)?;
        let Some(last) = ranges.last().cloned() else { return Ok(()) };
        if last.start == 0 && self.continues(&batch)? {
            self.open.push(batch);
            return Ok(());
        }
        let mut whole = std::mem::take(&mut self.open);
        whole.push(batch.slice(0, last.start));
        self.open.push(batch.slice(last.start, last.len()));
        self.close(&whole)
    }

    /// Whether the first row of `batch` belongs to the open group, or there is none.
    fn continues(&self, batch: &RecordBatch) -> Result<bool> {
        let (Some(open), Some(keys)) = (self.open.last(), &self.keys) else { return Ok(true) };
        let key = |batch: &RecordBatch| {
            let columns: Vec<ArrayRef> = self.key_columns.iter().map(|key| batch.column(*key).slice(0, 1)).collect();
            keys.convert_columns(&columns)
        };
        Ok(key(open)?.row(0) == key(batch)?.row(0))
    }

    fn close(&mut self, batches: &[RecordBatch]) -> Result<()> {
        let batch = concat_batches(&self.input.schema(), batches)?;
        let ranges = self.ranges(&batch)?;
        // Without keys there is one group, also of no rows.
        if !ranges.is_empty() {
            self.complete = Some((Groups { batch, ranges }, 0));
        }
        Ok(())
    }

    /// The rows of each group.
    fn ranges(&self, batch: &RecordBatch) -> Result<Vec<Range<usize>>> {
        let rows = batch.num_rows();
        if rows == 0 {
            return Ok(Vec::new());
        }
        let Some(keys) = &self.keys else { return Ok(std::iter::once(0..rows).collect()) };
        let columns: Vec<ArrayRef> = self.key_columns.iter().map(|key| Arc::clone(batch.column(*key))).collect();
        let keys: Rows = keys.convert_columns(&columns)?;

        let (mut ranges, mut start) = (Vec::new(), 0);
        for row in 1..rows {
            if keys.row(row) != keys.row(row - 1) {
                ranges.push(start..row);
                start = row;
            }
        }
        ranges.push(start..rows);
        Ok(ranges)
    }

    /// A batch of groups from `first` on, and the group after them.
    fn filled(&self, groups: &Groups, first: usize) -> Result<(RecordBatch, usize)> {
        let times = groups.batch.column(self.time_column);
        let Some(times) = times.as_primitive_opt::<TimestampMicrosecondType>() else {
            return internal_err!("buckets of {}", times.data_type());
        };
        let (mut rows, mut ranges, mut next) = (Vec::new(), Vec::new(), first);
        while let Some(group) = groups.ranges.get(next).filter(|_| rows.len() < ROWS_OF_BATCH) {
            let start = rows.len();
            self.add_rows(times, group, &mut rows)?;
            ranges.push(start..rows.len());
            next += 1;
        }
        Ok((self.output(groups, times, &rows, &ranges)?, next))
    }

    /// Adds the rows of a group and those of its missing buckets, by time; a row without a time is the last.
    fn add_rows(
        &self,
        times: &TimestampMicrosecondArray,
        group: &Range<usize>,
        rows: &mut Vec<OutputRow>,
    ) -> Result<()> {
        let key = group.start as u64;
        let timed = group.clone().filter(|row| times.is_valid(*row));
        let (first, last) = (timed.clone().next(), timed.clone().next_back());
        let grid: Arc<[i64]> = match (&self.bounded, first, last) {
            (Some(bounded), ..) => Arc::clone(bounded),
            (None, Some(first), Some(last)) => {
                let bounds = &self.filling.grid;
                let start = bounds.start.map_or(Ok(times.value(first)), |start| self.grid.start(start))?;
                let end = bounds.end.unwrap_or(times.value(last).saturating_add(1));
                starts(&self.grid, start, end)?.into()
            }
            _ => Arc::new([]),
        };

        let mut grid = grid.iter().copied().peekable();
        let missing = |time: i64| OutputRow { key, row: None, time: Some(time) };
        for row in timed {
            let time = times.value(row);
            while let Some(earlier) = grid.next_if(|start| *start < time) {
                rows.push(missing(earlier));
            }
            grid.next_if_eq(&time);
            rows.push(OutputRow { key, row: Some(row as u64), time: Some(time) });
        }
        rows.extend(grid.map(missing));
        let without_time = group.clone().filter(|row| times.is_null(*row));
        rows.extend(without_time.map(|row| OutputRow { key, row: Some(row as u64), time: None }));
        Ok(())
    }

    fn output(
        &self,
        groups: &Groups,
        times: &TimestampMicrosecondArray,
        rows: &[OutputRow],
        ranges: &[Range<usize>],
    ) -> Result<RecordBatch> {
        let keys: UInt64Array = rows.iter().map(|row| Some(row.key)).collect();
        let sources: UInt64Array = rows.iter().map(|row| row.row).collect();
        let mut columns: Vec<ArrayRef> = Vec::with_capacity(self.schema.fields().len());
        for (at, column) in groups.batch.columns().iter().enumerate() {
            columns.push(if at == self.time_column {
                let starts: TimestampMicrosecondArray = rows.iter().map(|row| row.time).collect();
                Arc::new(starts.with_timezone_opt(times.timezone()))
            } else {
                let places = if self.key_columns.contains(&at) { &keys } else { &sources };
                take(column, places, None)?
            });
        }
        for (kind, value) in &self.filling.fills {
            let values = value.evaluate(&groups.batch)?.into_array(groups.batch.num_rows())?;
            columns.push(match kind {
                FillKind::Last => take(&values, &last_values(&values, rows, ranges), None)?,
                FillKind::Line => lines(&values, rows, ranges)?,
            });
        }
        let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
        Ok(RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options)?)
    }
}

/// The starts of buckets from `start` to before `end`.
fn starts(grid: &TimeGrid, start: i64, end: i64) -> Result<Vec<i64>> {
    let (mut starts, mut time) = (Vec::new(), start);
    while time < end {
        if starts.len() == MAX_ROWS_OF_GROUP {
            return exec_err!(
                "time_bucket_gapfill: more than {MAX_ROWS_OF_GROUP} buckets; write a wider one, or bounds in WHERE"
            );
        }
        starts.push(time);
        let next = grid.next(time)?;
        if next <= time {
            break;
        }
        time = next;
    }
    Ok(starts)
}

/// For each row, the row of its group with the last value up to it.
fn last_values(values: &ArrayRef, rows: &[OutputRow], ranges: &[Range<usize>]) -> UInt64Array {
    let nulls = values.logical_nulls();
    let is_known = |row: u64| nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row as usize));
    let mut places = Vec::with_capacity(rows.len());
    for range in ranges {
        let mut last = None;
        for row in rows.get(range.clone()).unwrap_or_default() {
            if row.time.is_none() {
                places.push(row.row);
                continue;
            }
            last = row.row.filter(|row| is_known(*row)).or(last);
            places.push(last);
        }
    }
    UInt64Array::from(places)
}

/// Values on the lines between those that are known.
fn lines(values: &ArrayRef, rows: &[OutputRow], ranges: &[Range<usize>]) -> Result<ArrayRef> {
    if *values.data_type() != DataType::Float64 {
        return internal_err!("a line through {}", values.data_type());
    }
    let values = values.as_primitive::<Float64Type>();
    let known = |row: &OutputRow| {
        let row = row.row? as usize;
        values.is_valid(row).then(|| values.value(row))
    };

    let mut filled: Vec<Option<f64>> = rows.iter().map(known).collect();
    for range in ranges {
        let mut before: Option<(usize, i64, f64)> = None;
        for at in range.clone() {
            let Some((time, value)) = rows.get(at).and_then(|row| Some((row.time?, known(row)?))) else { continue };
            if let Some((since, start, from)) = before {
                for between in since + 1..at {
                    if let (Some(slot), Some(Some(now))) =
                        (filled.get_mut(between), rows.get(between).map(|row| row.time))
                    {
                        let share = (now - start) as f64 / (time - start) as f64;
                        *slot = Some(from + (value - from) * share);
                    }
                }
            }
            before = Some((at, time, value));
        }
    }
    Ok(Arc::new(Float64Array::from(filled)))
}
