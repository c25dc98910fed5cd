//! Why a run failed.

use tidetable_export::ExportError;
use tidetable_sql::SqlError;
use tidetable_store::StoreError;

/// Why a run failed. What it committed before stands; running again goes on from there.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// Too many rows did not fit.
    #[error(
        "{rejected} of {read} rows of source {source_name} were rejected, more than max_rejected = {limit} allows; \
         nothing was committed. The rows and reasons are in {log}: mend the source or its columns, or raise the limit"
    )]
    TooManyRejected {
        /// The source.
        source_name: String,
        /// Rows rejected.
        rejected: u64,
        /// Rows read.
        read: u64,
        /// The limit as the job file says it.
        limit: String,
        /// File with the rejected rows.
        log: String,
    },
    /// A table of a source that the job does not have.
    #[error("table {table} is from {source_name}, which is no source of the job")]
    NoSource {
        /// The table.
        table: String,
        /// The source it names.
        source_name: String,
    },
    /// A store root that cannot be written to yet.
    #[error("the store's root {root} is a URL; stores in buckets are not built yet, name a folder")]
    RemoteRoot {
        /// The root.
        root: String,
    },
    /// The runtime could not be started.
    #[error("cannot start the runtime: {0}")]
    Runtime(std::io::Error),
    /// The store.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A query.
    #[error("export {export}: {source}")]
    Query {
        /// The export.
        export: String,
        /// The cause.
        source: Box<SqlError>,
    },
    /// Publishing.
    #[error(transparent)]
    Export(Box<ExportError>),
}

impl From<ExportError> for RunError {
    fn from(error: ExportError) -> Self {
        Self::Export(Box::new(error))
    }
}
