//! Findings: failures of proofs.

use std::fmt;

use tidetable_blobs::BlobError;
use tidetable_store::StoreError;

/// The failure of a proof. Store errors are a variant of their own: some proofs expect one.
#[derive(Debug)]
pub enum Finding {
    /// A promise of the store was broken: what is wrong, in a sentence.
    Broken(String),
    /// The store returned an error where it must not, or one that a proof expects.
    Store(StoreError),
    /// Windows cannot be rebuilt unless these vanished inputs are put back or removed.
    Gone(Vec<String>),
}

impl Finding {
    /// A broken promise, described by `what`, without the place where it was found.
    pub fn new(what: impl Into<String>) -> Self {
        Self::Broken(what.into())
    }

    /// Adds the place where it was found, before the description: a seed, a step, a file.
    #[must_use]
    pub fn at(self, place: impl fmt::Display) -> Self {
        Self::Broken(format!("{place}: {self}"))
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Broken(what) => f.write_str(what),
            Self::Store(error) => write!(f, "store error: {error}"),
            Self::Gone(gone) => write!(f, "{} are gone", gone.join(", ")),
        }
    }
}

impl std::error::Error for Finding {}

impl From<BlobError> for Finding {
    fn from(error: BlobError) -> Self {
        Self::Store(error.into())
    }
}

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

/// Result of a proof, or of a part of one.
pub type Result<T, E = Finding> = std::result::Result<T, E>;
