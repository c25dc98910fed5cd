//! The files of a published table: all of them, as they were published, or an error. For DataFusion 55.2 a missing file is no
//! file (row "Missing files" of `docs/datafusion-workarounds.md`), and changed bytes of a column are values.

use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider};
use datafusion::datasource::TableType;
use datafusion::datasource::listing::ListingTable;
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown};
use datafusion::physical_plan::ExecutionPlan;
use tidetable_store::{FileState, Part, PartFile, Published, Store, StoreError};

use crate::error::{SqlError, external};

/// The files of a published table.
#[derive(Debug)]
pub(crate) struct PublishedTable {
    pub(crate) files: Arc<ListingTable>,
    pub(crate) store: Store,
    /// The export.
    pub(crate) list: String,
    /// Its files, by their paths.
    pub(crate) parts: Vec<(String, PartFile)>,
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
        self.check().map_err(external)?;
        let plan = self.files.scan(state, projection, filters, limit).await?;
        // Names of files that are not replaced in one are used once: what is there now was there when it was listed.
        match gone(&self.store, self.parts.iter().map(|(path, _)| path.clone())).map_err(external)? {
            Some(path) => Err(external(SqlError::PublishedGone { path })),
            None => Ok(plan),
        }
    }
}

impl PublishedTable {
    /// Whether all files are there, and none was written to since it was published.
    fn check(&self) -> std::result::Result<(), SqlError> {
        let blobs = self.store.blobs().as_ref();
        for (path, file) in &self.parts {
            match file.state(blobs, path)? {
                FileState::AsPublished | FileState::SameBytes(_) | FileState::Another => {}
                FileState::Missing => return Err(SqlError::PublishedGone { path: path.clone() }),
                // It may have been published again since its list was read.
                FileState::Changed if self.is_listed_otherwise(path, file)? => {}
                FileState::Changed => return Err(SqlError::PublishedDamaged { path: path.clone() }),
            }
        }
        Ok(())
    }

    fn is_listed_otherwise(&self, path: &str, file: &PartFile) -> std::result::Result<bool, StoreError> {
        let list = Published::load(self.store.blobs().as_ref(), &self.list)?;
        let now = list.parts.values().flat_map(Part::files_at).find(|(other, _)| other == path);
        Ok(now.is_some_and(|(_, now)| now != *file))
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
