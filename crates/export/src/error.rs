//! Errors of publishing.

use arrow::error::ArrowError;
use parquet::errors::ParquetError;
use tidetable_blobs::BlobError;
use tidetable_sql::SqlError;
use tidetable_store::StoreError;

use crate::table::TableLog;

/// An error of publishing. The published part is unchanged.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "each message says what its fields are")]
pub enum ExportError {
    /// The query is invalid, or failed.
    #[error("{export}, {label}: {source}")]
    Query { export: String, label: String, source: Box<SqlError> },
    /// The rows could not be written.
    #[error("cannot write {path}: {source}; what was published before is unchanged")]
    Write { path: String, source: ArrowError },
    /// An existing file cannot be read.
    #[error("cannot read {path}: {source}; move it away")]
    Read { path: String, source: ParquetError },
    /// A file that no export has published is in the directory of a part.
    #[error("exports/{folder} holds a {file} that no export has published: move it away, nothing was written over it")]
    Stranger { folder: String, file: String },
    /// Some of the files of a part are missing.
    #[error("exports/{folder} holds some files of a day and not all of them: put the others back, or move these away")]
    Partial { folder: String },
    /// A file with rows of earlier runs, which cannot be recomputed, is damaged.
    #[error(
        "{path} is not as it was published, and holds rows of earlier runs that cannot be made again: put it back from a \
         backup, or remove its folder to begin without them"
    )]
    Damaged { path: String },
    /// A written file has disappeared.
    #[error("{path} was removed while the part was written; what was published before is unchanged, run again")]
    Gone { path: String },
    /// A part of several files cannot be replaced atomically.
    #[error(
        "exports/{folder} holds several files and cannot be replaced at once, for it holds a folder or lies on another disk \
         than the store: move its part-* files or that folder away, and run again"
    )]
    Elsewhere { folder: String },
    /// Two columns of the query have the same name.
    #[error("the query of {export} gives two columns called {column}: name one of them with AS")]
    DuplicateColumn { export: String, column: String },
    /// The log of a table that cannot be followed.
    #[error("the {} cannot be brought up to the list: {path}: {reason}", log.noun())]
    Log { log: TableLog, path: String, reason: String },
    /// An error of the store.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<BlobError> for ExportError {
    fn from(error: BlobError) -> Self {
        Self::Store(error.into())
    }
}

/// Result of this crate.
pub type Result<T, E = ExportError> = std::result::Result<T, E>;
