//! What can go wrong in SQL.

use datafusion::error::DataFusionError;
use tidetable_layout::DecodeError;
use tidetable_store::StoreError;

/// An error of a query, or of the store it reads.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SqlError {
    /// The store could not be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The query is wrong, or failed.
    #[error("{0}")]
    Query(#[from] DataFusionError),
    /// A table whose event time cannot be read back was asked for a part of a window.
    #[error(
        "the layout of {table} does not read the event time back, so only whole windows of it can be told apart; \
         let a key or a timestamp hold the time, or ask for whole windows"
    )]
    NoTime {
        /// Table id.
        table: String,
    },
    /// A slice that cannot be read back as records or cells.
    #[error("{table}, {slice}: {source}")]
    Decode {
        /// Table id.
        table: String,
        /// Name of the slice.
        slice: String,
        /// The cause.
        source: DecodeError,
    },
    /// A block lacks what its schema says.
    #[error("a block does not have the shape of its table ({what}); the SST it comes from may be damaged: run verify")]
    Shape {
        /// What is missing.
        what: &'static str,
    },
}

/// Result of this crate.
pub type Result<T, E = SqlError> = std::result::Result<T, E>;

/// Carries an error through the engine; its text stays as it is.
pub(crate) fn external(error: impl Into<SqlError>) -> DataFusionError {
    DataFusionError::External(Box::new(error.into()))
}
