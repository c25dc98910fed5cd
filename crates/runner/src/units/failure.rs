//! The failure of a unit, as it comes back.

use serde::{Deserialize, Serialize};

/// Why a unit failed in another process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{message} (on {executor})")]
pub struct UnitFailure {
    /// The error, in words.
    pub message: String,
    /// Who ran it.
    pub executor: String,
    /// Whether a retry may succeed.
    pub transient: bool,
}
