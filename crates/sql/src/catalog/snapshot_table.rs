//! Table provider of `records.T`, `cells.T` and `rows.T`.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use arrow::compute::SortOptions;
use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider};
use datafusion::datasource::TableType;
use datafusion::datasource::physical_plan::FileScanConfigBuilder;
use datafusion::datasource::source::DataSourceExec;
use datafusion::error::Result;
use datafusion::execution::object_store::ObjectStoreUrl;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{LexOrdering, PhysicalSortExpr};
use datafusion::physical_plan::ExecutionPlan;
use tidetable_layout::error::Advice;
use tidetable_layout::time::window_of;
use tidetable_layout::{KeyRange, Window};
use tidetable_store::read::ALL_TIMES;
use tidetable_store::{ScanRange, Snapshot};

use crate::error::{SqlError, external};
use crate::pushdown::filter::bounds;
use crate::pushdown::key_ranges::{key_ranges, keys_of};
use crate::pushdown::value_sets::{Bounds, field_bounds, intersect_bounds, is_empty, time_range};
use crate::scan::file_groups::{are_in_key_order, file_groups, is_small_scan, split, statistics};
use crate::scan::spec::{FixedBatchSize, ScanOutput, TableScan};
use crate::schema::{CELL_TIMESTAMP, RowView, cells_schema, families};
use crate::shared_scan::SharedScanPeriod;
use crate::source::sst_source::{RangeCounts, SstSource};
use crate::view_options::CellsShown;

/// Scan ranges whose SSTs may be opened while planning.
const FEW_RANGES: usize = 64;

/// A table version as records (all, or those in a range of event time), cells or rows.
#[derive(Debug)]
pub(crate) struct SnapshotTable {
    snapshot: Snapshot,
    schema: SchemaRef,
    output: ScanOutput,
    /// The event times that the table shows, in microseconds, half-open.
    time: Range<i64>,
    shared_scan: Option<SharedScanPeriod>,
    push_down: bool,
}

/// What a query reads of the table, after the bounds of its filters.
struct Selection {
    keys: Vec<KeyRange>,
    time: Range<i64>,
    ranges: Vec<ScanRange>,
}

impl SnapshotTable {
    pub(crate) fn records(
        snapshot: Snapshot,
        time: Range<i64>,
        shared_scan: Option<SharedScanPeriod>,
        push_down: bool,
    ) -> Self {
        let schema = snapshot.layout().records_schema();
        Self { snapshot, schema, output: ScanOutput::Records { within: None }, time, shared_scan, push_down }
    }

    pub(crate) fn cells(snapshot: Snapshot, push_down: bool) -> Self {
        let schema = Arc::new(cells_schema());
        Self { snapshot, schema, output: ScanOutput::Cells, time: ALL_TIMES, shared_scan: None, push_down }
    }

    pub(crate) fn rows(snapshot: Snapshot, shown: CellsShown, push_down: bool) -> Self {
        let snapshot = if shown.include_expired { snapshot.including_expired() } else { snapshot };
        let view = RowView { families: families(snapshot.layout()), shown };
        let schema = Arc::new(view.schema());
        Self { snapshot, schema, output: ScanOutput::Rows(view), time: ALL_TIMES, shared_scan: None, push_down }
    }

    /// The row key is the first column of cells and rows.
    fn key_column(&self) -> &str {
        self.schema.field(0).name()
    }

    /// Name of the event-time column, if the source has one.
    fn time_field(&self) -> Option<&str> {
        let source = self.snapshot.layout().source();
        source.fields.get(source.time).map(|field| field.name.as_str())
    }

    /// The event times of cells that can satisfy `bounds` on the decoded event time.
    fn event_times(&self, bounds: &Bounds) -> Range<i64> {
        let set = self.time_field().and_then(|name| bounds.get(name));
        let Some(read_back) = set.map(time_range) else { return ALL_TIMES };
        let coarse = self.snapshot.layout().warnings().iter().any(
            |warning| matches!(&warning.advice, Advice::CoarseTime { column } if self.time_field() == Some(column)),
        );
        // A truncated event time is earlier than the event, by less than the layout's unit.
        if coarse { read_back.start..i64::MAX } else { read_back }
    }

    /// The key ranges, event times and scan ranges that can hold what passes `filters`.
    fn select(&self, filters: &[Expr]) -> Selection {
        if !matches!(self.output, ScanOutput::Records { .. }) {
            let keys = keys_of(filters, self.key_column(), self.push_down);
            // Ranges span all windows: a row may have cells in several, with any timestamps.
            let ranges = keys.iter().filter_map(|range| self.snapshot.whole(range)).collect();
            return Selection { keys, time: ALL_TIMES, ranges };
        }

        let mut all = Bounds::new();
        if self.push_down {
            for bounds in filters.iter().filter_map(|filter| bounds(filter, &self.schema)) {
                intersect_bounds(&mut all, bounds);
            }
        }

        let keys = if all.values().any(is_empty) {
            Vec::new()
        } else {
            self.snapshot.layout().key_ranges(&field_bounds(&all))
        };

        let times = self.event_times(&all);
        let time = times.start.max(self.time.start)..times.end.min(self.time.end);
        let ranges = if time.is_empty() { Vec::new() } else { self.snapshot.scan_ranges(&keys, &time) };
        Selection { keys, time, ranges }
    }

    /// The column and range by which each record must still be checked.
    fn within(&self) -> Result<Option<(usize, Range<i64>)>, SqlError> {
        if self.time == ALL_TIMES {
            return Ok(None);
        }

        let layout = self.snapshot.layout();
        let window = layout.spec().window;
        let aligned = |time: i64| time == i64::MIN || time == i64::MAX || window_of(window, time) == time;
        let whole_windows = aligned(self.time.start) && aligned(self.time.end);
        if window != Window::None && whole_windows && layout.rows_lie_in_one_window() {
            return Ok(None);
        }

        let time = self.time_field().and_then(|name| self.schema.index_of(name).ok());
        match time {
            Some(time) => Ok(Some((time, self.time.clone()))),
            None => Err(SqlError::NoTime { table: self.snapshot.table().name().to_owned() }),
        }
    }

    /// The output order of a scan range, as the layout guarantees it.
    fn ordering(&self) -> Option<LexOrdering> {
        let fields = match self.output {
            ScanOutput::Records { .. } => self.snapshot.layout().record_order(),
            ScanOutput::Cells => vec![0, 1, 2, CELL_TIMESTAMP],
            ScanOutput::Rows(_) => vec![0],
        };
        LexOrdering::new(fields.into_iter().filter_map(|field| {
            let name = self.schema.fields().get(field)?.name();
            // The newest cell comes first.
            let descending = matches!(self.output, ScanOutput::Cells) && field == CELL_TIMESTAMP;
            let options = SortOptions { descending, nulls_first: descending };
            Some(PhysicalSortExpr::new(Arc::new(Column::new(name, field)), options))
        }))
    }
}

#[async_trait]
impl TableProvider for SnapshotTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    /// Inexact for filters that narrow what is read: for records those that bound single columns, for cells and rows
    /// those on the row key. Others are unsupported.
    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> Result<Vec<TableProviderFilterPushDown>> {
        let mut verdicts = Vec::with_capacity(filters.len());
        for filter in filters {
            let narrows = match self.output {
                ScanOutput::Records { .. } => bounds(filter, &self.schema).is_some(),
                ScanOutput::Cells | ScanOutput::Rows(_) => key_ranges(filter, self.key_column()).is_some(),
            };
            verdicts.push(match self.push_down && narrows {
                true => TableProviderFilterPushDown::Inexact,
                false => TableProviderFilterPushDown::Unsupported,
            });
        }
        Ok(verdicts)
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let Selection { keys, time, ranges } = self.select(filters);
        let output = match &self.output {
            ScanOutput::Records { .. } => ScanOutput::Records { within: self.within().map_err(external)? },
            output => output.clone(),
        };

        if ranges.len() <= FEW_RANGES {
            self.snapshot.announce(&ranges);
        }

        let partitions = if is_small_scan(&self.snapshot, &ranges) { 1 } else { state.config().target_partitions() };
        let ranges = split(&self.snapshot, ranges, partitions).map_err(external)?;
        let ssts: BTreeSet<&String> = ranges.iter().flat_map(|range| &range.ssts).collect();
        let counts = RangeCounts { slices: ranges.len(), ssts: ssts.len() };
        let statistics = statistics(&self.snapshot, &ranges, &self.schema);

        // Where windows share keys, only single scan ranges are sorted.
        let ordering = self.ordering();
        let is_sorted = ranges.len() <= partitions || are_in_key_order(&self.snapshot, &ranges);
        let orderings = ordering.clone().filter(|_| is_sorted);
        let groups = file_groups(&self.snapshot, ranges, partitions, is_sorted);

        let (snapshot, push_down) = (self.snapshot.clone(), self.push_down);
        let even = state.config().get_extension::<FixedBatchSize>().is_some();
        let scan = TableScan { snapshot, output, keys, time, even, push_down };
        let source = SstSource::new(scan, Arc::clone(&self.schema), ordering, counts);
        let source = Arc::new(source.with_shared_scan(self.shared_scan.clone()));

        let config = FileScanConfigBuilder::new(ObjectStoreUrl::local_filesystem(), source)
            .with_file_groups(groups)
            .with_statistics(statistics)
            .with_output_ordering(orderings.into_iter().collect())
            .with_limit(limit)
            .with_projection_indices(projection.cloned())?
            .build();
        Ok(DataSourceExec::from_data_source(config))
    }
}
