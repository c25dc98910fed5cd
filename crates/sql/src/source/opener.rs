//! File opener of scan ranges: reads on a blocking thread and sends batches through a channel.

use std::sync::Arc;

use datafusion::common::internal_err;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::{FileOpenFuture, FileOpener};
use datafusion::error::Result;
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use datafusion::physical_plan::stream::{RecordBatchReceiverStream, RecordBatchStreamAdapter};
use futures::{StreamExt, stream};
use tidetable_cells::has_stored_timestamps;
use tidetable_store::read::{RecordFilter, ScanCounts, ScanOptions, StripePruner, StripeStats};

use crate::conjunction::conjunction;
use crate::grouping::stripe_stats::StripeTotals;
use crate::pushdown::pruning::FilterPruner;
use crate::scan::file_groups::{ScanRanges, is_small_scan};
use crate::scan::late_filter::ColumnFilter;
use crate::scan::metrics::ScanMetrics;
use crate::scan::spec::{ScanOutput, ScanTask};
use crate::shared_scan::SharedScanPeriod;
use crate::source::read::ScanRangeReader;

/// Batches that are decoded ahead of the query.
const AHEAD: usize = 2;

/// Opens the scan ranges of one partition of a scan.
pub(crate) struct ScanRangeOpener {
    task: ScanTask,
    shared_scan: Option<SharedScanPeriod>,
    pruner: Option<Arc<dyn StripePruner>>,
    record_filter: Option<Arc<dyn RecordFilter>>,
    metrics: ScanMetrics,
}

impl ScanRangeOpener {
    /// Prepares what the ranges of a partition have in common: the pruner of stripes and the filter of records.
    pub(crate) fn new(
        task: ScanTask,
        shared_scan: Option<SharedScanPeriod>,
        metrics: &ExecutionPlanMetricsSet,
        partition: usize,
    ) -> Self {
        let metrics = ScanMetrics::new(metrics, partition);
        let layout = task.scan.snapshot.layout();
        let filter = conjunction(task.filters.iter().cloned());
        let pruner = filter.and_then(|filter| match task.scan.output {
            ScanOutput::Cells if has_stored_timestamps(layout.stored()) => FilterPruner::of_cells(filter, &task.stored),
            ScanOutput::Records { .. } => FilterPruner::new(filter, layout, &task.stored),
            _ => None,
        });

        let of_records = matches!(task.scan.output, ScanOutput::Records { .. });
        let record_filter = ColumnFilter::new(&task.filters, layout, &task.stored).filter(|_| of_records);

        Self {
            pruner: pruner.map(|pruner| Arc::new(pruner) as Arc<dyn StripePruner>),
            record_filter: record_filter.map(|filter| Arc::new(filter) as Arc<dyn RecordFilter>),
            task,
            shared_scan,
            metrics,
        }
    }
}

impl FileOpener for ScanRangeOpener {
    fn open(&self, file: PartitionedFile) -> Result<FileOpenFuture> {
        let location = &file.object_meta.location;
        let Some(ScanRanges(ranges)) = file.extension::<ScanRanges>().cloned() else {
            return internal_err!("{location} has no scan ranges");
        };

        let name = location.to_string();
        let counts = Arc::new(ScanCounts::default());
        let of_all = self.task.aggregate.as_ref().filter(|_| self.task.filters.is_empty());
        let totals = of_all.and_then(|all| StripeTotals::new(&self.task.scan, &self.task.stored, all)).map(Arc::new);

        let options = ScanOptions {
            counts: Some(Arc::clone(&counts)),
            unordered: self.task.unordered,
            stripe_pruner: self.pruner.clone(),
            record_filter: self.record_filter.clone(),
            stripe_stats: totals.clone().map(|totals| totals as Arc<dyn StripeStats>),
        };
        let reading = ScanRangeReader {
            task: self.task.clone(),
            shared_scan: self.shared_scan.clone(),
            name,
            ranges,
            options,
            totals,
        };

        let metrics = self.metrics.clone();
        let scan = &self.task.scan;
        // Not for shared scans, which may wait for other periods.
        if self.shared_scan.is_none() && is_small_scan(&scan.snapshot, &reading.ranges) {
            let schema = Arc::clone(&self.task.schema);
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

        let mut builder = RecordBatchReceiverStream::builder(Arc::clone(&self.task.schema), AHEAD);
        let sender = builder.tx();
        Ok(Box::pin(async move {
            // A closed channel means that the query wants no more; not an error.
            builder.spawn_blocking(move || {
                let done = reading.run(&mut |batch| sender.blocking_send(Ok(batch)).is_ok());
                metrics.add(&counts);
                done
            });
            Ok(builder.build().boxed())
        }))
    }
}
