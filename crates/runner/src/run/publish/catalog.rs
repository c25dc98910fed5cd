//! Commits what is published to the REST catalog of a job, after the metadata beside the files is written. The list of an export
//! notes which version the catalog has: a run that owes it nothing asks nothing, and one that could not commit leaves it to the next.

use std::time::Duration;

use serde_json::Value;
use tidetable_export::{CatalogTable, Pinned};
use tidetable_job::{Catalog, Export};
use tidetable_store::published::Published;
use tokio::time::timeout;

use crate::fault::catalog_failure::CatalogFailure;
use crate::fault::error::RunError;
use crate::run::publish::catalog_client::CatalogClient;
use crate::run::publish::stage::PublishStage;

/// Time limit for what is asked of a catalog before the metadata is written, and again after it.
const LONGEST: Duration = Duration::from_secs(120);

/// An export in the catalog of its job.
pub(crate) struct ExportInCatalog<'a> {
    stage: &'a PublishStage<'a>,
    export: &'a Export,
    catalog: &'a Catalog,
    /// The table in words, as lists note it.
    table: String,
    /// What the catalog has, once it was asked.
    asked: Option<Result<Asked<'a>, CatalogFailure>>,
}

/// An open catalog, and what it has of the table.
struct Asked<'a> {
    client: CatalogClient<'a>,
    /// The metadata of the table; `None` if the catalog has no such table.
    theirs: Option<Value>,
}

impl<'a> ExportInCatalog<'a> {
    /// The export, if the job has a catalog and it is a table there.
    pub(crate) fn of(stage: &'a PublishStage<'a>, export: &'a Export) -> Option<Self> {
        let catalog = stage.job.catalog_of(export)?;
        Some(Self { stage, export, catalog, table: catalog.table(&export.name), asked: None })
    }

    /// Whether the catalog lacks a version of the metadata.
    pub(crate) fn is_owed(&self, published: &Published) -> bool {
        published.owed_to(&self.table).is_some()
    }

    /// The snapshots that readers of the catalog may be at, as tags and branches there name them.
    pub(crate) fn pinned(&mut self) -> Result<Pinned, RunError> {
        Ok(match self.ask()? {
            Ok(asked) => Pinned::by_catalog(asked.theirs.as_ref()),
            Err(_) => Pinned::All,
        })
    }

    /// Commits what the catalog lacks, and notes it in the list, which is saved.
    pub(crate) fn bring_up(&mut self, published: &mut Published) -> Result<(), RunError> {
        let name = self.table.clone();
        let failed = |source| RunError::Catalog { table: name.clone(), source: Box::new(source) };
        let blobs = self.stage.store.blobs().as_ref();
        let Some(place) = self.export.log_place() else { return Ok(()) };
        let Some(table) = CatalogTable::open(blobs, place.folder).map_err(|error| failed(error.into()))? else {
            return Ok(());
        };
        self.ask()?;
        let Some(asked) = self.asked.take() else { return Ok(()) };

        let Asked { client, theirs } = asked.map_err(failed)?;
        self.stage.within_limit(client.bring_up(&table, theirs))?.map_err(failed)?;
        published.cataloged = Some(table.noted(name.clone()));
        Ok(published.save(blobs)?)
    }

    /// Asks the catalog, once.
    fn ask(&mut self) -> Result<&Result<Asked<'a>, CatalogFailure>, RunError> {
        let asked = match self.asked.take() {
            Some(asked) => asked,
            None => {
                let Self { stage, export, catalog, .. } = *self;
                stage.within_limit(async {
                    let client = CatalogClient::open(stage.project, catalog, &export.name).await?;
                    let theirs = client.load().await?;
                    Ok(Asked { client, theirs })
                })?
            }
        };
        Ok(self.asked.insert(asked))
    }
}

impl PublishStage<'_> {
    /// Waits for requests to a catalog, at most [`LONGEST`] and until the run is asked to stop.
    fn within_limit<T>(
        &self,
        work: impl Future<Output = Result<T, CatalogFailure>>,
    ) -> Result<Result<T, CatalogFailure>, RunError> {
        self.runtime.block_on(async {
            tokio::select! {
                done = timeout(LONGEST, work) => Ok(done.unwrap_or_else(|_| {
                    Err(CatalogFailure::NoAnswer { reason: format!("it did not answer within {} s", LONGEST.as_secs()) })
                })),
                stopped = self.options.stop.wait() => Err(stopped),
            }
        })
    }
}
