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

/// What a scan outputs: one of the three views of a table.
#[derive(Debug, Clone)]
pub(crate) enum ScanOutput {
    /// Records; `within`: the index of the event time and the range that it must lie in.
    Records { within: Option<(usize, Range<i64>)> },
    /// Cells, as `cells.T` shows them.
    Cells,
    /// Rows, as this view shows them.
    Rows(RowView),
}

/// What a scan reads, the same for all of its ranges.
#[derive(Debug)]
pub(crate) struct TableScan {
    pub(crate) snapshot: Snapshot,
    pub(crate) output: ScanOutput,
    /// Key ranges to read, ascending and disjoint.
    pub(crate) keys: Vec<KeyRange>,
    /// Event times to read, in microseconds, half-open.
    pub(crate) time: Range<i64>,
    /// Whether all batches but the last of a range have the full size.
    pub(crate) even: bool,
    /// Whether filters and aggregations may be pushed down into the scan.
    pub(crate) push_down: bool,
}

/// What a scan does with each of its ranges.
#[derive(Clone)]
pub(crate) struct ScanTask {
    pub(crate) scan: Arc<TableScan>,
    /// Schema of all columns of the table.
    pub(crate) stored: SchemaRef,
    /// Filters over that schema, all of which must hold.
    pub(crate) filters: Vec<Arc<dyn PhysicalExpr>>,
    /// Dynamic filters over that schema; they prune stripes only.
    pub(crate) dynamic_filters: Vec<Arc<dyn PhysicalExpr>>,
    pub(crate) aggregate: Option<Arc<ScanAggregate>>,
    /// Whether records may come in any order, so that SSTs need no merge.
    pub(crate) unordered: bool,
    /// Output columns, of the table or of the aggregation, ascending.
    pub(crate) columns: Vec<usize>,
    /// Schema of the output columns, in their order.
    pub(crate) schema: SchemaRef,
    pub(crate) batch_size: usize,
}
