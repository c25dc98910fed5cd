//! The files of a published table: all of them, or an error. The engine takes a file that is not there for no file.

use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider};
use datafusion::datasource::TableType;
use datafusion::datasource::listing::ListingTable;
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown};
use datafusion::physical_plan::ExecutionPlan;
use tidetable_store::{Store, StoreError};

use crate::error::{SqlError, external};

/// The files of a published table.
#[derive(Debug)]
pub(crate) struct PublishedTable {
    pub(crate) files: Arc<ListingTable>,
    pub(crate) store: Store,
    pub(crate) paths: Vec<String>,
}

#[async_trait]
impl TableProvider for PublishedTable {
    fn schema(&self) -> SchemaRef {
        self.files.schema()
    }

    fn table_type(&self) -> TableType {
        self.files.table_type()
    }

    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> Result<Vec<TableProviderFilterPushDown>> {
        self.files.supports_filters_pushdown(filters)
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let plan = self.files.scan(state, projection, filters, limit).await?;
        // Names of files that are not replaced in one are used once: what is there now was there when it was listed.
        match gone(&self.store, self.paths.iter().cloned()).map_err(external)? {
            Some(path) => Err(external(SqlError::PublishedGone { path })),
            None => Ok(plan),
        }
    }
}

/// The first of `paths` that is not there.
pub(crate) fn gone(
    store: &Store,
    mut paths: impl Iterator<Item = String>,
) -> std::result::Result<Option<String>, StoreError> {
    paths
        .find_map(|path| match store.blobs().stat(&path) {
            Ok(Some(_)) => None,
            Ok(None) => Some(Ok(path)),
            Err(error) => Some(Err(error)),
        })
        .transpose()
}
