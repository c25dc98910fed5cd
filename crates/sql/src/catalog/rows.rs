//! `rows.T`: a row of the table a row, each family a map, as GoogleSQL for Bigtable shows it.

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
use crate::scan::source::{Shape, TableScan};
use crate::views::options::CellsShown;

/// Name of the column of row keys.
pub(crate) const KEY: &str = "_key";

/// The rows of a version of a table.
#[derive(Debug)]
pub(crate) struct RowsTable {
    snapshot: Snapshot,
    view: RowView,
    schema: SchemaRef,
    push_down: bool,
}

/// What is shown of rows.
#[derive(Debug, Clone)]
pub(crate) struct RowView {
    /// The families by name; family `n` is column `n + 1`.
    pub(crate) families: Arc<Vec<String>>,
    pub(crate) shown: CellsShown,
}

impl RowView {
    /// `_key`, and a map for each family. No map is null: a row without cells of a family has an
    /// empty one.
    pub(crate) fn schema(&self) -> Schema {
        let value = if self.shown.with_history { DataType::List(cell_field()) } else { DataType::Binary };
        // No value is null, but the engine's functions of maps take only maps whose values may be.
        let value = Field::new("value", value, true);
        let entries = Fields::from(vec![Field::new("key", DataType::Binary, false), value]);
        let entries = Arc::new(Field::new("entries", DataType::Struct(entries), false));
        let family = |name: &String| Field::new(name, DataType::Map(Arc::clone(&entries), false), false);
        let key = Field::new(KEY, DataType::Binary, false);
        Schema::new(std::iter::once(key).chain(self.families.iter().map(family)).collect::<Vec<_>>())
    }
}

/// The families of a table by name.
pub(crate) fn families(layout: &Layout) -> Arc<Vec<String>> {
    let declared = layout.spec().families.iter().map(|family| family.name.as_str());
    let stored = layout.stored().groups.iter().flat_map(|group| &group.columns);
    let families: BTreeSet<&str> = declared.chain(stored.map(|column| column.family.as_str())).collect();
    Arc::new(families.into_iter().map(str::to_owned).collect())
}

/// The items of a history.
pub(crate) fn cell_field() -> Arc<Field> {
    Arc::new(Field::new("item", DataType::Struct(cell_fields()), false))
}

/// A version of a column.
pub(crate) fn cell_fields() -> Fields {
    let time = DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
    Fields::from(vec![Field::new("timestamp", time, false), Field::new("value", DataType::Binary, false)])
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

    /// As for cells: the row key narrows what is read, and is compared again.
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
        // Across windows: a row may lie in several, and is one row here.
        let slices = keys.iter().filter_map(|range| self.snapshot.whole(range)).collect();
        let shape = Shape::Rows(self.view.clone());
        // Time bounds are about cells, of which a row has some at 0 whatever its window.
        let (snapshot, push_down) = (self.snapshot.clone(), self.push_down);
        let scan = TableScan { snapshot, shape, keys, time: ALWAYS, pass: None, even: false, push_down };
        data_source(state, scan, Arc::clone(&self.schema), slices, self.ordering(), projection, limit)
    }
}
