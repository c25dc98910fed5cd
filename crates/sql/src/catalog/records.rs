//! `records.T`: the columns of the source, read back.

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
use tidetable_store::{ScanRange, Snapshot};

use crate::error::{SqlError, external};
use crate::pushdown::filter::bounds;
use crate::pushdown::value_sets::{Bounds, field_bounds, is_empty, narrow, time_range};
use crate::scan::file_groups::{cut, file_groups, is_little, statistics};
use crate::scan::source::{Shape, SstSource, TableScan};
use crate::shared_scan::InPass;

/// In the configuration of a session: batches are as long wherever files and stripes are cut.
#[derive(Debug)]
pub(crate) struct EvenBatches;

/// All event times.
pub(crate) const ALWAYS: Range<i64> = i64::MIN..i64::MAX;

/// The records of a version of a table, or those of a range of event time.
#[derive(Debug)]
pub(crate) struct RecordsTable {
    snapshot: Snapshot,
    schema: SchemaRef,
    /// Event times shown, microseconds.
    time: Range<i64>,
    pass: Option<InPass>,
    push_down: bool,
}

/// What a query needs of the table.
struct Selection {
    keys: Vec<KeyRange>,
    time: Range<i64>,
    slices: Vec<ScanRange>,
}

impl RecordsTable {
    pub(crate) fn new(snapshot: Snapshot, time: Range<i64>, pass: Option<InPass>, push_down: bool) -> Self {
        let schema = snapshot.layout().records_schema();
        Self { snapshot, schema, time, pass, push_down }
    }

    /// The name of the event time.
    fn time_field(&self) -> Option<&str> {
        let source = self.snapshot.layout().source();
        source.fields.get(source.time).map(|field| field.name.as_str())
    }

    /// The event times of cells that `bounds` on the event time, as it reads back, can be about.
    fn event_times(&self, bounds: &Bounds) -> Range<i64> {
        let set = self.time_field().and_then(|name| bounds.get(name));
        let Some(read_back) = set.map(time_range) else { return ALWAYS };
        let coarse = self.snapshot.layout().warnings().iter().any(
            |warning| matches!(&warning.advice, Advice::CoarseTime { column } if self.time_field() == Some(column)),
        );
        // What was cut short lies before the event, by as much as the layout cuts.
        if coarse { read_back.start..i64::MAX } else { read_back }
    }

    fn select(&self, filters: &[Expr]) -> Selection {
        let mut all = Bounds::new();
        if self.push_down {
            filters.iter().filter_map(|filter| bounds(filter, &self.schema)).for_each(|more| narrow(&mut all, more));
        }
        let keys = if all.values().any(is_empty) {
            Vec::new()
        } else {
            self.snapshot.layout().key_ranges(&field_bounds(&all))
        };
        let times = self.event_times(&all);
        let time = times.start.max(self.time.start)..times.end.min(self.time.end);
        let slices = if time.is_empty() { Vec::new() } else { self.snapshot.scan_ranges(&keys, &time) };
        Selection { keys, time, slices }
    }

    /// What is left to check record by record so that only those of the range show.
    fn within(&self) -> Result<Option<(usize, Range<i64>)>, SqlError> {
        if self.time == ALWAYS {
            return Ok(None);
        }
        let layout = self.snapshot.layout();
        let window = layout.spec().window;
        let aligned = |time: i64| time == i64::MIN || time == i64::MAX || window_of(window, time) == time;
        let whole_windows = aligned(self.time.start) && aligned(self.time.end);
        if window != Window::None && whole_windows && layout.rows_keep_to_windows() {
            return Ok(None);
        }
        let time = self.time_field().and_then(|name| self.schema.index_of(name).ok());
        match time {
            Some(time) => Ok(Some((time, self.time.clone()))),
            None => Err(SqlError::NoTime { table: self.snapshot.table().name().to_owned() }),
        }
    }

    /// The order within a slice, as the layout promises it.
    fn ordering(&self) -> Option<LexOrdering> {
        let fields = self.snapshot.layout().record_order();
        let options = SortOptions { descending: false, nulls_first: false };
        LexOrdering::new(fields.into_iter().filter_map(|field| {
            let name = self.schema.fields().get(field)?.name();
            Some(PhysicalSortExpr::new(Arc::new(Column::new(name, field)), options))
        }))
    }
}

#[async_trait]
impl TableProvider for RecordsTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    /// A filter that bounds single columns narrows keys and windows, and may let others pass
    /// (inexact). What joins columns, computes with them or negates narrows neither (unsupported).
    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> Result<Vec<TableProviderFilterPushDown>> {
        let support = |filter: &&Expr| match bounds(filter, &self.schema) {
            Some(_) if self.push_down => TableProviderFilterPushDown::Inexact,
            _ => TableProviderFilterPushDown::Unsupported,
        };
        Ok(filters.iter().map(support).collect())
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let Selection { keys, time, slices } = self.select(filters);
        let shape = Shape::Records { within: self.within().map_err(external)? };
        let (snapshot, pass) = (self.snapshot.clone(), self.pass.clone());
        let even = state.config().get_extension::<EvenBatches>().is_some();
        let scan = TableScan { snapshot, shape, keys, time, pass, even, push_down: self.push_down };
        data_source(state, scan, Arc::clone(&self.schema), slices, self.ordering(), projection, limit)
    }
}

/// The plan node of a scan. `ordering` is that of one slice.
pub(crate) fn data_source(
    state: &dyn Session,
    scan: TableScan,
    schema: SchemaRef,
    slices: Vec<ScanRange>,
    ordering: Option<LexOrdering>,
    projection: Option<&Vec<usize>>,
    limit: Option<usize>,
) -> Result<Arc<dyn ExecutionPlan>> {
    let partitions = if is_little(&scan.snapshot, &slices) { 1 } else { state.config().target_partitions() };
    let slices = cut(&scan.snapshot, slices, partitions).map_err(external)?;
    let mut ssts: Vec<&String> = slices.iter().flat_map(|slice| &slice.ssts).collect();
    ssts.sort_unstable();
    ssts.dedup();
    let ssts = ssts.len();
    let statistics = statistics(&scan.snapshot, &slices, &schema);
    let count = slices.len();
    // One slice after another is in order by itself only, for windows share keys.
    let orderings = ordering.clone().filter(|_| slices.len() <= partitions);
    let groups = file_groups(&scan.snapshot, slices, partitions);
    let source = Arc::new(SstSource::new(scan, schema, ordering, (count, ssts)));
    let config = FileScanConfigBuilder::new(ObjectStoreUrl::local_filesystem(), source)
        .with_file_groups(groups)
        .with_statistics(statistics)
        .with_output_ordering(orderings.into_iter().collect())
        .with_limit(limit)
        .with_projection_indices(projection.cloned())?
        .build();
    Ok(DataSourceExec::from_data_source(config))
}
