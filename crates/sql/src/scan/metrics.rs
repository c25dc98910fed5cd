//! Metrics of a scan in `EXPLAIN ANALYZE`.

use datafusion::physical_plan::metrics::{Count, ExecutionPlanMetricsSet, MetricBuilder};
use tidetable_store::ScanCounts;

#[derive(Clone)]
pub(crate) struct ScanMetrics {
    files: Count,
    files_pruned: Count,
    stripes: Count,
    stripes_pruned: Count,
    pages_read: Count,
    bytes: Count,
    bytes_read: Count,
}

impl ScanMetrics {
    pub(crate) fn new(metrics: &ExecutionPlanMetricsSet, partition: usize) -> Self {
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

    pub(crate) fn add(&self, counts: &ScanCounts) {
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
