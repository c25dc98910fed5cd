//! Metrics of a scan in `EXPLAIN ANALYZE`.

use datafusion::physical_plan::metrics::{Count, ExecutionPlanMetricsSet, MetricBuilder};
use tidetable_store::read::ScanCounts;

const NAMES: [&str; 7] = ["ssts", "ssts_pruned", "stripes", "stripes_pruned", "pages_read", "bytes", "bytes_read"];

/// The counters of a scan that EXPLAIN ANALYZE shows, one for each of [`NAMES`].
#[derive(Clone)]
pub(crate) struct ScanMetrics([Count; NAMES.len()]);

impl ScanMetrics {
    pub(crate) fn new(metrics: &ExecutionPlanMetricsSet, partition: usize) -> Self {
        Self(NAMES.map(|name| MetricBuilder::new(metrics).counter(name, partition)))
    }

    pub(crate) fn add(&self, counts: &ScanCounts) {
        let ((ssts, ssts_pruned), (stripes, stripes_read)) = (counts.files(), counts.stripes());
        let (bytes, bytes_read) = counts.bytes();
        let stripes_pruned = stripes.saturating_sub(stripes_read);
        let more = [ssts, ssts_pruned, stripes, stripes_pruned, counts.pages(), bytes, bytes_read];
        for (count, more) in self.0.iter().zip(more) {
            count.add(usize::try_from(more).unwrap_or(usize::MAX));
        }
    }
}
