//! Table provider of `rows.T`: one row per row key, with a map for each family, as in GoogleSQL for Bigtable.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow::compute::SortOptions;
use arrow::datatypes::{DataType, Field, Fields, Schema, SchemaRef, TimeUnit};
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider};
use datafusion::datasource::TableType;
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{LexOrdering, PhysicalSortExpr};
use datafusion::physical_plan::ExecutionPlan;
use tidetable_layout::Layout;
use tidetable_store::Snapshot;

use crate::catalog::records::{ALWAYS, data_source};
use crate::pushdown::key_ranges::{key_push_down, keys_of};
use crate::scan::spec::{Shape, TableScan};
use crate::views::options::CellsShown;

/// The rows of a table version.
#[derive(Debug)]
pub(crate) struct RowsTable {
    snapshot: Snapshot,
    view: RowView,
    schema: SchemaRef,
    push_down: bool,
}

impl RowsTable {
    pub(crate) fn new(snapshot: Snapshot, shown: CellsShown, push_down: bool) -> Self {
        let snapshot = if shown.include_expired { snapshot.including_expired() } else { snapshot };
        let view = RowView { families: families(snapshot.layout()), shown };
        Self { schema: Arc::new(view.schema()), snapshot, view, push_down }
    }

    fn ordering(&self) -> Option<LexOrdering> {
        let key = Arc::new(Column::new(KEY, 0));
        LexOrdering::new([PhysicalSortExpr::new(key, SortOptions { descending: false, nulls_first: false })])
    }
}

#[async_trait]
impl TableProvider for RowsTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    /// Filters on the row key become key ranges (inexact).
    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> Result<Vec<TableProviderFilterPushDown>> {
        Ok(key_push_down(filters, KEY, self.push_down))
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let keys = keys_of(filters, KEY, self.push_down);
        // Ranges span all windows: a row may have cells in several.
        let slices = keys.iter().filter_map(|range| self.snapshot.whole(range)).collect();
        let shape = Shape::Rows(self.view.clone());
        // Timestamp bounds do not select windows: a row in any window may have cells at 0.
        let (snapshot, push_down) = (self.snapshot.clone(), self.push_down);
        let scan = TableScan { snapshot, shape, keys, time: ALWAYS, pass: None, even: false, push_down };
        data_source(state, scan, Arc::clone(&self.schema), slices, self.ordering(), projection, limit)
    }
}
