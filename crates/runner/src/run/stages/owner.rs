//! Whether the tables of a store are those that a job declares.

use tidetable_job::{Job, Project, Source, Table, TableInput};
use tidetable_store::version::TableIdentity;
use tidetable_store::{Store, StoreError};
use tokio::runtime::Handle;

use crate::fault::error::RunError;
use crate::fault::stop::Stop;
use crate::run::stages::pulled;
use crate::secrets::source_storage;

/// The identity of `table` of `job`; `source` is where its rows come from, or `None` for a derived table.
pub(crate) fn identity_of(job: &Job, table: &Table, source: Option<&Source>) -> TableIdentity {
    TableIdentity {
        job: job.name.clone(),
        spec: table.spec.clone(),
        source: table.layout.source().clone(),
        layout: table.fingerprint(source),
        gc: table.gc.iter().cloned().collect(),
    }
}

/// Checks that the tables of `job` that exist are its own and have the layouts that it declares, as a run demands without
/// `--rebuild`. Tables that cannot be read pass.
///
/// # Errors
/// [`StoreError::OwnedByOtherJob`], [`StoreError::LayoutChanged`], and those of opening the storage of a pulled source.
pub fn check_owner(project: &Project, job: &Job, store: &Store, runtime: &Handle) -> Result<(), RunError> {
    for table in &job.tables {
        let source = match &table.from {
            TableInput::Source(name) => job.sources.iter().find(|source| source.spec.name == *name),
            TableInput::Query { .. } => None,
        };

        match store.table(&table.spec.name).base(&identity_of(job, table, source)) {
            Err(error @ StoreError::OwnedByOtherJob { .. }) => return Err(error.into()),
            Err(error @ StoreError::LayoutChanged { .. }) => {
                let follows = match source {
                    Some(source) => follows_pull(project, job, store, table, source, runtime)?,
                    None => false,
                };
                if !follows {
                    return Err(error.into());
                }
            }
            Ok(_) | Err(_) => {}
        }
    }
    Ok(())
}

/// The tables of `store` that `job` made and no longer declares. Tables that cannot be read are left out.
///
/// # Errors
/// If the store cannot be listed.
pub fn undeclared(job: &Job, store: &Store) -> Result<Vec<String>, RunError> {
    let mut names = store.tables()?;
    names.retain(|name| {
        let latest = store.table(name).latest().ok().flatten();
        latest.is_some_and(|version| version.table.job == job.name) && job.table(name).is_none()
    });
    Ok(names)
}

/// Whether `table` holds pulled cells, and a run lets it follow the table of Bigtable.
fn follows_pull(
    project: &Project,
    job: &Job,
    store: &Store,
    table: &Table,
    source: &Source,
    runtime: &Handle,
) -> Result<bool, RunError> {
    let Some(latest) = store.table(&table.spec.name).latest()? else { return Ok(false) };
    let storage = source_storage(project, job, runtime, &Stop::default())?;
    let found = storage.find(&source.spec).map_err(StoreError::from)?;
    Ok(pulled::follows(&latest.table.spec, &table.spec, &found.pulled))
}
