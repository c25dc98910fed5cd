//! Opening a slice: merged and decoded on a thread that may block, batches sent through a channel.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BinaryBuilder, BooleanArray, RecordBatch, RecordBatchOptions, StringBuilder,
    TimestampMicrosecondBuilder,
};
use arrow::compute::filter_record_batch;
use arrow::datatypes::{SchemaRef, TimestampMicrosecondType};
use datafusion::common::DataFusionError;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::{FileOpenFuture, FileOpener};
use datafusion::error::Result;
use datafusion::physical_plan::metrics::{Count, ExecutionPlanMetricsSet, MetricBuilder};
use datafusion::physical_plan::stream::RecordBatchReceiverStream;
use futures::StreamExt;
use tidetable_layout::{Block, Projection};
use tidetable_store::Slice;

use crate::cells::{CellRef, cells_of_block};
use crate::error::{SqlError, external};
use crate::row_scan::RowReader;
use crate::row_table::RowView;
use crate::source::{Shape, TableScan};

/// Batches decoded ahead of the query.
const AHEAD: usize = 2;

/// Opens the slices of one partition of a scan.
pub(crate) struct SliceOpener {
    scan: Arc<TableScan>,
    /// Columns of the table to give, ascending.
    columns: Vec<usize>,
    /// The schema they make.
    schema: SchemaRef,
    batch_size: usize,
    blocks: Count,
}

impl SliceOpener {
    pub(crate) fn new(
        scan: Arc<TableScan>,
        columns: Vec<usize>,
        schema: SchemaRef,
        batch_size: usize,
        metrics: &ExecutionPlanMetricsSet,
        partition: usize,
    ) -> Self {
        let blocks = MetricBuilder::new(metrics).counter("blocks_read", partition);
        Self { scan, columns, schema, batch_size, blocks }
    }
}

impl FileOpener for SliceOpener {
    fn open(&self, file: PartitionedFile) -> Result<FileOpenFuture> {
        let missing = || DataFusionError::Internal(format!("{} carries no slice", file.object_meta.location));
        let slice = file.extension::<Slice>().ok_or_else(missing)?.clone();
        let reading = Reading {
            scan: Arc::clone(&self.scan),
            name: file.object_meta.location.to_string(),
            slice,
            columns: self.columns.clone(),
            schema: Arc::clone(&self.schema),
            batch_size: self.batch_size,
            blocks: self.blocks.clone(),
        };
        let mut builder = RecordBatchReceiverStream::builder(Arc::clone(&self.schema), AHEAD);
        let sender = builder.tx();
        Ok(Box::pin(async move {
            // The query dropped its end, so it wants no more: that is no error.
            builder.spawn_blocking(move || reading.run(&mut |batch| sender.blocking_send(Ok(batch)).is_ok()));
            Ok(builder.build().boxed())
        }))
    }
}

/// One slice being read.
struct Reading {
    scan: Arc<TableScan>,
    name: String,
    slice: Slice,
    columns: Vec<usize>,
    schema: SchemaRef,
    batch_size: usize,
    blocks: Count,
}

impl Reading {
    /// Calls `send` with each batch until it says that no more are wanted.
    fn run(&self, send: &mut dyn FnMut(RecordBatch) -> bool) -> Result<()> {
        match &self.scan.shape {
            Shape::Records { within } => self.records(within.as_ref(), send),
            Shape::Cells => self.cells(send),
            Shape::Rows(view) => self.rows(view, send),
        }
    }

    fn blocks<'a>(&'a self, projection: &Projection) -> Result<impl Iterator<Item = Result<Block>> + use<'a>> {
        let blocks = self.scan.snapshot.scan(&self.slice, projection).map_err(external)?;
        Ok(blocks.inspect(|_| self.blocks.add(1)).map(|block| block.map_err(external)))
    }

    fn records(&self, within: Option<&(usize, Range<i64>)>, send: &mut dyn FnMut(RecordBatch) -> bool) -> Result<()> {
        let layout = self.scan.snapshot.layout();
        let mut fields = self.columns.clone();
        let time_at = within.map(|(time, range)| {
            let at = fields.iter().position(|field| field == time).unwrap_or_else(|| {
                fields.push(*time);
                fields.len() - 1
            });
            (at, range)
        });
        let wanted: Vec<usize> = (0..self.columns.len()).collect();
        for block in self.blocks(&layout.projection(&fields))? {
            let decoded = layout.decode(block?, &fields).map_err(|source| {
                let table = self.scan.snapshot.table().name().to_owned();
                external(SqlError::Decode { table, slice: self.name.clone(), source })
            })?;
            let kept = match &time_at {
                Some((at, range)) => keep(&decoded, *at, range)?.project(&wanted)?,
                None => decoded,
            };
            let mut start = 0;
            while start < kept.num_rows() {
                let rows = self.batch_size.min(kept.num_rows() - start);
                if !send(kept.slice(start, rows)) {
                    return Ok(());
                }
                start += rows;
            }
        }
        Ok(())
    }

    fn rows(&self, view: &RowView, send: &mut dyn FnMut(RecordBatch) -> bool) -> Result<()> {
        let snapshot = &self.scan.snapshot;
        let schema = Arc::clone(&self.schema);
        let (columns, collects) = (&self.columns, snapshot.collects());
        let mut reader = RowReader::new(snapshot.schema(), view, columns, schema, self.batch_size, collects);
        for block in self.blocks(reader.projection())? {
            if !reader.block(block?, send).map_err(external)? {
                return Ok(());
            }
        }
        if let Some(batch) = reader.rest().map_err(external)? {
            send(batch);
        }
        Ok(())
    }

    fn cells(&self, send: &mut dyn FnMut(RecordBatch) -> bool) -> Result<()> {
        let schema = self.scan.snapshot.schema();
        let mut columns = CellColumns::default();
        let mut more = true;
        for block in self.blocks(&Projection::all(schema))? {
            let block = block?;
            cells_of_block(schema, &block, |cell| {
                if !more {
                    return Ok(());
                }
                columns.push(cell, &self.columns);
                if columns.rows >= self.batch_size {
                    more = send(columns.take(&self.columns, &self.schema)?);
                }
                Ok(())
            })
            .map_err(external)?;
            if !more {
                return Ok(());
            }
        }
        if columns.rows > 0 {
            send(columns.take(&self.columns, &self.schema).map_err(external)?);
        }
        Ok(())
    }
}

/// The records whose time, column `at`, lies in `range`.
fn keep(batch: &RecordBatch, at: usize, range: &Range<i64>) -> Result<RecordBatch> {
    let unlike = || DataFusionError::Internal("the event time is no timestamp".to_owned());
    let column = batch.columns().get(at).ok_or_else(unlike)?;
    let times = column.as_primitive_opt::<TimestampMicrosecondType>().ok_or_else(unlike)?;
    let all_inside = times.null_count() == 0 && times.values().iter().all(|time| range.contains(time));
    if all_inside {
        return Ok(batch.clone());
    }
    let inside: BooleanArray = times.iter().map(|time| Some(time.is_some_and(|time| range.contains(&time)))).collect();
    Ok(filter_record_batch(batch, &inside)?)
}

/// Columns of cells under construction; those not asked for stay empty.
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

    /// The batch so far; the next one starts.
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
