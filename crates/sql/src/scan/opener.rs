//! File opener of scan ranges: reads on a blocking thread and sends batches through a channel.

use std::sync::Arc;

use datafusion::common::DataFusionError;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::{FileOpenFuture, FileOpener};
use datafusion::error::Result;
use datafusion::physical_expr::conjunction_opt;
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use datafusion::physical_plan::stream::{RecordBatchReceiverStream, RecordBatchStreamAdapter};
use futures::{StreamExt, stream};
use tidetable_store::{RecordFilter, ScanCounts, ScanOptions, StripePruner, StripeStats};

use crate::aggregate::stripe_stats::StripeTotals;
use crate::pushdown::pruning::FilterSkip;
use crate::scan::file_groups::{Slices, is_little};
use crate::scan::late_filter::ValueKeep;
use crate::scan::metrics::ScanMetrics;
use crate::scan::read::Reading;
use crate::scan::spec::{Shape, Work};

/// Batches decoded ahead of the query.
const AHEAD: usize = 2;

/// Opens the scan ranges of one partition.
pub(crate) struct SliceOpener {
    work: Work,
    skip: Option<Arc<dyn StripePruner>>,
    keep: Option<Arc<dyn RecordFilter>>,
    metrics: ScanMetrics,
}

impl SliceOpener {
    pub(crate) fn new(work: Work, metrics: &ExecutionPlanMetricsSet, partition: usize) -> Self {
        let metrics = ScanMetrics::new(metrics, partition);
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
        // Not for shared scans, which may wait for other periods.
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
