//! Opens the root of a project and other places: directories, or prefixes of buckets.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use tidetable_blobs::{BlobError, Blobs, BucketBlobs, DiskCache, LocalBlobs};
use tidetable_job::Project;
use tidetable_source::{BucketUrl, Location, Secret, Storage, is_url};
use tokio::runtime::{Builder, Handle, Runtime};

use crate::fault::error::RunError;
use crate::secrets;

/// Threads that wait for replies of a bucket. They decode nothing, so few are enough for many requests.
const THREADS: usize = 2;
/// Bytes of a cache whose size is not set.
pub const CACHE_SIZE: u64 = 1 << 30;

/// The storage of the root of a project.
///
/// # Errors
/// If it is in a bucket, and its settings are missing or wrong. Nothing is asked of a bucket.
pub(crate) fn open_root(project: &Project) -> Result<Arc<dyn Blobs>, RunError> {
    match Location::parse(&project.root) {
        Ok(Location::Path(path)) => Ok(Arc::new(LocalBlobs::new(path))),
        Ok(Location::Bucket(url)) => open_bucket(project, &url, open_cache(project)),
        Err(source) => Err(RunError::Root { source: Box::new(source.into()) }),
    }
}

/// The storage at a place of the command line, such as that of backups: a folder, or a prefix of a bucket. The settings of the
/// project's bucket are for those of the same service, too.
///
/// # Errors
/// As of the root: if the settings of a bucket are missing or wrong. Nothing is asked of it.
pub fn open_location(project: &Project, place: &Location) -> Result<Arc<dyn Blobs>, RunError> {
    match place {
        Location::Path(path) => Ok(Arc::new(LocalBlobs::new(path.clone()))),
        Location::Bucket(url) => open_bucket(project, url, None),
    }
}

/// Files that `given` names, which no job reads yet, as inputs of the source `source`. The settings of the project's bucket are
/// for those of the same service, too.
///
/// # Errors
/// If such a setting is missing. Nothing is asked of a bucket.
pub fn files_storage(project: &Project, source: &str, given: &[String], handle: Handle) -> Result<Storage, RunError> {
    let storage = Storage::new(project.dir.clone(), Some(handle));
    match given.iter().find(|name| is_url(name)) {
        Some(url) => Ok(storage.with_settings(source, bucket_settings(project, url)?)),
        None => Ok(storage),
    }
}

/// What the project sets for the service of `url`: names of `object_store` for options, and their values.
fn bucket_settings(project: &Project, url: &str) -> Result<Vec<(String, Secret)>, RunError> {
    let mut settings = Vec::new();
    for setting in project.storage.iter().filter(|setting| setting.is_for(url)) {
        let value = secrets::value(project, &setting.value)
            .map_err(|reason| RunError::RootSecret { key: setting.key, reason })?;
        settings.extend(secrets::options_of(setting, &value));
    }
    Ok(settings)
}

fn open_bucket(project: &Project, url: &BucketUrl, cache: Option<DiskCache>) -> Result<Arc<dyn Blobs>, RunError> {
    let url = url.as_str();
    let settings = bucket_settings(project, url)?;
    match BucketBlobs::open(url, settings, cache, handle()?) {
        Ok(bucket) => Ok(Arc::new(bucket)),
        Err(BlobError::Open(source)) if url == project.root => Err(RunError::Root { source: Box::new(source) }),
        Err(BlobError::Open(source)) => Err(RunError::Place { place: url.to_owned(), source: Box::new(source) }),
        Err(error) => Err(error.into()),
    }
}

/// The cache of a project whose root is in a bucket; `None` if it has none, or there is no place for it.
pub fn open_cache(project: &Project) -> Option<DiskCache> {
    let size = project.cache.size.unwrap_or(CACHE_SIZE);
    (project.root_is_url() && size > 0).then(|| Some(DiskCache::new(cache_directory(project)?, size)))?
}

/// The directory of that cache.
pub fn cache_directory(project: &Project) -> Option<PathBuf> {
    if let Some(dir) = &project.cache.dir {
        return Some(project.dir.join(dir));
    }
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    // A relative path is to be ignored, says the XDG Base Directory Specification.
    let caches = set("XDG_CACHE_HOME").filter(|path| path.is_absolute());
    caches.or_else(|| Some(set("HOME")?.join(".cache"))).map(|caches| caches.join("tidetable/blocks"))
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
