//! What a scan reads, and what it gives.

use std::ops::Range;
use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use datafusion::physical_plan::PhysicalExpr;
use tidetable_layout::KeyRange;
use tidetable_store::Snapshot;

use crate::aggregate::spec::ScanAggregate;
use crate::catalog::schema::RowView;
use crate::shared_scan::InPass;

/// Session extension: batch sizes do not depend on the boundaries of files and stripes.
#[derive(Debug)]
pub(crate) struct EvenBatches;

/// What a scan of a table gives.
#[derive(Debug, Clone)]
pub(crate) enum Shape {
    /// Records; `within` keeps only those whose event time, a record field, lies in a range.
    Records { within: Option<(usize, Range<i64>)> },
    /// Cells.
    Cells,
    /// Rows.
    Rows(RowView),
}

/// What a scan of a table reads.
#[derive(Debug)]
pub(crate) struct TableScan {
    pub(crate) snapshot: Snapshot,
    pub(crate) shape: Shape,
    /// The keys asked for.
    pub(crate) keys: Vec<KeyRange>,
    /// The event times asked for, microseconds.
    pub(crate) time: Range<i64>,
    /// What may have read the records, with those of other periods.
    pub(crate) pass: Option<InPass>,
    /// Whether all batches of a slice but the last are as long as they may be.
    pub(crate) even: bool,
    /// Whether filters and aggregations may be left to the scan.
    pub(crate) push_down: bool,
}

/// What is to be done with each slice.
#[derive(Clone)]
pub(crate) struct Work {
    pub(crate) scan: Arc<TableScan>,
    /// What slices hold.
    pub(crate) stored: SchemaRef,
    /// Expressions over it.
    pub(crate) filters: Vec<Arc<dyn PhysicalExpr>>,
    pub(crate) aggregate: Option<Arc<ScanAggregate>>,
    /// Columns of the table, or of what is summed up, to give, ascending.
    pub(crate) columns: Vec<usize>,
    /// The schema they make.
    pub(crate) schema: SchemaRef,
    pub(crate) batch_size: usize,
}
