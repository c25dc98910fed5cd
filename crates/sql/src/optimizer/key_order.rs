//! Physical optimizer rule for window functions and sorts in key order: windows are merged by key instead of sorted.
//!
//! Windows share keys, so a scan that reads them one after the other has no order, and DataFusion would repartition its
//! records by hash and sort them. Each window is sorted: partitions become key ranges, each merges the windows, and the scan
//! declares the order and the ranges.

use std::sync::Arc;

use datafusion::common::SplitPoint;
use datafusion::datasource::physical_plan::{FileGroup, FileScanConfigBuilder};
use datafusion::datasource::source::DataSourceExec;
use datafusion::error::Result;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{LexOrdering, RangePartitioning};
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::windows::{BoundedWindowAggExec, WindowAggExec};
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties, Partitioning, replace_children_if_necessary};
use datafusion::scalar::ScalarValue;
use tidetable_upstream::rules::node_rule::{Rule, node_rule};

use crate::scan::file_groups::by_entity;
use crate::scan::spec::{ScanOutput, TableScan};
use crate::source::sst_source::SstSource;

/// Maximum number of SSTs to merge; each holds a stripe.
const MAX_SSTS: usize = 128;

/// Merges windows by key where a node wants records in key order. It comes before DataFusion decides on sorts.
pub(crate) fn windows_in_key_order() -> Rule {
    node_rule("WindowsInKeyOrder", |plan| {
        let is_sort = plan.downcast_ref::<SortExec>().is_some_and(|sort| sort.fetch().is_none());
        if !is_sort && !plan.is::<BoundedWindowAggExec>() && !plan.is::<WindowAggExec>() {
            return Ok(None);
        }
        let Some(child) = plan.children().first().copied().cloned() else { return Ok(None) };
        // The order alone first: key ranges are cut by the stripes of all SSTs, which opens them.
        for is_cut in [false, true] {
            let Some(merged) = in_key_order(&child, is_cut)? else { return Ok(None) };
            if !satisfies(plan, &merged)? {
                return Ok(None);
            }
            if is_cut {
                return replace_children_if_necessary(Arc::clone(plan), vec![merged]).map(Some);
            }
        }
        Ok(None)
    })
}

/// Whether `child` has the order and the partitions that `plan`, a window function or a sort, requires.
fn satisfies(plan: &Arc<dyn ExecutionPlan>, child: &Arc<dyn ExecutionPlan>) -> Result<bool> {
    let properties = child.equivalence_properties();
    if let Some(sort) = plan.downcast_ref::<SortExec>() {
        return properties.ordering_satisfy(sort.expr().iter().cloned());
    }
    let orders = plan.required_input_ordering();
    let Some(Some(order)) = orders.first() else { return Ok(false) };
    let requirements = plan.input_distribution_requirements().into_per_child();
    let is_partitioned = requirements
        .first()
        .is_some_and(|required| child.output_partitioning().satisfaction(required, properties, false).is_satisfied());
    Ok(is_partitioned && properties.ordering_satisfy_requirement(order.clone().into_single())?)
}

/// `plan`, filters and projections of a scan, with the windows of the scan merged by key; `None` if that is not possible or
/// not needed. Not `is_cut`, it is in one partition without files, whose order can be asked for.
fn in_key_order(plan: &Arc<dyn ExecutionPlan>, is_cut: bool) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    if plan.is::<ProjectionExec>() || plan.is::<FilterExec>() {
        let [child] = plan.children()[..] else { return Ok(None) };
        let Some(merged) = in_key_order(child, is_cut)? else { return Ok(None) };
        return replace_children_if_necessary(Arc::clone(plan), vec![merged]).map(Some);
    }

    let Some(exec) = plan.downcast_ref::<DataSourceExec>() else { return Ok(None) };
    let Some((config, source)) = exec.downcast_to_file_source::<SstSource>() else { return Ok(None) };
    let (Some(order), Some(entity), None) = (source.range_order(), entity(source), config.limit) else {
        return Ok(None);
    };

    let ordered =
        FileScanConfigBuilder::from(config.clone()).with_output_ordering(vec![order.clone()]).with_preserve_order(true);
    if !is_cut {
        return Ok(Some(DataSourceExec::from_data_source(
            ordered.with_file_groups(vec![FileGroup::default()]).build(),
        )));
    }

    let Some((groups, cuts)) = merged_by_key(source.scan(), entity, config.file_groups.len())? else { return Ok(None) };
    let by = LexOrdering::from([order.first().clone()]);
    let splits = cuts.into_iter().map(|value| SplitPoint::new(vec![value])).collect();
    let partitioning = Partitioning::Range(RangePartitioning::try_new(by, splits)?);
    let config = ordered.with_file_groups(groups).with_output_partitioning(Some(partitioning)).build();
    Ok(Some(DataSourceExec::from_data_source(config)))
}

/// The table field with which row keys begin, if the windows of `source`, a scan of records, can be merged in key ranges by it.
pub(crate) fn entity(source: &SstSource) -> Option<usize> {
    let scan = source.scan();
    let is_of_records = matches!(scan.output, ScanOutput::Records { .. }) && !source.is_shared();
    let first = source.range_order().filter(|_| is_of_records && scan.keys.len() == 1)?.first();
    let field = first.expr.downcast_ref::<Column>()?.index();
    scan.snapshot.layout().is_row_field(field).then_some(field)
}

/// The groups of `scan` with its windows merged by key, in key ranges that no value of `entity` crosses, and the first value of each
/// but the first; `None` if that is not possible.
pub(crate) fn merged_by_key(
    scan: &TableScan,
    entity: usize,
    partitions: usize,
) -> Result<Option<(Vec<FileGroup>, Vec<ScalarValue>)>> {
    let ranges = scan.snapshot.scan_ranges(&scan.keys, &scan.time);
    if ranges.iter().map(|range| range.ssts.len()).sum::<usize>() > MAX_SSTS {
        return Ok(None);
    }
    by_entity(&scan.snapshot, &ranges, entity, partitions)
}
