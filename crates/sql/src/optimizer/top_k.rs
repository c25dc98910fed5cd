//! Physical optimizer rule for top-k in scan order: merges sorted scan ranges instead of sorting.
//!
//! Windows share keys, so a scan that reads them in sequence has no order. Each scan range alone is sorted: they are
//! merged, and each is read only as far as the limit needs.

use std::sync::Arc;

use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::{FileGroup, FileScanConfigBuilder};
use datafusion::datasource::source::DataSourceExec;
use datafusion::error::Result;
use datafusion::physical_expr::LexOrdering;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};

use crate::optimizer::node_rule::{Rule, node_rule};
use crate::scan::file_groups::ScanRanges;
use crate::scan::source::SstSource;

/// Greatest number of scan ranges to merge; each holds a stripe and a thread.
const MOST_RANGES: usize = 128;

/// Merges scan ranges where a query wants the first rows in their order.
pub(crate) fn top_in_order() -> Rule {
    node_rule("TopInOrder", merged)
}

/// Replaces `plan`, a sort with a limit, by a merge of scan ranges.
fn merged(plan: &Arc<dyn ExecutionPlan>) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let (fetch, below) = match plan.downcast_ref::<SortPreservingMergeExec>() {
        Some(merge) => (merge.fetch(), merge.input()),
        None => (None, plan),
    };
    let Some(sort) = below.downcast_ref::<SortExec>() else { return Ok(None) };
    let by_parts = sort.preserve_partitioning();
    let fetch = if by_parts { fetch } else { sort.fetch() };
    let (Some(fetch), true) = (fetch, sort.fetch().is_some()) else { return Ok(None) };
    let Some(scan) = by_range(sort.input(), sort.expr())? else { return Ok(None) };
    Ok(Some(Arc::new(SortPreservingMergeExec::new(sort.expr().clone(), scan).with_fetch(Some(fetch)))))
}

/// The scan `plan` with a partition for each scan range, if each then has the order `wanted`.
fn by_range(plan: &Arc<dyn ExecutionPlan>, wanted: &LexOrdering) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let Some(exec) = plan.downcast_ref::<DataSourceExec>() else { return Ok(None) };
    let Some((config, source)) = exec.downcast_to_file_source::<SstSource>() else { return Ok(None) };
    let Some(ordering) = source.range_order().filter(|_| config.limit.is_none()) else { return Ok(None) };
    let files = config.file_groups.iter().flat_map(FileGroup::iter);
    let groups: Vec<FileGroup> = files.flat_map(by_itself).map(|file| FileGroup::new(vec![file])).collect();
    if groups.is_empty() || groups.len() > MOST_RANGES {
        return Ok(None);
    }
    let config = FileScanConfigBuilder::from(config.clone())
        .with_file_groups(groups)
        .with_output_ordering(vec![ordering.clone()])
        .build();
    let scan: Arc<dyn ExecutionPlan> = DataSourceExec::from_data_source(config);
    let in_order = scan.equivalence_properties().ordering_satisfy(wanted.iter().cloned())?;
    Ok(in_order.then_some(scan))
}

/// Splits a "file" into one for each scan range.
fn by_itself(file: &PartitionedFile) -> Vec<PartitionedFile> {
    let ranges = file.extension::<ScanRanges>().map(|ranges| ranges.0.as_slice()).unwrap_or_default();
    let name = file.object_meta.location.to_string();
    ranges
        .iter()
        .map(|range| PartitionedFile::new(name.clone(), range.bytes).with_extension(ScanRanges(vec![range.clone()])))
        .collect()
}
