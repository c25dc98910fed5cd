//! Reads scan ranges: merged blocks become batches of records, aggregate states, cells or rows.

use std::sync::Arc;

use arrow::array::RecordBatch;
use datafusion::error::Result;
use tidetable_layout::{Block, Projection};
use tidetable_store::{ScanOptions, ScanRange};

use crate::aggregate::exec::Running;
use crate::aggregate::newest::Newest;
use crate::aggregate::spec::ScanAggregate;
use crate::aggregate::stripe_stats::StripeTotals;
use crate::catalog::schema::RowView;
use crate::error::external;
use crate::scan::cells::{CellColumns, cells_of_block};
use crate::scan::coalesce::Gather;
use crate::scan::records::{RecordReader, Wanted};
use crate::scan::rows::RowReader;
use crate::scan::spec::{Shape, Work};
use crate::scan::sums::SumReader;

/// A read of scan ranges.
pub(crate) struct Reading {
    pub(crate) work: Work,
    /// Name for messages.
    pub(crate) name: String,
    pub(crate) slices: Vec<ScanRange>,
    pub(crate) options: ScanOptions,
    /// Totals of stripes answered from their stats.
    pub(crate) totals: Option<Arc<StripeTotals>>,
}

impl Reading {
    /// Calls `send` with each batch until it returns false.
    pub(crate) fn run(&self, send: &mut dyn FnMut(RecordBatch) -> bool) -> Result<()> {
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
        let mut gather = Gather::new(*batch_size, scan.even);
        let shared = scan.pass.as_ref();
        if let Some(read) = shared.and_then(|pass| pass.records(&self.work, &self.name, &self.slices, &self.options)) {
            for records in &read {
                if !gather.push(records, send)? {
                    return Ok(());
                }
            }
            return gather.send(send).map(|_| ());
        }
        let reader = self.reader(&Wanted { fields: columns, ..Wanted::default() })?;
        let wanted = reader.record_fields().places(columns)?;
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

    /// Reads ranges newest first; of those after the first, only rows that may be newer than the records seen.
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
                    if running.is_full() && !self.send_states(&mut running, send)? {
                        return Ok(());
                    }
                }
            }
        }
        self.send_states(&mut running, send).map(|_| ())
    }

    /// Aggregates blocks and sends the states.
    fn sum_up(
        &self,
        mut running: Running<'_>,
        projection: &Projection,
        add: impl Fn(&mut Running<'_>, Block) -> Result<()>,
        send: &mut dyn FnMut(RecordBatch) -> bool,
    ) -> Result<()> {
        for block in self.blocks(projection)? {
            add(&mut running, block?)?;
            if running.is_full() && !self.send_states(&mut running, send)? {
                return Ok(());
            }
        }
        if let Some(known) = self.totals.as_ref().map(|totals| totals.states()).transpose()?.flatten() {
            running.add_rows(&known)?;
        }
        self.send_states(&mut running, send).map(|_| ())
    }

    /// Sends the states of the groups so far, if there are any; whether more are wanted.
    fn send_states(&self, running: &mut Running<'_>, send: &mut dyn FnMut(RecordBatch) -> bool) -> Result<bool> {
        Ok(match running.take()? {
            Some(batch) => send(batch.project(&self.work.columns)?),
            None => true,
        })
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
