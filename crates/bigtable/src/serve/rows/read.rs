//! Reads the rows of a plan. Synchronous: it runs on a thread of its own, which waits where a client reads slowly.

use std::time::Duration;

use prost_types::Duration as ProtoDuration;
use tidetable_store::Snapshot;
use tonic::Status;

use crate::proto::data::{
    FullReadStatsView, ReadIterationStats, RequestLatencyStats, RequestStats, request_stats::StatsView,
};
use crate::serve::filter::{Evaluator, Picked};
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
/// If an SST cannot be read, or `reading` is stopped.
pub(crate) fn read(plan: &RowsPlan, snapshot: Snapshot, reading: &mut dyn Reading) -> Result<(), Status> {
    let mut writer = ChunkWriter::new(plan.labels.clone());
    let mut evaluator = plan.filter.as_ref().map(Evaluator::new);
    let mut counts = ReadIterationStats::default();
    let mut silent = 0;
    let mut stopped = None;
    plan.scan(snapshot).run(&mut |batch| {
        stopped = reading.stopped();
        if stopped.is_some() {
            return false;
        }
        let picks = evaluator.as_mut().map(|evaluator| evaluator.picks(&batch));
        for row in 0..batch.rows() {
            let all = batch.cells(row);
            counts.rows_seen_count += 1;
            counts.cells_seen_count += all.len() as i64;
            let goes_on = match &picks {
                Some(picks) => {
                    let picked = picks.row(row);
                    if picked.is_empty() {
                        silent += 1;
                        continue;
                    }
                    counts.cells_returned_count += picked.len() as i64;
                    writer.row(&batch, row, picked.iter().copied(), &mut |rows| reading.send(rows))
                }
                None => {
                    counts.cells_returned_count += all.len() as i64;
                    let picked =
                        (all.start as u32..all.end as u32).map(|cell| Picked { cell, label: None, stripped: false });
                    writer.row(&batch, row, picked, &mut |rows| reading.send(rows))
                }
            };
            silent = 0;
            counts.rows_returned_count += 1;
            if !goes_on || counts.rows_returned_count.cast_unsigned() == plan.limit {
                return false;
            }
        }
        if !writer.take().is_none_or(|rows| reading.send(rows)) {
            return false;
        }
        match batch.rows().checked_sub(1) {
            Some(last) if plan.last_scanned && silent >= SILENT_ROWS => {
                silent = 0;
                reading.send(chunks::last_scanned(batch.key(last)))
            }
            _ => true,
        }
    })?;
    if let Some(status) = stopped {
        return Err(status);
    }
    if let Some(rows) = writer.take() {
        reading.send(rows);
    }
    if plan.stats {
        reading.send(chunks::stats(&statistics(counts, reading.elapsed())));
    }
    Ok(())
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
