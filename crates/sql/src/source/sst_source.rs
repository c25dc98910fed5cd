//! The scan operator: [`SstSource`], a DataFusion file source over the scan ranges of a snapshot.
//!
//! A table is one `DataSourceExec` over an [`SstSource`], as a Parquet table is one over a `ParquetSource`. The difference is
//! what a "file" is. SSTs overlap: one may hide or delete a cell of another, so that none can be read alone. A "file" of this
//! source is therefore one or several scan ranges: a key range in a window of event time, with the SSTs that have cells there.
//! Its name, such as `tables/SENSOR/2018-01-05/0`, is shown in plans and messages; no such path exists.
//!
//! # From filters to work
//!
//! Each step sees less data than the one before it, and costs more for a byte of it:
//!
//! 1. Key ranges. Bounds on single columns become bounds on the fields of the row key, and these become ranges of row keys. A
//!    filter that can hold for no value leaves no ranges.
//! 2. Windows. Bounds on the event time rule out the windows outside them. Both steps see nothing but the manifest.
//! 3. SSTs. A range of one row key asks the key filter of each SST, which rules out those without the key.
//! 4. Stripes. The least and greatest values of each column of a stripe, which the index of an SST has, rule out stripes
//!    ([`FilterPruner`](crate::pushdown::pruning::FilterPruner)).
//! 5. Records. The filters on one column see that column before the others are decoded; pages of the others without a record
//!    that passes are skipped ([`ColumnFilter`](crate::scan::late_filter::ColumnFilter)). Not where SSTs are merged, which
//!    may hide the record that passes.
//! 6. All filters run over the records that are left ([`RecordReader`](crate::scan::records::RecordReader)). Those that depend
//!    on the row alone run once a row.
//!
//! Steps 1 and 2 are the plan's (`SnapshotTable::scan`); the others are the execution's. Steps 1 to 5 only ever keep too
//! much.
//!
//! # What is pushed down
//!
//! Logical filters, to the table provider: `Inexact` for what steps 1 and 2 use, which are bounds on single columns of
//! records, and key ranges of cells and rows. `Unsupported` for all others. DataFusion keeps a `FilterExec` for both, and
//! then offers its filters to the source.
//!
//! Physical filters, to [`SstSource::try_pushdown_filters`]:
//!
//! | output  | filters                                    | answer | effect                        |
//! |---------|--------------------------------------------|--------|-------------------------------|
//! | records | columns, constants and immutable functions | `Yes`  | steps 4 to 6; no filter above |
//! | records | dynamic, such as the threshold of a top-k  | `No`   | rules out scan ranges         |
//! | cells   | on family, qualifier and timestamp         | `Yes`  | only such cells are output    |
//! | rows    | any                                        | `No`   | none                          |
//!
//! A dynamic filter is asked before each scan range, because it tightens while others are read. It rules out by event time
//! alone. With a limit in the scan it is dropped: the limit counts records before a filter above the scan.
//!
//! An aggregation: the optimizer rule `AggregateInScan` puts the partial stage into the source ([`SstSource::aggregating`]),
//! whose output then is the states of groups. The cheapest reader that suffices is taken:
//!
//! 1. stats of stripes, which need no read of a stripe ([`StripeTotals`](crate::grouping::stripe_stats::StripeTotals));
//! 2. row sums, which stand beside the values in an SST ([`SumReader`](crate::scan::sums::SumReader));
//! 3. the newest record of each group, windows from newest to oldest ([`Newest`](crate::grouping::newest::Newest));
//! 4. all records, whose expressions of the row alone are evaluated once a row.
//!
//! Projections: the columns that the expressions use are decoded; the expressions run over the batches of the source.
//!
//! A session without pushdown does none of this. Tests compare its answers with those of others.
//!
//! # Order
//!
//! The records of one scan range have the order of the layout ([`SstSource::range_order`]). Where windows share keys the
//! concatenation of ranges has not, and the scan declares no order. A consumer that needs none takes [`SstSource::unordered`]:
//! a range is then read SST by SST, without a merge but for the rows that two SSTs hold.
//!
//! # Partitions
//!
//! Scan ranges are divided at the boundaries of stripes until each of `target_partitions` has work, with at least 1 MiB each. A
//! file group is a run of consecutive ranges. A few stripes are one partition, read inline; larger ones are read on a blocking
//! thread, at most two batches ahead of the query. DataFusion divides files at byte offsets; these cannot be.
//!
//! # Example
//!
//! The table `SENSOR` has rows of one meter and day, in daily windows:
//!
//! ```sql
//! EXPLAIN ANALYZE SELECT ts, kwh FROM SENSOR WHERE meter = 42 AND ts >= '2018-01-05' AND kwh > 0.5;
//! ```
//!
//! The plan is the scan alone, because it takes all three filters (broken into lines here):
//!
//! ```text
//! DataSourceExec: file_groups={1 group: [[tables/SENSOR/2018-01-05/0]]}, projection=[ts, kwh],
//!   file_type=sst, table=records.SENSOR, version=1, slices=12, ssts=12,
//!   keys=[0000000042#20180105..0000000042#99991232], time=[2018-01-05T00:00:00Z..),
//!   filter=meter@0 = 42 AND ts@1 >= 1515110400000000 AND kwh@2 > 0.5,
//!   metrics=[output_rows=288, bytes=21.37 K, bytes_read=15.63 K, pages_read=12,
//!     ssts=12, ssts_pruned=0, stripes=12, stripes_pruned=0, ...]
//! ```
//!
//! Twelve of the 15 windows are left, a scan range (`slices`) and an SST each. Ranges of some keys are one "file" for each
//! partition, and these twelve are one partition. `keys=all` and `time=all` say that steps 1 and 2 did nothing. An
//! aggregation in the scan ends the line with `by=` and `aggregates=`, and `in key order` if its states come so; a scan in any order
//! says `order=any`.

use std::fmt::{self, Formatter};
use std::ops::Range;
use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use arrow::temporal_conversions::timestamp_us_to_datetime;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::{FileOpener, FileScanConfig, FileSource};
use datafusion::datasource::projection::{ProjectionOpener, SplitProjection};
use datafusion::datasource::table_schema::TableSchema;
use datafusion::error::Result;
use datafusion::object_store::ObjectStore;
use datafusion::physical_expr::expressions::{Column, DynamicFilterPhysicalExpr};
use datafusion::physical_expr::projection::ProjectionExprs;
use datafusion::physical_expr::{LexOrdering, PhysicalExpr};
use datafusion::physical_plan::DisplayFormatType;
use datafusion::physical_plan::filter_pushdown::{FilterPushdownPropagation, PushedDown};
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use tidetable_layout::KeyRange;
use tidetable_store::read::ALL_TIMES;

use crate::aggregate::spec::ScanAggregate;
use crate::conjunction::conjunction;
use crate::pushdown::dependence::is_of_columns;
use crate::scan::cell_reader::is_of_names_and_times;
use crate::scan::spec::{ScanOutput, ScanTask, TableScan};
use crate::schema::RowView;
use crate::shared_scan::SharedScanPeriod;
use crate::source::opener::ScanRangeOpener;

/// Key ranges that EXPLAIN lists; more are counted.
const SHOWN: usize = 3;

/// The size of a scan, for EXPLAIN.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RangeCounts {
    /// Scan ranges, after they were divided for the partitions.
    pub(crate) slices: usize,
    /// Distinct SSTs of these ranges.
    pub(crate) ssts: usize,
}

/// File source whose "files" are scan ranges.
#[derive(Clone)]
pub(crate) struct SstSource {
    scan: Arc<TableScan>,
    /// Schema of all columns of the table, before projection.
    stored: SchemaRef,
    /// Pushed-down filters over the table.
    filters: Vec<Arc<dyn PhysicalExpr>>,
    /// Dynamic filters, such as the threshold of a top-k. They rule out scan ranges; DataFusion applies them to
    /// records.
    dynamic_filters: Vec<Arc<dyn PhysicalExpr>>,
    aggregate: Option<Arc<ScanAggregate>>,
    /// The shared scan that may provide the records.
    shared_scan: Option<SharedScanPeriod>,
    /// Output order of one scan range.
    order: Option<LexOrdering>,
    /// Whether records come in any order.
    unordered: bool,
    /// Output before projection: the table, or the aggregation.
    table_schema: TableSchema,
    projection: SplitProjection,
    batch_size: usize,
    counts: RangeCounts,
    metrics: ExecutionPlanMetricsSet,
}

impl SstSource {
    /// The source of all columns of a table with `schema`, without filters; `order` is that of one scan range.
    pub(crate) fn new(scan: TableScan, schema: SchemaRef, order: Option<LexOrdering>, counts: RangeCounts) -> Self {
        let table_schema = TableSchema::from(&schema);
        Self {
            scan: Arc::new(scan),
            stored: schema,
            filters: Vec::new(),
            dynamic_filters: Vec::new(),
            aggregate: None,
            shared_scan: None,
            order,
            unordered: false,
            projection: SplitProjection::unprojected(&table_schema),
            table_schema,
            batch_size: 8192,
            counts,
            metrics: ExecutionPlanMetricsSet::new(),
        }
    }

    /// The same source, which takes its records from `shared_scan` where that has them.
    pub(crate) fn with_shared_scan(self, shared_scan: Option<SharedScanPeriod>) -> Self {
        Self { shared_scan, ..self }
    }

    /// Whether a shared scan may provide the records.
    pub(crate) fn is_shared(&self) -> bool {
        self.shared_scan.is_some()
    }

    /// What the source reads, the same for all of its partitions.
    pub(crate) fn scan(&self) -> &TableScan {
        &self.scan
    }

    /// Output order of one scan range over the table's columns; `None` for an aggregation.
    pub(crate) fn range_order(&self) -> Option<&LexOrdering> {
        self.order.as_ref().filter(|_| self.scan.push_down && self.aggregate.is_none())
    }

    /// The same source of records, in any order; `None` if it outputs something else, or its output is published: files
    /// stay the same when SSTs are compacted.
    pub(crate) fn unordered(&self) -> Option<Self> {
        let outputs_records = matches!(self.scan.output, ScanOutput::Records { .. }) && self.may_aggregate();
        let is_published = self.scan.even || self.shared_scan.is_some();
        if !outputs_records || is_published || self.unordered {
            return None;
        }

        Some(Self { order: None, unordered: true, ..self.clone() })
    }

    /// Schema of all columns of the table, before projection.
    pub(crate) fn records_schema(&self) -> &SchemaRef {
        &self.stored
    }

    /// The projection of the output.
    pub(crate) fn projections(&self) -> &ProjectionExprs {
        &self.projection.source
    }

    /// The table column that output column `at` is; `None` if it is computed.
    pub(crate) fn table_column(&self, at: usize) -> Option<usize> {
        let output = self.projection.source.iter().nth(at)?;
        output.expr.downcast_ref::<Column>().map(Column::index).filter(|_| self.aggregate.is_none())
    }

    /// What to do with each scan range.
    pub(crate) fn task(&self) -> Result<ScanTask> {
        let columns = self.projection.file_indices.clone();
        let schema = Arc::new(self.table_schema.file_schema().project(&columns)?);

        Ok(ScanTask {
            scan: Arc::clone(&self.scan),
            stored: Arc::clone(&self.stored),
            filters: self.filters.clone(),
            dynamic_filters: self.dynamic_filters.clone(),
            aggregate: self.aggregate.clone(),
            unordered: self.unordered || self.aggregate.as_ref().is_some_and(|aggregate| !aggregate.in_key_order),
            columns,
            schema,
            batch_size: self.batch_size,
        })
    }

    /// Whether an aggregation may be added.
    pub(crate) fn may_aggregate(&self) -> bool {
        self.scan.push_down && self.aggregate.is_none()
    }

    /// The same source with an aggregation.
    pub(crate) fn aggregating(&self, aggregate: ScanAggregate) -> Self {
        let table_schema = TableSchema::from(&aggregate.schema);
        Self {
            projection: SplitProjection::unprojected(&table_schema),
            table_schema,
            aggregate: Some(Arc::new(aggregate)),
            metrics: ExecutionPlanMetricsSet::new(),
            ..self.clone()
        }
    }
}

impl FileSource for SstSource {
    fn create_file_opener(
        &self,
        _object_store: Arc<dyn ObjectStore>,
        config: &FileScanConfig,
        partition: usize,
    ) -> Result<Arc<dyn FileOpener>> {
        let mut task = self.task()?;
        if config.limit.is_some() {
            // The limit counts records before the filter of a node above it.
            task.dynamic_filters.clear();
        }

        let opener = ScanRangeOpener::new(task, self.shared_scan.clone(), &self.metrics, partition);
        ProjectionOpener::try_new(self.projection.clone(), Arc::new(opener), self.table_schema.file_schema())
    }

    fn table_schema(&self) -> &TableSchema {
        &self.table_schema
    }

    fn with_batch_size(&self, batch_size: usize) -> Arc<dyn FileSource> {
        Arc::new(Self { batch_size: batch_size.max(1), ..self.clone() })
    }

    fn filter(&self) -> Option<Arc<dyn PhysicalExpr>> {
        // Filters before an aggregation say nothing about its output.
        if self.aggregate.is_some() { None } else { conjunction(self.filters.iter().cloned()) }
    }

    fn projection(&self) -> Option<&ProjectionExprs> {
        Some(&self.projection.source)
    }

    fn metrics(&self) -> &ExecutionPlanMetricsSet {
        &self.metrics
    }

    fn file_type(&self) -> &str {
        "sst"
    }

    fn fmt_extra(&self, t: DisplayFormatType, f: &mut Formatter<'_>) -> fmt::Result {
        let TableScan { snapshot, output, keys, time, .. } = self.scan.as_ref();
        let schema = match output {
            ScanOutput::Records { .. } => "records",
            ScanOutput::Cells => "cells",
            ScanOutput::Rows(_) => "rows",
        };
        let RangeCounts { slices, ssts } = self.counts;
        let (open, between, close) = match t {
            DisplayFormatType::TreeRender => ("", "\n", "\n"),
            _ => (", ", ", ", ""),
        };

        write!(f, "{open}table={schema}.{}{between}", snapshot.table().name())?;
        write!(f, "version={}{between}slices={slices}{between}ssts={ssts}{between}keys=", snapshot.version().number)?;
        show_keys(keys, f)?;
        write!(f, "{between}time=")?;
        show_times(time, f)?;

        if let ScanOutput::Records { within: Some((_, within)) } = output {
            write!(f, "{between}within=")?;
            show_times(within, f)?;
        }
        if let ScanOutput::Rows(RowView { shown, .. }) = output {
            write!(f, "{between}cells={shown}{between}timestamps=")?;
            show_times(&shown.time, f)?;
        }

        if self.unordered {
            write!(f, "{between}order=any")?;
        }
        if let Some(filter) = conjunction(self.filters.iter().cloned()) {
            write!(f, "{between}filter={filter}")?;
        }
        if let Some(aggregate) = &self.aggregate {
            write!(f, "{between}{aggregate}")?;
        }

        f.write_str(close)
    }

    // A scan range cannot be split at byte offsets.
    fn supports_repartitioning(&self) -> bool {
        false
    }

    fn reorder_files(&self, files: Vec<PartitionedFile>) -> Vec<PartitionedFile> {
        files
    }

    /// Takes filters on records, of which those that depend on the row are evaluated once per row, and filters on family,
    /// qualifier and timestamp of cells. Dynamic filters only prune.
    fn try_pushdown_filters(
        &self,
        filters: Vec<Arc<dyn PhysicalExpr>>,
        _config: &ConfigOptions,
    ) -> Result<FilterPushdownPropagation<Arc<dyn FileSource>>> {
        let mut source = self.clone();
        let mut verdicts = Vec::with_capacity(filters.len());

        for filter in filters {
            let usable = self.may_aggregate()
                && match self.scan.output {
                    ScanOutput::Records { .. } => is_of_columns(&filter),
                    ScanOutput::Cells => is_of_names_and_times(&filter),
                    ScanOutput::Rows(_) => false,
                };
            if usable && !is_dynamic(&filter) {
                source.filters.push(filter);
                verdicts.push(PushedDown::Yes);
                continue;
            }
            if usable {
                source.dynamic_filters.push(filter);
            }
            verdicts.push(PushedDown::No);
        }

        let propagation = FilterPushdownPropagation::with_parent_pushdown_result(verdicts);
        Ok(propagation.with_updated_node(Arc::new(source)))
    }

    fn try_pushdown_projection(&self, projection: &ProjectionExprs) -> Result<Option<Arc<dyn FileSource>>> {
        let merged = self.projection.source.try_merge(projection)?;
        let projection = SplitProjection::new(self.table_schema.file_schema(), &merged);
        Ok(Some(Arc::new(Self { projection, ..self.clone() })))
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        let projected = datafusion::physical_plan::apply_expression_roots(self.projection.source.iter(), f)?;
        if projected == TreeNodeRecursion::Stop || self.aggregate.is_some() {
            return Ok(projected);
        }

        for filter in self.filters.iter().chain(&self.dynamic_filters) {
            if f(filter)? == TreeNodeRecursion::Stop {
                return Ok(TreeNodeRecursion::Stop);
            }
        }
        Ok(projected)
    }
}

/// Whether a filter changes while the query runs.
fn is_dynamic(filter: &Arc<dyn PhysicalExpr>) -> bool {
    filter.is::<DynamicFilterPhysicalExpr>() || filter.children().into_iter().any(is_dynamic)
}

/// Writes key ranges as EXPLAIN shows them.
fn show_keys(keys: &[KeyRange], f: &mut Formatter<'_>) -> fmt::Result {
    match keys {
        [] => return f.write_str("none"),
        [all] if *all == KeyRange::all() => return f.write_str("all"),
        _ => {}
    }

    f.write_str("[")?;
    for (at, range) in keys.iter().take(SHOWN).enumerate() {
        let comma = if at == 0 { "" } else { ", " };
        write!(f, "{comma}{}..", range.start.escape_ascii())?;
        if let Some(end) = &range.end {
            write!(f, "{}", end.escape_ascii())?;
        }
    }

    if keys.len() > SHOWN {
        write!(f, ", and {} more", keys.len() - SHOWN)?;
    }
    f.write_str("]")
}

/// Writes a half-open range of times, in microseconds, as EXPLAIN shows it.
fn show_times(time: &Range<i64>, f: &mut Formatter<'_>) -> fmt::Result {
    if *time == ALL_TIMES {
        return f.write_str("all");
    }

    f.write_str("[")?;
    show_time(time.start, f)?;
    f.write_str("..")?;
    show_time(time.end, f)?;
    f.write_str(")")
}

/// Writes a bound of a range of times, in microseconds; nothing for an open one.
fn show_time(time: i64, f: &mut Formatter<'_>) -> fmt::Result {
    match timestamp_us_to_datetime(time) {
        Some(instant) if time != i64::MIN && time != i64::MAX => {
            write!(f, "{}", instant.format("%Y-%m-%dT%H:%M:%S%.fZ"))
        }
        _ => Ok(()),
    }
}
