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
    /// The lease on a job was lost: another run has taken it, or may have.
    #[error("{}", said_of_lease(job, *is_taken))]
    LeaseLost {
        /// The job.
        job: String,
        /// Whether another run has it for certain.
        is_taken: bool,
    },
    /// The bucket cannot be opened: its URL, its settings or its credentials are invalid.
    #[error(transparent)]
    Open(#[from] SourceError),
}

/// What happened to the lease on `job`, what stays, and what to do.
fn said_of_lease(job: &str, is_taken: bool) -> String {
    let (what, next) = match is_taken {
        true => (
            "this run did not renew its lock in time (its machine slept, or the bucket could not be reached), and another run has taken it",
            "The other run does the rest",
        ),
        false => (
            "this run could not renew its lock in time (its machine slept, or the bucket could not be reached), and stopped before \
             another takes it",
            "Run it again: the next run does the rest",
        ),
    };
    format!(
        "job {job}: {what}. What was committed and published stays, and nothing was written since. {next}; `tidetable status {job}` \
         shows it. If this comes again, raise `lease` of [root] in tidetable.toml"
    )
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
