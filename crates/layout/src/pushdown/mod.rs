//! Predicate push-down: conditions on record fields become ranges of row keys.

mod bound;
mod key_range;
mod ranges;

pub use bound::{FieldBound, ValueSet};
pub use key_range::KeyRange;

pub use crate::scalar::Scalar;
