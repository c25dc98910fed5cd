//! Opens the root of a project: a directory, or a prefix of a bucket.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use tidetable_source::Secret;
use tidetable_store::storage::BucketBlobs;
use tidetable_store::{Blobs, LocalBlobs, StoreError};
use tokio::runtime::{Builder, Handle, Runtime};

use crate::project::Project;
use crate::run::RunError;
use crate::run::secrets;

/// Threads that wait for replies of a bucket. They decode nothing, so few are enough for many requests.
const THREADS: usize = 2;

/// The storage of the root of a project.
///
/// # Errors
/// If it is in a bucket, and its settings are missing or wrong. Nothing is asked of a bucket.
pub(crate) fn open_root(project: &Project) -> Result<Arc<dyn Blobs>, RunError> {
    if !project.root_is_url() {
        return Ok(Arc::new(LocalBlobs::new(PathBuf::from(&project.root))));
    }
    let mut settings = Vec::new();
    for setting in project.storage.iter().filter(|setting| setting.is_for(&project.root)) {
        let value = secrets::value(project, &setting.value)
            .map_err(|reason| RunError::RootSecret { key: setting.key, reason })?;
        settings.extend(setting.options.iter().map(|option| ((*option).to_owned(), Secret::new(value.clone()))));
    }
    match BucketBlobs::open(&project.root, settings, handle()?) {
        Ok(bucket) => Ok(Arc::new(bucket)),
        Err(StoreError::Source(source)) => Err(RunError::Root { source: Box::new(source) }),
        Err(error) => Err(error.into()),
    }
}

/// The runtime of the requests to buckets. It is not that of queries, whose threads may wait for requests.
fn handle() -> Result<Handle, RunError> {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    if let Some(runtime) = RUNTIME.get() {
        return Ok(runtime.handle().clone());
    }
    let runtime = Builder::new_multi_thread().worker_threads(THREADS).thread_name("bucket").enable_all().build();
    let runtime = runtime.map_err(RunError::Runtime)?;
    Ok(RUNTIME.get_or_init(|| runtime).handle().clone())
}
