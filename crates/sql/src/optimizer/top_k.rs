//! Physical optimizer rule for top-k in scan order: merges sorted scan ranges instead of sorting.
//!
//! Windows share keys, so a scan that reads them in sequence has no order. Each scan range alone is sorted: they are
//! merged, and each is read only as far as the limit needs.

use std::sync::Arc;

use datafusion::datasource::physical_plan::{FileGroup, FileScanConfigBuilder};
use datafusion::datasource::source::DataSourceExec;
use datafusion::error::Result;
use datafusion::physical_expr::LexOrdering;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties, replace_children_if_necessary};

use crate::optimizer::node_rule::{Rule, node_rule};
use crate::scan::file_groups::a_file_each;
use crate::scan::source::SstSource;
use crate::scan::spec::ScanOutput;

/// Maximum number of scan ranges to merge; each holds a stripe and a thread.
const MAX_RANGES: usize = 128;

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
    let Some(scan) = by_range(sort.input(), sort.expr())? else { return newest_windows_first(plan, sort) };
    Ok(Some(Arc::new(SortPreservingMergeExec::new(sort.expr().clone(), scan).with_fetch(Some(fetch)))))
}

/// `plan` with the windows of its scan in descending order, if the sort begins with the event time, descending: the
/// first windows then set a threshold that prunes the others. A scan with a limit of its own wants its first rows, of the
/// query below the sort, and stays.
fn newest_windows_first(plan: &Arc<dyn ExecutionPlan>, sort: &SortExec) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let Some(exec) = sort.input().downcast_ref::<DataSourceExec>() else { return Ok(None) };
    let Some((config, source)) = exec.downcast_to_file_source::<SstSource>() else { return Ok(None) };
    let is_of_records = matches!(source.scan().output, ScanOutput::Records { .. });
    if config.limit.is_some() || !source.scan().push_down || !is_of_records {
        return Ok(None);
    }
    let first = sort.expr().first();
    let Some(column) = first.expr.downcast_ref::<Column>().filter(|_| first.options.descending) else {
        return Ok(None);
    };
    let is_time = source
        .table_column(column.index())
        .is_some_and(|field| source.scan().snapshot.layout().event_time_field() == Some(field));
    let groups = a_file_each(&config.file_groups);
    let several = groups.iter().any(|group| group.len() > 1);
    if !is_time || !several {
        return Ok(None);
    }
    let reversed = |group: &FileGroup| FileGroup::new(group.files().iter().rev().cloned().collect());
    // Partitions take the next file of all groups: the last group holds the newest windows.
    let groups = groups.iter().rev().map(reversed).collect();
    let config = FileScanConfigBuilder::from(config.clone())
        .with_file_groups(groups)
        .with_output_ordering(Vec::new())
        .with_preserve_order(false)
        .build();
    let sorted = replace_children_if_necessary(Arc::new(sort.clone()), vec![DataSourceExec::from_data_source(config)])?;
    match plan.downcast_ref::<SortPreservingMergeExec>() {
        Some(_) => Ok(Some(replace_children_if_necessary(Arc::clone(plan), vec![sorted])?)),
        None => Ok(Some(sorted)),
    }
}

/// The scan `plan` with a partition for each scan range, if each then has the order `wanted`.
fn by_range(plan: &Arc<dyn ExecutionPlan>, wanted: &LexOrdering) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let Some(exec) = plan.downcast_ref::<DataSourceExec>() else { return Ok(None) };
    let Some((config, source)) = exec.downcast_to_file_source::<SstSource>() else { return Ok(None) };
    let Some(ordering) = source.range_order().filter(|_| config.limit.is_none()) else { return Ok(None) };
    let files = a_file_each(&config.file_groups).into_iter().flat_map(FileGroup::into_inner);
    let groups: Vec<FileGroup> = files.map(|file| FileGroup::new(vec![file])).collect();
    if groups.is_empty() || groups.len() > MAX_RANGES {
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
