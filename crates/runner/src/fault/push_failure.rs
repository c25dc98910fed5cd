//! Why a push ended.

use std::error::Error;

/// Why a push ended.
#[derive(Debug, thiserror::Error)]
#[error("{source}")]
pub struct PushFailure {
    /// The error that ended it.
    pub source: Box<dyn Error + Send + Sync>,
    /// Whether it may pass.
    pub is_transient: bool,
}
