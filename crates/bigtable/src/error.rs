//! Errors of this crate. Each message states what failed and what to do next.

use tidetable_layout::error::ShapeError;
use tidetable_store::StoreError;

/// An error of a transfer to or from Bigtable, or of the server.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BigtableError {
    /// The store could not be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A block does not match its schema.
    #[error(transparent)]
    Shape(#[from] ShapeError),
}

/// Results of this crate.
pub type Result<T, E = BigtableError> = std::result::Result<T, E>;
