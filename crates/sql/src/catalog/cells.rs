//! Table provider of `cells.T`: one row per cell, as in Bigtable.

use std::sync::Arc;

use arrow::compute::SortOptions;
use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider};
use datafusion::datasource::TableType;
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{LexOrdering, PhysicalSortExpr};
use datafusion::physical_plan::ExecutionPlan;
use tidetable_store::Snapshot;

use crate::catalog::records::{ALWAYS, data_source};
use crate::pushdown::key_ranges::{key_push_down, keys_of};
use crate::scan::spec::{Shape, TableScan};

const ROW_KEY: &str = "row_key";

/// The cells of a table version.
#[derive(Debug)]
pub(crate) struct CellsTable {
    snapshot: Snapshot,
    schema: SchemaRef,
    push_down: bool,
}

impl CellsTable {
    pub(crate) fn new(snapshot: Snapshot, push_down: bool) -> Self {
        Self { snapshot, schema: Arc::new(cells_schema()), push_down }
    }

    /// Ascending by row key, family and qualifier, then newest first.
    fn ordering(&self) -> Option<LexOrdering> {
        let columns = self.schema.fields().iter().enumerate().take(4);
        LexOrdering::new(columns.map(|(at, field)| {
            let options = SortOptions { descending: at == 3, nulls_first: at == 3 };
            PhysicalSortExpr::new(Arc::new(Column::new(field.name(), at)), options)
        }))
    }
}

#[async_trait]
impl TableProvider for CellsTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    /// Filters on the row key become key ranges (inexact: DataFusion compares the bytes again). Filters on other
    /// columns concern the inside of rows, which are read whole.
    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> Result<Vec<TableProviderFilterPushDown>> {
        Ok(key_push_down(filters, ROW_KEY, self.push_down))
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let keys = keys_of(filters, ROW_KEY, self.push_down);
        // Ranges span all windows, so that cells come in key order.
        let slices = keys.iter().filter_map(|range| self.snapshot.whole(range)).collect();
        let scan = TableScan {
            snapshot: self.snapshot.clone(),
            shape: Shape::Cells,
            keys,
            time: ALWAYS,
            pass: None,
            even: false,
            push_down: self.push_down,
        };
        data_source(state, scan, Arc::clone(&self.schema), slices, self.ordering(), projection, limit)
    }
}
