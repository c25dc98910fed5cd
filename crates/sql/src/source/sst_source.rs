//! File source of scan ranges: projection, filter pushdown and display.

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
use datafusion::physical_expr::{LexOrdering, PhysicalExpr, conjunction_opt};
use datafusion::physical_plan::DisplayFormatType;
use datafusion::physical_plan::filter_pushdown::{FilterPushdownPropagation, PushedDown};
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use tidetable_layout::KeyRange;
use tidetable_store::read::ALL_TIMES;

use crate::aggregate::spec::ScanAggregate;
use crate::pushdown::dependence::is_of_columns;
use crate::scan::cell_reader::is_of_names_and_times;
use crate::scan::spec::{ScanOutput, ScanTask, TableScan};
use crate::schema::RowView;
use crate::shared_scan::SharedScanPeriod;
use crate::source::opener::ScanRangeOpener;

/// Key ranges that EXPLAIN lists; more are counted.
const SHOWN: usize = 3;

/// File source whose "files" are scan ranges.
#[derive(Clone)]
pub(crate) struct SstSource {
    scan: Arc<TableScan>,
    /// Schema of the table.
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
    /// Counts of scan ranges and SSTs, for EXPLAIN.
    counts: (usize, usize),
    metrics: ExecutionPlanMetricsSet,
}

impl SstSource {
    pub(crate) fn new(
        scan: TableScan,
        schema: SchemaRef,
        order: Option<LexOrdering>,
        (slices, ssts): (usize, usize),
    ) -> Self {
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
            counts: (slices, ssts),
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

    /// The scan.
    pub(crate) fn scan(&self) -> &TableScan {
        &self.scan
    }

    /// Output order of one scan range over the table's columns; `None` for an aggregation.
    pub(crate) fn range_order(&self) -> Option<&LexOrdering> {
        self.order.as_ref().filter(|_| self.scan.push_down && self.aggregate.is_none())
    }

    /// The same source of records, in any order; `None` if it outputs something else, or its output is published: files stay the
    /// same when SSTs are compacted.
    pub(crate) fn unordered(&self) -> Option<Self> {
        let scan = &self.scan;
        let is_of_records = matches!(scan.output, ScanOutput::Records { .. }) && self.may_aggregate();
        let is_free = is_of_records && !scan.even && self.shared_scan.is_none() && !self.unordered;
        is_free.then(|| Self { order: None, unordered: true, ..self.clone() })
    }

    /// Schema of the table.
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
            unordered: self.unordered || self.aggregate.is_some(),
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
        if self.aggregate.is_some() { None } else { conjunction_opt(self.filters.iter().cloned()) }
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
        let (slices, ssts) = self.counts;
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
        if let Some(filter) = conjunction_opt(self.filters.iter().cloned()) {
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
        let is_usable = |filter: &Arc<dyn PhysicalExpr>| match self.scan.output {
            ScanOutput::Records { .. } => is_of_columns(filter),
            ScanOutput::Cells => is_of_names_and_times(filter),
            ScanOutput::Rows(_) => false,
        };
        let mut source = self.clone();
        let mut verdicts = Vec::with_capacity(filters.len());
        for filter in filters {
            let usable = self.may_aggregate() && is_usable(&filter);
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

fn is_dynamic(filter: &Arc<dyn PhysicalExpr>) -> bool {
    filter.is::<DynamicFilterPhysicalExpr>() || filter.children().into_iter().any(is_dynamic)
}

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

fn show_times(time: &Range<i64>, f: &mut Formatter<'_>) -> fmt::Result {
    if *time == ALL_TIMES {
        return f.write_str("all");
    }
    let show = |time: i64, f: &mut Formatter<'_>| match timestamp_us_to_datetime(time) {
        Some(instant) if time != i64::MIN && time != i64::MAX => {
            write!(f, "{}", instant.format("%Y-%m-%dT%H:%M:%S%.fZ"))
        }
        _ => Ok(()),
    };
    f.write_str("[")?;
    show(time.start, f)?;
    f.write_str("..")?;
    show(time.end, f)?;
    f.write_str(")")
}
