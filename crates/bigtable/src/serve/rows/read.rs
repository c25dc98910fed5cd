//! Reads the rows of a plan. Synchronous: it runs on a thread of its own, which waits where a client reads slowly.

use std::time::Duration;

use prost_types::Duration as ProtoDuration;
use tidetable_store::Snapshot;
use tonic::Status;

use crate::cells::CellBatch;
use crate::proto::data::{
    FullReadStatsView, ReadIterationStats, RequestLatencyStats, RequestStats, request_stats::StatsView,
};
use crate::serve::filter::{Evaluator, Picked, PickedRows};
use crate::serve::rows::chunks::{self, ChunkWriter};
use crate::serve::rows::codec::EncodedRows;
use crate::serve::rows::plan::RowsPlan;

/// Rows without a cell of the answer after which a client learns how far the scan has come.
const SILENT_ROWS: u64 = 20_000;

/// The client of a running read.
pub(crate) trait Reading {
    /// Sends a response, waiting until there is room; false if the client is gone.
    fn send(&mut self, rows: EncodedRows) -> bool;

    /// Why the read should stop, if it should.
    fn stopped(&self) -> Option<Status>;

    /// The time since the request came.
    fn elapsed(&self) -> Duration;
}

/// Sends the rows of `plan` to `reading`.
///
/// # Errors
/// If an SST cannot be read, a row does not fit into the memory of a request, or `reading` is stopped.
pub(crate) fn read(plan: &RowsPlan, snapshot: Snapshot, reading: &mut dyn Reading) -> Result<(), Status> {
    let labels = plan.filter.as_ref().map(|filter| filter.labels.clone());
    let mut writer = ChunkWriter::new(labels.unwrap_or_default());
    let mut evaluator = plan.filter.as_ref().map(|filter| Evaluator::new(filter, plan.list_memory()));
    let mut state = State::default();

    plan.scan(snapshot).run(&mut |batch| {
        let mut answer = Answer { batch: &batch, limit: plan.limit, writer: &mut writer, state: &mut state, reading };
        let goes_on = match &mut evaluator {
            Some(evaluator) => evaluator.run(&batch, &mut answer),
            None => answer.all(),
        };
        if !goes_on || !answer.goes_on() || !writer.take().is_none_or(|rows| reading.send(rows)) {
            return false;
        }
        match batch.rows().checked_sub(1) {
            Some(last) if plan.last_scanned && state.silent >= SILENT_ROWS => {
                state.silent = 0;
                reading.send(chunks::last_scanned(batch.key(last)))
            }
            _ => true,
        }
    })?;

    if let Some(status) = state.stopped {
        return Err(status);
    }
    if let Some(rows) = writer.take() {
        reading.send(rows);
    }
    if plan.stats {
        reading.send(chunks::stats(&statistics(state.counts, reading.elapsed())));
    }
    Ok(())
}

/// How far an answer has come.
#[derive(Default)]
struct State {
    counts: ReadIterationStats,
    /// Whether cells of the current row were written.
    is_in_row: bool,
    /// Rows without a cell of the answer since the last response.
    silent: u64,
    /// Why the read stopped.
    stopped: Option<Status>,
}

/// The answer to a request, as it comes of a batch.
struct Answer<'a> {
    batch: &'a CellBatch,
    /// Greatest number of rows; 0 if there is none.
    limit: u64,
    writer: &'a mut ChunkWriter,
    state: &'a mut State,
    reading: &'a mut dyn Reading,
}

impl Answer<'_> {
    /// Writes all cells of the batch.
    fn all(&mut self) -> bool {
        (0..self.batch.rows()).all(|row| {
            let cells = self.batch.cells(row);
            let picked = (cells.start as u32..cells.end as u32).map(Picked::one);
            self.write(row, picked, cells.len() as i64, true)
        })
    }

    /// Writes cells of a row, `count` with all copies.
    fn write(&mut self, row: usize, picked: impl Iterator<Item = Picked>, count: i64, ends: bool) -> bool {
        let Self { batch, limit, writer, state, reading } = self;
        let State { counts, is_in_row, silent, stopped } = state;
        // One cell may have more copies than a client ever waits for.
        let mut send = |rows| {
            *stopped = reading.stopped();
            stopped.is_none() && reading.send(rows)
        };

        *is_in_row |= count > 0;
        counts.cells_returned_count = counts.cells_returned_count.saturating_add(count);
        if !writer.cells(batch, row, picked, &mut send) {
            return false;
        }
        if !ends {
            return true;
        }

        counts.rows_seen_count += 1;
        counts.cells_seen_count += batch.cells(row).len() as i64;
        if !std::mem::take(is_in_row) {
            *silent += 1;
            return true;
        }
        *silent = 0;
        counts.rows_returned_count += 1;
        writer.end_row(batch, row, &mut send) && counts.rows_returned_count.cast_unsigned() != *limit
    }
}

impl PickedRows for Answer<'_> {
    fn goes_on(&mut self) -> bool {
        if self.state.stopped.is_none() {
            self.state.stopped = self.reading.stopped();
        }
        self.state.stopped.is_none()
    }

    fn cells(&mut self, row: usize, picked: &[Picked], ends: bool) -> bool {
        let copies = picked.iter().fold(0_u64, |sum, picked| sum.saturating_add(picked.copies));
        self.write(row, picked.iter().copied(), i64::try_from(copies).unwrap_or(i64::MAX), ends)
    }
}

fn statistics(counts: ReadIterationStats, elapsed: Duration) -> RequestStats {
    let latency = ProtoDuration {
        seconds: i64::try_from(elapsed.as_secs()).unwrap_or(i64::MAX),
        nanos: elapsed.subsec_nanos().cast_signed(),
    };
    RequestStats {
        stats_view: Some(StatsView::FullReadStatsView(FullReadStatsView {
            read_iteration_stats: Some(counts),
            request_latency_stats: Some(RequestLatencyStats { frontend_server_latency: Some(latency) }),
        })),
    }
}
