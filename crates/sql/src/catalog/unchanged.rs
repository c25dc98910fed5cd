//! Local files of exports, which are read only as they were when the query was planned.
//!
//! A run that publishes a part again puts other files in the places of the old ones. A query that was planned before would
//! take the bytes of the new file for those of the old one. Here each read compares the file that it opened, by inode, size and
//! time of change, with the one that was there at planning, and fails if it is another; the query is then planned again.

use std::collections::HashMap;
use std::fmt::{self, Display, Formatter};
use std::fs::Metadata;
use std::ops::Range;
use std::os::unix::fs::MetadataExt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use bytes::Bytes;
use datafusion::object_store::local::LocalFileSystem;
use datafusion::object_store::path::Path;
use datafusion::object_store::{
    CopyOptions, Error, GetOptions, GetResult, GetResultPayload, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    ObjectStoreExt, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result, coalesce_ranges,
};
use futures::stream::BoxStream;

use crate::error::SqlError;

/// Bytes between two ranges of a file that are read together.
const MAX_GAP_BYTES: u64 = 1 << 20;

/// The local file system, in which the files of exports do not change.
#[derive(Debug, Default)]
pub(crate) struct UnchangedFiles {
    files: LocalFileSystem,
    expected: Mutex<ExpectedFiles>,
}

#[derive(Debug, Default)]
struct ExpectedFiles {
    /// The files that are read, with the stamp that each must keep.
    stamps: HashMap<Path, Stamp>,
    /// A file that was another when it was read.
    replaced: Option<Path>,
}

/// What distinguishes a file from others that are put in its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    inode: u64,
    bytes: u64,
    /// Time of the last change: seconds since the epoch, and nanoseconds.
    changed: (i64, i64),
}

impl Stamp {
    fn of(file: &Metadata) -> Self {
        Self { inode: file.ino(), bytes: file.size(), changed: (file.mtime(), file.mtime_nsec()) }
    }
}

impl UnchangedFiles {
    /// Records the files at `paths` as they are now: reads of them fail once they are others. A file that is missing is
    /// missed when it is listed.
    pub(crate) fn record_stamps<'a>(&self, paths: impl Iterator<Item = &'a Path>) {
        let mut expected = self.expected();
        for path in paths {
            // Another scan of the query may have planned it before.
            if !expected.stamps.contains_key(path)
                && let Ok(local) = self.files.path_to_filesystem(path)
                && let Ok(file) = std::fs::metadata(local)
            {
                expected.stamps.insert(path.clone(), Stamp::of(&file));
            }
        }
    }

    /// Expects nothing of any file from now on.
    pub(crate) fn forget(&self) {
        *self.expected() = ExpectedFiles::default();
    }

    /// Whether any file of an export is read now.
    pub(crate) fn are_read(&self) -> bool {
        !self.expected().stamps.is_empty()
    }

    /// Whether a file was another when it was read.
    pub(crate) fn were_replaced(&self) -> bool {
        self.expected().replaced.is_some()
    }

    fn expected(&self) -> MutexGuard<'_, ExpectedFiles> {
        self.expected.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that a file was replaced while it was read; returns the error of the read.
    fn replaced(&self, path: &Path) -> Error {
        self.expected().replaced = Some(path.clone());
        let source = Box::new(SqlError::PublishedReplaced { path: format!("/{path}") });
        Error::Generic { store: "published files", source }
    }
}

impl Display for UnchangedFiles {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.files.fmt(f)
    }
}

#[async_trait]
impl ObjectStore for UnchangedFiles {
    async fn put_opts(&self, path: &Path, payload: PutPayload, options: PutOptions) -> Result<PutResult> {
        self.files.put_opts(path, payload, options).await
    }

    async fn put_multipart_opts(&self, path: &Path, options: PutMultipartOptions) -> Result<Box<dyn MultipartUpload>> {
        self.files.put_multipart_opts(path, options).await
    }

    async fn get_opts(&self, path: &Path, options: GetOptions) -> Result<GetResult> {
        let stamp = self.expected().stamps.get(path).copied();
        let found = self.files.get_opts(path, options).await;
        let Some(stamp) = stamp else { return found };
        match found {
            Ok(found) => match &found.payload {
                // By what was opened: a path may name another file by now.
                GetResultPayload::File(file, _) if file.metadata().is_ok_and(|file| Stamp::of(&file) == stamp) => {
                    Ok(found)
                }
                _ => Err(self.replaced(path)),
            },
            Err(Error::NotFound { .. }) => Err(self.replaced(path)),
            other => other,
        }
    }

    async fn get_ranges(&self, path: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        let is_expected = self.expected().stamps.contains_key(path);
        if !is_expected {
            return self.files.get_ranges(path, ranges).await;
        }
        coalesce_ranges(ranges, |range| self.get_range(path, range), MAX_GAP_BYTES).await
    }

    fn delete_stream(&self, paths: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        self.files.delete_stream(paths)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.files.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.files.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.files.copy_opts(from, to, options).await
    }
}
