//! The object stores of a server: the files of its root, to be read, and nothing else.

use std::fmt;
use std::path::Path as FilePath;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::object_store::ObjectStoreRegistry;
use datafusion::object_store::local::LocalFileSystem;
use datafusion::object_store::memory::InMemory;
use datafusion::object_store::path::Path;
use datafusion::object_store::prefix::PrefixStore;
use datafusion::object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, Result as StoreResult,
};
use futures::stream::BoxStream;
use tidetable_store::Store;
use url::Url;

/// The scheme of roots in plans.
const SCHEME: &str = "root";

/// The URL of the root that is named by `key`.
pub(crate) fn url_of(key: &str) -> String {
    format!("{SCHEME}://{key}/")
}

/// The stores of a process.
#[derive(Debug)]
pub(crate) enum RootStores {
    /// A process that decodes plans and reads nothing.
    Unread(Arc<dyn ObjectStore>),
    /// An executor: the key of its root, and the files there.
    Of(String, Option<Arc<dyn ObjectStore>>),
}

impl RootStores {
    pub(crate) fn unread() -> Self {
        Self::Unread(Arc::new(InMemory::new()))
    }

    /// The files of the root `key`, which holds `store`. A root without a directory yet has no files.
    pub(crate) fn of(key: &str, store: &Store) -> Self {
        let files: Option<Arc<dyn ObjectStore>> = match store.blobs().bucket() {
            Some(bucket) => Some(Arc::new(ReadOnly(PrefixStore::new(bucket.client, bucket.prefix)))),
            None => {
                let root = std::path::absolute(FilePath::new(&store.blobs().display().to_string()));
                let files = root.ok().and_then(|root| LocalFileSystem::new_with_prefix(root).ok());
                files.map(|files| Arc::new(ReadOnly(files)) as Arc<dyn ObjectStore>)
            }
        };
        Self::Of(key.to_owned(), files)
    }
}

impl ObjectStoreRegistry for RootStores {
    /// Registers nothing: what is read is fixed.
    fn register_store(&self, _: &Url, _: Arc<dyn ObjectStore>) -> Option<Arc<dyn ObjectStore>> {
        None
    }

    fn get_store(&self, url: &Url) -> Result<Arc<dyn ObjectStore>> {
        let refused = |text: &str| Err(DataFusionError::Execution(text.to_owned()));
        match self {
            _ if url.scheme() != SCHEME => refused("executors read the files of their root only"),
            Self::Unread(store) => Ok(Arc::clone(store)),
            Self::Of(key, Some(files)) if url.host_str() == Some(key) => Ok(Arc::clone(files)),
            Self::Of(..) => refused(
                "this executor has another build or another root than the query: install the same build on all machines, and \
                 start it with --root as the query has it",
            ),
        }
    }
}

/// Files that are only read.
#[derive(Debug)]
struct ReadOnly<S>(S);

impl<S: fmt::Debug> fmt::Display for ReadOnly<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the root, read-only")
    }
}

fn read_only<T>() -> StoreResult<T> {
    Err(Error::NotSupported { source: "queries write nothing in the root".into() })
}

#[async_trait]
impl<S: ObjectStore> ObjectStore for ReadOnly<S> {
    async fn put_opts(&self, _: &Path, _: PutPayload, _: PutOptions) -> StoreResult<PutResult> {
        read_only()
    }

    async fn put_multipart_opts(&self, _: &Path, _: PutMultipartOptions) -> StoreResult<Box<dyn MultipartUpload>> {
        read_only()
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> StoreResult<GetResult> {
        self.0.get_opts(location, options).await
    }

    fn delete_stream(&self, _: BoxStream<'static, StoreResult<Path>>) -> BoxStream<'static, StoreResult<Path>> {
        Box::pin(futures::stream::once(async { read_only() }))
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, StoreResult<ObjectMeta>> {
        self.0.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> StoreResult<ListResult> {
        self.0.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, _: &Path, _: &Path, _: CopyOptions) -> StoreResult<()> {
        read_only()
    }
}
