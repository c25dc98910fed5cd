//! Errors of reading and uniting sketches.

use thiserror::Error;

/// Errors of decoding and merging sketches.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SketchError {
    /// The bytes are truncated or malformed.
    #[error("no sketch of distinct values, or a damaged one: {what}")]
    Damaged {
        /// The cause.
        what: &'static str,
    },
    /// The sketch has another precision.
    #[error(
        "a sketch of precision {normal} and sparse precision {sparse}: only 15 and 20 are read, make it with those"
    )]
    Precision {
        /// Normal precision.
        normal: u64,
        /// Sparse precision.
        sparse: u64,
    },
    /// Sketches of integers and of text cannot be merged.
    #[error("one sketch is of values of type {left} and the other of type {right}: keep them in columns of their own")]
    Kinds {
        /// ZetaSketch's number of the type.
        left: u64,
        /// That of the other.
        right: u64,
    },
}
