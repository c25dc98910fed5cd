//! Table provider of published files that fails unless every file is present and unchanged. DataFusion 55.2 treats a
//! missing file as empty (row "Missing files" of `docs/datafusion-workarounds.md`), and reads changed bytes as values.

use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider};
use datafusion::datasource::TableType;
use datafusion::datasource::listing::ListingTable;
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown};
use datafusion::physical_plan::ExecutionPlan;
use tidetable_store::published::{FileState, Part, PartFile, Published};
use tidetable_store::{Store, StoreError};

use crate::error::{SqlError, external};

/// Published files as a table.
#[derive(Debug)]
pub(crate) struct PublishedTable {
    pub(crate) files: Arc<ListingTable>,
    pub(crate) store: Store,
    /// Export name.
    pub(crate) list: String,
    /// Its files by path.
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
        // Parts that cannot be swapped atomically never reuse file names, so a file present now was also present at the
        // listing.
        match gone(&self.store, self.parts.iter().map(|(path, _)| path.clone())).map_err(external)? {
            Some(path) => Err(external(SqlError::PublishedGone { path })),
            None => Ok(plan),
        }
    }
}

impl PublishedTable {
    /// Fails if a file is missing, or was modified after publication.
    fn check(&self) -> std::result::Result<(), SqlError> {
        let blobs = self.store.blobs().as_ref();
        let paths: Vec<String> = self.parts.iter().map(|(path, _)| path.clone()).collect();
        for ((path, file), found) in self.parts.iter().zip(blobs.stat_all(&paths)?) {
            match file.state_by(blobs, path, found)? {
                FileState::AsPublished | FileState::SameBytes(_) | FileState::Another => {}
                FileState::Missing => return Err(SqlError::PublishedGone { path: path.clone() }),
                // The part may have been published again since the list was read.
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

/// The first of `paths` that does not exist.
pub(crate) fn gone(
    store: &Store,
    paths: impl Iterator<Item = String>,
) -> std::result::Result<Option<String>, StoreError> {
    let paths: Vec<String> = paths.collect();
    let found = store.blobs().stat_all(&paths)?;
    Ok(paths.into_iter().zip(found).find_map(|(path, found)| found.is_none().then_some(path)))
}
