//! Errors of storage. Each message states what failed and what to do next.

use std::io;

use tidetable_source::{BucketError, SourceError};

/// The path of the root in messages.
pub(crate) const ROOT: &str = "the root";

/// An error of storage on a disk or in a bucket.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "each message says what its fields are")]
pub enum BlobError {
    /// Reading or writing a file of the store failed.
    #[error("cannot {action} {}: {source}", full_path(path, source))]
    Io {
        /// The action, as a verb.
        action: &'static str,
        path: String,
        source: io::Error,
    },
    /// A file is where a directory is needed.
    #[error("{path} is a file where a directory is needed: move it away and run again; nothing was overwritten")]
    NotADirectory {
        /// Its path inside the store.
        path: String,
    },
    /// A file to create exists already.
    #[error("{path} exists already; nothing was overwritten")]
    Exists { path: String },
    /// The lease on a job was lost: another run may have taken it.
    #[error(
        "the lease on job {job} was lost: it could not be renewed in time, and another run may have taken it; nothing more was \
         written, and the next run continues"
    )]
    LeaseLost { job: String },
    /// The bucket cannot be opened: its URL, its settings or its credentials are invalid.
    #[error(transparent)]
    Open(#[from] SourceError),
}

impl BlobError {
    /// Whether there is no file at the path.
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::Io { source, .. } if source.kind() == io::ErrorKind::NotFound)
    }
}

/// Result of an operation of a storage, whose error names the action and the path.
pub type Result<T, E = BlobError> = std::result::Result<T, E>;

/// The path of a file, with the URL of the bucket that did not serve it: a command may use several.
fn full_path(path: &str, source: &io::Error) -> String {
    match source.get_ref().and_then(|inner| inner.downcast_ref::<BucketError>()) {
        Some(error) if path == ROOT => error.url().to_owned(),
        Some(error) => format!("{}/{path}", error.url().trim_end_matches('/')),
        None => path.to_owned(),
    }
}
