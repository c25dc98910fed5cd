//! Reads scan ranges: merged blocks become batches of records, aggregate states, cells or rows.

use std::sync::Arc;

use arrow::array::RecordBatch;
use datafusion::error::Result;
use datafusion::physical_expr_common::physical_expr::snapshot_physical_expr;
use tidetable_cells::CellScan;
use tidetable_layout::{Block, KeyRange, Projection};
use tidetable_store::ScanRange;
use tidetable_store::read::ALL_TIMES;
use tidetable_store::read::{Scalar, ScanOptions};

use crate::aggregate::spec::ScanAggregate;
use crate::conjunction::conjunction;
use crate::error::external;
use crate::grouping::exec::RunningAggregate;
use crate::grouping::newest::Newest;
use crate::grouping::stripe_stats::StripeTotals;
use crate::pushdown::pruning::RangePruner;
use crate::scan::cell_reader::{CellBatches, CellFilters};
use crate::scan::coalesce::Coalescer;
use crate::scan::records::{ReadRequest, RecordReader};
use crate::scan::rows::{RowBatches, row_scan};
use crate::scan::spec::{ScanOutput, ScanTask};
use crate::scan::sums::SumReader;
use crate::schema::RowView;
use crate::shared_scan::SharedScanPeriod;

/// The read of one DataFusion file, which stands for scan ranges.
pub(crate) struct ScanRangeReader {
    pub(crate) task: ScanTask,
    pub(crate) shared_scan: Option<SharedScanPeriod>,
    /// Name of that file, as messages show it.
    pub(crate) name: String,
    pub(crate) ranges: Vec<ScanRange>,
    pub(crate) options: ScanOptions,
    /// Collects the aggregates of stripes that are answered from their stats, without being read.
    pub(crate) totals: Option<Arc<StripeTotals>>,
}

impl ScanRangeReader {
    /// Calls `send` with each batch until it returns false.
    pub(crate) fn run(&self, send: &mut dyn FnMut(RecordBatch) -> bool) -> Result<()> {
        self.task.scan.snapshot.announce(&self.ranges);
        match (&self.task.scan.output, &self.task.aggregate) {
            (ScanOutput::Records { .. }, None) => self.records(send),
            (ScanOutput::Records { .. }, Some(aggregate)) => self.aggregate(aggregate, send),
            (ScanOutput::Cells, _) => self.cells(send),
            (ScanOutput::Rows(view), _) => self.rows(view, send),
        }
    }

    /// The blocks of all ranges, one range after the other.
    fn blocks<'a>(&'a self, projection: &Projection) -> Result<impl Iterator<Item = Result<Block>> + use<'a>> {
        let mut scans = Vec::with_capacity(self.ranges.len());
        for range in &self.ranges {
            scans.push(self.blocks_of(range, projection)?);
        }
        Ok(scans.into_iter().flatten())
    }

    fn blocks_of(
        &self,
        range: &ScanRange,
        projection: &Projection,
    ) -> Result<impl Iterator<Item = Result<Block>> + use<>> {
        let blocks = self.task.scan.snapshot.scan_with(range, projection, &self.options).map_err(external)?;
        Ok(blocks.map(|block| block.map_err(external)))
    }

    fn reader(&self, wanted: &ReadRequest<'_>) -> Result<RecordReader> {
        let ScanTask { scan, stored, filters, .. } = &self.task;
        RecordReader::new(scan, &self.name, stored, filters, wanted)
    }

    /// Sends records, from the shared scan if it has them.
    fn records(&self, send: &mut dyn FnMut(RecordBatch) -> bool) -> Result<()> {
        let ScanTask { scan, columns, batch_size, .. } = &self.task;
        let mut coalescer = Coalescer::new(*batch_size, scan.even);
        let shared = self.shared_scan.as_ref();

        if let Some(batches) =
            shared.and_then(|period| period.records(&self.task, &self.name, &self.ranges, &self.options))
        {
            for batch in &batches {
                if !coalescer.push(batch, send)? {
                    return Ok(());
                }
            }
            return coalescer.flush(send).map(|_| ());
        }

        let reader = self.reader(&ReadRequest { fields: columns, ..ReadRequest::default() })?;
        let output = reader.record_fields().places(columns)?;
        for range in &self.ranges {
            if self.is_ruled_out(range)? {
                continue;
            }
            for block in self.blocks_of(range, &reader.projection())? {
                let Some(found) = reader.read(block?)? else { continue };
                if !coalescer.push(&found.records.project(&output)?, send)? {
                    return Ok(());
                }
            }
        }

        coalescer.flush(send).map(|_| ())
    }

    /// Whether a dynamic filter, as it is now, rules out every event time of a range: the threshold of a top-k, which rises
    /// while other ranges are read.
    fn is_ruled_out(&self, range: &ScanRange) -> Result<bool> {
        let ScanTask { scan, stored, dynamic_filters, .. } = &self.task;
        let Some(time) = scan.snapshot.layout().event_time_field().filter(|_| !dynamic_filters.is_empty()) else {
            return Ok(false);
        };
        let filters = dynamic_filters.iter().cloned().map(snapshot_physical_expr).collect::<Result<Vec<_>>>()?;
        let pruner = conjunction(filters).and_then(|filter| RangePruner::new(filter, stored, time, false));
        let Some(pruner) = pruner else { return Ok(false) };
        let times = scan.snapshot.event_times(range);
        // Without bounds the event time may be null, too.
        if times == ALL_TIMES {
            return Ok(false);
        }
        Ok(pruner.rules_out((Scalar::Timestamp(times.start), Scalar::Timestamp(times.end.saturating_sub(1)))))
    }

    /// Whether rows have several records on average, so that their sums are fewer than their values. By the counts of the
    /// first SST, which open no file.
    fn has_wide_rows(&self) -> bool {
        let (snapshot, fields) = (&self.task.scan.snapshot, self.task.stored.fields().len());
        let columns =
            (0..fields).filter(|field| snapshot.layout().value_column(*field).is_some()).count().max(1) as u64;
        snapshot.version().ssts().next().is_none_or(|sst| sst.cells >= 2 * columns * sst.rows)
    }

    /// Sends aggregate states, from row sums or the newest records only where these suffice.
    fn aggregate(&self, aggregate: &ScanAggregate, send: &mut dyn FnMut(RecordBatch) -> bool) -> Result<()> {
        let ScanTask { scan, stored, filters, .. } = &self.task;
        let sums = match self.has_wide_rows() {
            true => SumReader::new(scan, &self.name, stored, filters, aggregate)?,
            false => None,
        };

        if let Some(sums) = sums {
            let (rows, records) = sums.fields();
            let running = RunningAggregate::new(aggregate, rows, records)?;
            return self.aggregate_blocks(
                running,
                &sums.projection(),
                |running, block| running.add_rows(&sums.read(&block)?),
                send,
            );
        }

        let time: Vec<usize> = aggregate.time.into_iter().collect();
        let reader = self.reader(&aggregate.wanted(&time))?;
        // One range has nothing that is older.
        if self.totals.is_none()
            && self.ranges.len() > 1
            && let Some(newest) = Newest::new(scan, &self.name, stored, filters, aggregate)?
        {
            return self.aggregate_newest(newest, &reader, aggregate, send);
        }

        let running = RunningAggregate::new(aggregate, reader.row_fields(), reader.record_fields())?;
        self.aggregate_blocks(
            running,
            &reader.projection(),
            |running, block| match reader.read(block)? {
                Some(found) => running.add(found),
                None => Ok(()),
            },
            send,
        )
    }

    /// Aggregates the newest records of each group. The ranges are ordered from newest to oldest: the first is read
    /// whole, of the others only the keys and then the rows that may hold a newer record than those seen.
    fn aggregate_newest(
        &self,
        mut newest: Newest,
        reader: &RecordReader,
        aggregate: &ScanAggregate,
        send: &mut dyn FnMut(RecordBatch) -> bool,
    ) -> Result<()> {
        let mut running = RunningAggregate::new(aggregate, reader.row_fields(), reader.record_fields())?;
        let (keys_only, projection) = (newest.projection(), reader.projection());

        for (at, range) in self.ranges.iter().enumerate() {
            let mut key_ranges = Vec::new();
            if at == 0 {
                key_ranges.push(range.keys.clone());
            } else {
                for block in self.blocks_of(range, &keys_only)? {
                    key_ranges.extend(newest.may_be_newer(&block?)?);
                }
                // Several files may have the same rows.
                key_ranges = KeyRange::disjoint(key_ranges);
            }

            for keys in key_ranges {
                for block in self.blocks_of(&ScanRange { keys, ..range.clone() }, &projection)? {
                    let Some(found) = reader.read(block?)? else { continue };
                    newest.saw(&found, (reader.row_fields(), reader.record_fields()))?;
                    running.add(found)?;
                    if running.is_full() && !self.send_states(&mut running, send)? {
                        return Ok(());
                    }
                }
            }
        }

        self.send_states(&mut running, send).map(|_| ())
    }

    /// Aggregates all blocks with `add`, then the stripes answered from their stats; sends the states.
    fn aggregate_blocks(
        &self,
        mut running: RunningAggregate<'_>,
        projection: &Projection,
        add: impl Fn(&mut RunningAggregate<'_>, Block) -> Result<()>,
        send: &mut dyn FnMut(RecordBatch) -> bool,
    ) -> Result<()> {
        for block in self.blocks(projection)? {
            add(&mut running, block?)?;
            if running.is_full() && !self.send_states(&mut running, send)? {
                return Ok(());
            }
        }
        if let Some(states) = self.totals.as_ref().map(|totals| totals.states()).transpose()?.flatten() {
            running.add_rows(&states)?;
        }
        self.send_states(&mut running, send).map(|_| ())
    }

    /// Sends the states accumulated so far, if there are any, and resets them. Returns whether more are wanted.
    fn send_states(
        &self,
        running: &mut RunningAggregate<'_>,
        send: &mut dyn FnMut(RecordBatch) -> bool,
    ) -> Result<bool> {
        Ok(match running.take()? {
            Some(batch) => send(batch.project(&self.task.columns)?),
            None => true,
        })
    }

    fn rows(&self, view: &RowView, send: &mut dyn FnMut(RecordBatch) -> bool) -> Result<()> {
        let ScanTask { scan, columns, schema, batch_size, .. } = &self.task;
        let cells = self.in_ranges(row_scan(scan.snapshot.clone(), view, columns));
        let mut rows = RowBatches::new(view, columns, Arc::clone(schema), *batch_size, send);
        cells.run(&mut rows).and_then(|()| rows.flush()).map(|_| ()).map_err(external)
    }

    fn cells(&self, send: &mut dyn FnMut(RecordBatch) -> bool) -> Result<()> {
        let ScanTask { scan, stored, filters, columns, schema, batch_size, .. } = &self.task;
        let filters = CellFilters::new(stored, filters)?;
        let cells = self.in_ranges(CellScan::new(scan.snapshot.clone()));
        let mut batches = CellBatches::new(columns, Arc::clone(schema), *batch_size, send);
        cells.run_filtered(&filters, &mut batches).and_then(|()| batches.flush()).map(|_| ()).map_err(external)
    }

    /// The scan of cells in the ranges of this read.
    fn in_ranges(&self, cells: CellScan) -> CellScan {
        CellScan { ranges: Some(self.ranges.clone()), options: self.options.clone(), ..cells }
    }
}
