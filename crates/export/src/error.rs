//! What can go wrong when a part is published.

use arrow::error::ArrowError;
use parquet::errors::ParquetError;
use tidetable_sql::SqlError;
use tidetable_store::StoreError;

/// An error of publishing. What was published before is still there.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExportError {
    /// The query is wrong, or failed.
    #[error("{export}, {label}: {source}")]
    Query {
        /// Name of the export.
        export: String,
        /// The part.
        label: String,
        /// The cause.
        source: Box<SqlError>,
    },
    /// The rows could not be written.
    #[error("cannot write {path}: {source}; what was published before is unchanged")]
    Write {
        /// Path inside the store.
        path: String,
        /// The cause.
        source: ArrowError,
    },
    /// A file that is there already is none that can be read.
    #[error("cannot read {path}: {source}; move it away")]
    Read {
        /// Path inside the store.
        path: String,
        /// The cause.
        source: ParquetError,
    },
    /// A file where a part goes that no export has published.
    #[error("exports/{folder} holds a {file} that no export has published: move it away, nothing was written over it")]
    Stranger {
        /// Folder of the part.
        folder: String,
        /// The file.
        file: String,
    },
    /// Of a part of several files some are not there.
    #[error("exports/{folder} holds some files of a day and not all of them: put the others back, or move these away")]
    Partial {
        /// Folder of the part.
        folder: String,
    },
    /// A file with rows of earlier runs, which cannot be made again, is damaged.
    #[error(
        "{path} is not as it was published, and holds rows of earlier runs that cannot be made again: put it back from a \
         backup, or remove its folder to begin without them"
    )]
    Damaged {
        /// Path inside the store.
        path: String,
    },
    /// A file that was written is not there any more.
    #[error("{path} was removed while the part was written; what was published before is unchanged, run again")]
    Gone {
        /// Path inside the store.
        path: String,
    },
    /// A part of several files cannot be replaced as a whole.
    #[error(
        "exports/{folder} holds several files and cannot be replaced at once, for it holds a folder or lies on another disk \
         than the store: move its part-* files or that folder away, and run again"
    )]
    Elsewhere {
        /// Folder of the part.
        folder: String,
    },
    /// Two columns of the query have one name.
    #[error("the query of {export} gives two columns called {column}: name one of them with AS")]
    DuplicateColumn {
        /// Name of the export.
        export: String,
        /// The name.
        column: String,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Result of this crate.
pub type Result<T, E = ExportError> = std::result::Result<T, E>;
