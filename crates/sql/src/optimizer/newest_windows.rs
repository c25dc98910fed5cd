//! Physical optimizer rule for the newest records: reads the windows of a scan newest first.
//!
//! The first windows set a threshold, which rules the others out before they are opened.

use std::sync::Arc;

use datafusion::datasource::physical_plan::{FileGroup, FileScanConfigBuilder};
use datafusion::datasource::source::DataSourceExec;
use datafusion::error::Result;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::{ExecutionPlan, replace_children_if_necessary};
use tidetable_upstream::rules::node_rule::{Rule, node_rule};

use crate::scan::file_groups::a_file_each;
use crate::scan::spec::ScanOutput;
use crate::source::sst_source::SstSource;

/// Reads the windows of a scan newest first where a query wants the newest records.
pub(crate) fn newest_windows_first() -> Rule {
    node_rule("NewestWindowsFirst", |plan| match plan.downcast_ref::<SortExec>() {
        Some(sort) if sort.fetch().is_some() => with_windows_reversed(sort),
        _ => Ok(None),
    })
}

/// `sort` with the windows of its scan in descending order, if it begins with the event time, descending. A scan with a limit of
/// its own wants its first rows, of the query below the sort, and stays.
fn with_windows_reversed(sort: &SortExec) -> Result<Option<Arc<dyn ExecutionPlan>>> {
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

    // Partitions take the next file of all groups: the last group holds the newest windows.
    let reversed = groups.iter().rev().map(|group| FileGroup::new(group.files().iter().rev().cloned().collect()));
    let config = FileScanConfigBuilder::from(config.clone())
        .with_file_groups(reversed.collect())
        .with_output_ordering(Vec::new())
        .with_preserve_order(false)
        .build();
    let scan = DataSourceExec::from_data_source(config);
    replace_children_if_necessary(Arc::new(sort.clone()), vec![scan]).map(Some)
}
