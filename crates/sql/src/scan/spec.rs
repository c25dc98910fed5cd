//! Specification of a scan: what it reads and outputs.

use std::ops::Range;
use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use datafusion::physical_plan::PhysicalExpr;
use tidetable_layout::KeyRange;
use tidetable_store::Snapshot;

use crate::aggregate::spec::ScanAggregate;
use crate::schema::RowView;

/// Session extension: batch sizes do not depend on the boundaries of files and stripes.
#[derive(Debug)]
pub(crate) struct FixedBatchSize;

/// Output of a scan.
#[derive(Debug, Clone)]
pub(crate) enum ScanOutput {
    /// Records; `within`: the index of the event time and the range that it must lie in.
    Records { within: Option<(usize, Range<i64>)> },
    /// Cells.
    Cells,
    /// Rows.
    Rows(RowView),
}

/// Input of a scan.
#[derive(Debug)]
pub(crate) struct TableScan {
    pub(crate) snapshot: Snapshot,
    pub(crate) output: ScanOutput,
    /// Key ranges to read.
    pub(crate) keys: Vec<KeyRange>,
    /// Event times to read, microseconds, half-open.
    pub(crate) time: Range<i64>,
    /// Whether all batches but the last of a range have the full size.
    pub(crate) even: bool,
    /// Whether filters and aggregations may be pushed down.
    pub(crate) push_down: bool,
}

/// What a scan does with each range.
#[derive(Clone)]
pub(crate) struct ScanTask {
    pub(crate) scan: Arc<TableScan>,
    /// Schema of the table.
    pub(crate) stored: SchemaRef,
    /// Filters over that schema.
    pub(crate) filters: Vec<Arc<dyn PhysicalExpr>>,
    /// Dynamic filters over that schema; they prune stripes only.
    pub(crate) dynamic_filters: Vec<Arc<dyn PhysicalExpr>>,
    pub(crate) aggregate: Option<Arc<ScanAggregate>>,
    /// Whether records may come in any order.
    pub(crate) unordered: bool,
    /// Output columns, of the table or of the aggregation, ascending.
    pub(crate) columns: Vec<usize>,
    /// Schema of the output columns.
    pub(crate) schema: SchemaRef,
    pub(crate) batch_size: usize,
}
