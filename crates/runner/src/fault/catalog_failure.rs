//! Why an export is not committed to its catalog.

use tidetable_export::{CatalogConflict, ExportError};

/// Why an export is not committed to its catalog. What is published stays, and a later run commits it.
#[derive(Debug, thiserror::Error)]
pub enum CatalogFailure {
    /// The token is missing.
    #[error("its token is missing: {reason}, and run again")]
    Token { reason: String },
    /// The token cannot stand in a request.
    #[error("its token has a line end or other control characters; write it without them, and run again")]
    NoHeader,
    /// No answer came, so that a commit may have arrived.
    #[error("{reason}; the next run commits what it lacks")]
    NoAnswer { reason: String },
    /// It refused a request.
    #[error("{request} is answered by {status}{said}; {advice}, and run again")]
    Refused { request: String, status: u16, said: String, advice: &'static str },
    /// An answer that does not come from a catalog.
    #[error("{request} is answered by no JSON of a catalog; check `uri`, and run again")]
    NoCatalog { request: String },
    /// It accepted a commit and does not have it.
    #[error("it accepts commits, and has not what they say; the next run tries again")]
    Unheeded,
    /// Others have changed its table.
    #[error(transparent)]
    Conflict(#[from] CatalogConflict),
    /// The metadata beside the files cannot be read.
    #[error(transparent)]
    Metadata(#[from] ExportError),
}

impl CatalogFailure {
    /// Whether a retry may succeed.
    pub(crate) fn is_transient(&self) -> bool {
        match self {
            Self::NoAnswer { .. } => true,
            Self::Refused { status, .. } => matches!(status, 408 | 409 | 429 | 500..),
            _ => false,
        }
    }

    /// Whether the catalog may have a commit that failed so, or another state than the one that was read.
    pub(crate) fn may_have_arrived(&self) -> bool {
        match self {
            Self::NoAnswer { .. } => true,
            Self::Refused { status, .. } => matches!(status, 409 | 500..),
            _ => false,
        }
    }
}
