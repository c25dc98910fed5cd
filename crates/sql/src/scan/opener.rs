//! Opening a slice: merged and decoded on a thread that may block, batches sent through a channel.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, BinaryBuilder, RecordBatch, RecordBatchOptions, StringBuilder, TimestampMicrosecondBuilder,
};
use arrow::datatypes::SchemaRef;
use datafusion::common::DataFusionError;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::{FileOpenFuture, FileOpener};
use datafusion::error::Result;
use datafusion::physical_expr::conjunction_opt;
use datafusion::physical_plan::PhysicalExpr;
use datafusion::physical_plan::metrics::{Count, ExecutionPlanMetricsSet, MetricBuilder};
use datafusion::physical_plan::stream::{RecordBatchReceiverStream, RecordBatchStreamAdapter};
use futures::{StreamExt, stream};
use tidetable_layout::{Block, Projection};
use tidetable_store::{RecordFilter, ScanCounts, ScanOptions, ScanRange, StripePruner, StripeStats};

use crate::aggregate::exec::{Running, ScanAggregate};
use crate::aggregate::newest::Newest;
use crate::aggregate::stripe_stats::StripeTotals;
use crate::catalog::rows::RowView;
use crate::error::{SqlError, external};
use crate::pushdown::pruning::FilterSkip;
use crate::scan::cells::{CellRef, cells_of_block};
use crate::scan::coalesce::Gather;
use crate::scan::file_groups::{Slices, is_little};
use crate::scan::late_filter::ValueKeep;
use crate::scan::records::{RecordReader, Wanted};
use crate::scan::rows::RowReader;
use crate::scan::source::{Shape, TableScan};
use crate::scan::sums::SumReader;

/// Batches decoded ahead of the query.
const AHEAD: usize = 2;

/// What is to be done with each slice.
#[derive(Clone)]
pub(crate) struct Work {
    pub(crate) scan: Arc<TableScan>,
    /// What slices hold.
    pub(crate) stored: SchemaRef,
    /// Expressions over it.
    pub(crate) filters: Vec<Arc<dyn PhysicalExpr>>,
    pub(crate) aggregate: Option<Arc<ScanAggregate>>,
    /// Columns of the table, or of what is summed up, to give, ascending.
    pub(crate) columns: Vec<usize>,
    /// The schema they make.
    pub(crate) schema: SchemaRef,
    pub(crate) batch_size: usize,
}

/// Opens the slices of one partition of a scan.
pub(crate) struct SliceOpener {
    work: Work,
    skip: Option<Arc<dyn StripePruner>>,
    keep: Option<Arc<dyn RecordFilter>>,
    metrics: Metrics,
}

impl SliceOpener {
    pub(crate) fn new(work: Work, metrics: &ExecutionPlanMetricsSet, partition: usize) -> Self {
        let metrics = Metrics::new(metrics, partition);
        let layout = work.scan.snapshot.layout();
        let filter = conjunction_opt(work.filters.iter().cloned());
        let skip = filter.and_then(|filter| FilterSkip::new(filter, layout, &work.stored));
        let of_records = matches!(work.scan.shape, Shape::Records { .. });
        let keep = ValueKeep::new(&work.filters, layout, &work.stored).filter(|_| of_records);
        Self {
            skip: skip.map(|skip| Arc::new(skip) as Arc<dyn StripePruner>),
            keep: keep.map(|keep| Arc::new(keep) as Arc<dyn RecordFilter>),
            work,
            metrics,
        }
    }
}

impl FileOpener for SliceOpener {
    fn open(&self, file: PartitionedFile) -> Result<FileOpenFuture> {
        let missing = || DataFusionError::Internal(format!("{} carries no slice", file.object_meta.location));
        let Slices(slices) = file.extension::<Slices>().ok_or_else(missing)?.clone();
        let name = file.object_meta.location.to_string();
        let counts = Arc::new(ScanCounts::default());
        let of_all = self.work.aggregate.as_ref().filter(|_| self.work.filters.is_empty());
        let totals = of_all.and_then(|all| StripeTotals::new(&self.work.scan, &self.work.stored, all)).map(Arc::new);
        let options = ScanOptions {
            counts: Some(Arc::clone(&counts)),
            skip: self.skip.clone(),
            keep: self.keep.clone(),
            know: totals.clone().map(|totals| totals as Arc<dyn StripeStats>),
        };
        let reading = Reading { work: self.work.clone(), name, slices, options, totals };
        let metrics = self.metrics.clone();
        let scan = &self.work.scan;
        // What others of a pass read may be waited for.
        if scan.pass.is_none() && is_little(&scan.snapshot, &reading.slices) {
            let schema = Arc::clone(&self.work.schema);
            return Ok(Box::pin(async move {
                let mut batches = Vec::new();
                let done = reading.run(&mut |batch| {
                    batches.push(Ok(batch));
                    true
                });
                metrics.add(&counts);
                batches.extend(done.err().map(Err));
                Ok(RecordBatchStreamAdapter::new(schema, stream::iter(batches)).boxed())
            }));
        }
        let mut builder = RecordBatchReceiverStream::builder(Arc::clone(&self.work.schema), AHEAD);
        let sender = builder.tx();
        Ok(Box::pin(async move {
            // The query dropped its end, so it wants no more: that is no error.
            builder.spawn_blocking(move || {
                let done = reading.run(&mut |batch| sender.blocking_send(Ok(batch)).is_ok());
                metrics.add(&counts);
                done
            });
            Ok(builder.build().boxed())
        }))
    }
}

/// What `EXPLAIN ANALYZE` tells of a scan.
#[derive(Clone)]
struct Metrics {
    files: Count,
    files_pruned: Count,
    stripes: Count,
    stripes_pruned: Count,
    pages_read: Count,
    bytes: Count,
    bytes_read: Count,
}

impl Metrics {
    fn new(metrics: &ExecutionPlanMetricsSet, partition: usize) -> Self {
        let count = |name: &'static str| MetricBuilder::new(metrics).counter(name, partition);
        Self {
            files: count("ssts"),
            files_pruned: count("ssts_pruned"),
            stripes: count("stripes"),
            stripes_pruned: count("stripes_pruned"),
            pages_read: count("pages_read"),
            bytes: count("bytes"),
            bytes_read: count("bytes_read"),
        }
    }

    fn add(&self, counts: &ScanCounts) {
        let add = |count: &Count, more: u64| count.add(usize::try_from(more).unwrap_or(usize::MAX));
        let ((files, files_pruned), (stripes, stripes_read)) = (counts.files(), counts.stripes());
        let (bytes, bytes_read) = counts.bytes();
        add(&self.files, files);
        add(&self.files_pruned, files_pruned);
        add(&self.stripes, stripes);
        add(&self.stripes_pruned, stripes.saturating_sub(stripes_read));
        add(&self.pages_read, counts.pages());
        add(&self.bytes, bytes);
        add(&self.bytes_read, bytes_read);
    }
}

/// Slices being read.
pub(crate) struct Reading {
    pub(crate) work: Work,
    /// For messages.
    pub(crate) name: String,
    pub(crate) slices: Vec<ScanRange>,
    pub(crate) options: ScanOptions,
    /// What is known of stripes that are not read.
    totals: Option<Arc<StripeTotals>>,
}

impl Reading {
    /// Calls `send` with each batch until it says that no more are wanted.
    fn run(&self, send: &mut dyn FnMut(RecordBatch) -> bool) -> Result<()> {
        match (&self.work.scan.shape, &self.work.aggregate) {
            (Shape::Records { .. }, None) => self.records(send),
            (Shape::Records { .. }, Some(aggregate)) => self.aggregate(aggregate, send),
            (Shape::Cells, _) => self.cells(send),
            (Shape::Rows(view), _) => self.rows(view, send),
        }
    }

    fn blocks<'a>(&'a self, projection: &Projection) -> Result<impl Iterator<Item = Result<Block>> + use<'a>> {
        let scan = |slice| self.blocks_of(slice, projection);
        Ok(self.slices.iter().map(scan).collect::<Result<Vec<_>>>()?.into_iter().flatten())
    }

    fn blocks_of(
        &self,
        slice: &ScanRange,
        projection: &Projection,
    ) -> Result<impl Iterator<Item = Result<Block>> + use<>> {
        let blocks = self.work.scan.snapshot.scan_with(slice, projection, &self.options).map_err(external)?;
        Ok(blocks.map(|block| block.map_err(external)))
    }

    fn reader(&self, wanted: &Wanted<'_>) -> Result<RecordReader> {
        let Work { scan, stored, filters, .. } = &self.work;
        RecordReader::new(scan, &self.name, stored, filters, wanted)
    }

    fn records(&self, send: &mut dyn FnMut(RecordBatch) -> bool) -> Result<()> {
        let Work { scan, columns, batch_size, .. } = &self.work;
        if let Some(read) = scan.pass.as_ref().and_then(|pass| pass.records(self)) {
            let mut gather = Gather::new(*batch_size, scan.even);
            for records in &read {
                if !gather.push(records, send)? {
                    return Ok(());
                }
            }
            return gather.send(send).map(|_| ());
        }
        let reader = self.reader(&Wanted { fields: columns, ..Wanted::default() })?;
        let unlike = || DataFusionError::Internal("a column of records is not read".to_owned());
        let place = |column: &usize| reader.record_fields().place(*column).ok_or_else(unlike);
        let wanted: Vec<usize> = columns.iter().map(place).collect::<Result<_>>()?;
        let mut gather = Gather::new(*batch_size, scan.even);
        for block in self.blocks(&reader.projection())? {
            let Some(found) = reader.read(block?)? else { continue };
            if !gather.push(&found.records.project(&wanted)?, send)? {
                return Ok(());
            }
        }
        gather.send(send).map(|_| ())
    }

    fn aggregate(&self, aggregate: &ScanAggregate, send: &mut dyn FnMut(RecordBatch) -> bool) -> Result<()> {
        let Work { scan, stored, filters, .. } = &self.work;
        if let Some(sums) = SumReader::new(scan, &self.name, stored, filters, aggregate)? {
            let (rows, records) = sums.fields();
            let running = Running::new(aggregate, rows, records)?;
            return self.sum_up(
                running,
                &sums.projection(),
                |running, block| running.add_rows(&sums.read(&block)?),
                send,
            );
        }
        let time: Vec<usize> = aggregate.time.into_iter().collect();
        let reader = self.reader(&aggregate.wanted(&time))?;
        if self.totals.is_none()
            && let Some(newest) = Newest::new(scan, &self.name, stored, filters, aggregate)?
        {
            return self.newest(newest, &reader, aggregate, send);
        }
        let running = Running::new(aggregate, reader.row_fields(), reader.record_fields())?;
        let add = |running: &mut Running<'_>, block| match reader.read(block)? {
            Some(found) => running.add(found),
            None => Ok(()),
        };
        self.sum_up(running, &reader.projection(), add, send)
    }

    /// Reads slices, the latest first, and of those after the first only what may be newer than what has been seen.
    fn newest(
        &self,
        mut newest: Newest,
        reader: &RecordReader,
        aggregate: &ScanAggregate,
        send: &mut dyn FnMut(RecordBatch) -> bool,
    ) -> Result<()> {
        let mut running = Running::new(aggregate, reader.row_fields(), reader.record_fields())?;
        let (keys, all) = (newest.projection(), reader.projection());
        for (at, slice) in self.slices.iter().enumerate() {
            let mut wanted = Vec::new();
            if at == 0 {
                wanted.push(slice.keys.clone());
            } else {
                for block in self.blocks_of(slice, &keys)? {
                    wanted.extend(newest.may_be_newer(&block?)?);
                }
            }
            for keys in wanted {
                for block in self.blocks_of(&ScanRange { keys, ..slice.clone() }, &all)? {
                    let Some(found) = reader.read(block?)? else { continue };
                    newest.saw(&found, (reader.row_fields(), reader.record_fields()))?;
                    running.add(found)?;
                    if running.is_full()
                        && let Some(batch) = running.take()?
                        && !send(batch.project(&self.work.columns)?)
                    {
                        return Ok(());
                    }
                }
            }
        }
        if let Some(batch) = running.take()? {
            send(batch.project(&self.work.columns)?);
        }
        Ok(())
    }

    /// Adds each block, and sends what they add up to.
    fn sum_up(
        &self,
        mut running: Running<'_>,
        projection: &Projection,
        add: impl Fn(&mut Running<'_>, Block) -> Result<()>,
        send: &mut dyn FnMut(RecordBatch) -> bool,
    ) -> Result<()> {
        let columns = &self.work.columns;
        for block in self.blocks(projection)? {
            add(&mut running, block?)?;
            if running.is_full()
                && let Some(batch) = running.take()?
                && !send(batch.project(columns)?)
            {
                return Ok(());
            }
        }
        if let Some(known) = self.totals.as_ref().map(|totals| totals.states()).transpose()?.flatten() {
            running.add_rows(&known)?;
        }
        if let Some(batch) = running.take()? {
            send(batch.project(columns)?);
        }
        Ok(())
    }

    fn rows(&self, view: &RowView, send: &mut dyn FnMut(RecordBatch) -> bool) -> Result<()> {
        let snapshot = &self.work.scan.snapshot;
        let schema = Arc::clone(&self.work.schema);
        let (columns, collects) = (&self.work.columns, snapshot.collects());
        let mut reader = RowReader::new(snapshot.schema(), view, columns, schema, self.work.batch_size, collects);
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
        let schema = self.work.scan.snapshot.schema();
        let mut columns = CellColumns::default();
        let mut more = true;
        for block in self.blocks(&Projection::all(schema))? {
            let block = block?;
            cells_of_block(schema, &block, |cell| {
                if !more {
                    return Ok(());
                }
                columns.push(cell, &self.work.columns);
                if columns.rows >= self.work.batch_size {
                    more = send(columns.take(&self.work.columns, &self.work.schema)?);
                }
                Ok(())
            })
            .map_err(external)?;
            if !more {
                return Ok(());
            }
        }
        if columns.rows > 0 {
            send(columns.take(&self.work.columns, &self.work.schema).map_err(external)?);
        }
        Ok(())
    }
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
