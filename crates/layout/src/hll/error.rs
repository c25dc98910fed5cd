//! Errors of reading and uniting sketches.

use thiserror::Error;

/// Errors of decoding and merging sketches of distinct values.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SketchError {
    /// The bytes are truncated or malformed.
    #[error("no sketch of distinct values, or a damaged one: {what}")]
    Damaged {
        /// What is wrong with them.
        what: &'static str,
    },
    /// The sketch has another precision than Bigtable's.
    #[error(
        "a sketch of precision {normal} and sparse precision {sparse}: only 15 and 20 are read, make it with those"
    )]
    Precision {
        /// The normal precision of the sketch: the logarithm of its registers.
        normal: u64,
        /// Its sparse precision, in bits.
        sparse: u64,
    },
    /// Sketches of integers and of text cannot be merged.
    #[error("one sketch is of values of type {left} and the other of type {right}: keep them in columns of their own")]
    Kinds {
        /// The number that ZetaSketch gives the type of the first.
        left: u64,
        /// The number of the type of the second.
        right: u64,
    },
}
