//! What a proof found.

use std::fmt;

use tidetable_store::StoreError;

/// Why a proof failed. The error of the store is kept apart: some proofs expect one.
#[derive(Debug)]
pub enum Finding {
    /// A promise was broken.
    Broken(String),
    /// The store gave an error.
    Store(StoreError),
}

impl Finding {
    /// A broken promise, in words.
    pub fn new(what: impl Into<String>) -> Self {
        Self::Broken(what.into())
    }

    /// The same, with where it was found.
    #[must_use]
    pub fn at(self, place: impl fmt::Display) -> Self {
        Self::Broken(format!("{place}: {self}"))
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Broken(what) => f.write_str(what),
            Self::Store(error) => write!(f, "the store says: {error}"),
        }
    }
}

impl std::error::Error for Finding {}

impl From<StoreError> for Finding {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<std::io::Error> for Finding {
    fn from(error: std::io::Error) -> Self {
        Self::Broken(error.to_string())
    }
}

/// Result of a proof.
pub type Result<T, E = Finding> = std::result::Result<T, E>;
