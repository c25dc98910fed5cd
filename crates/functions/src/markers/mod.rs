//! Functions that statements contain only until their expressions are coerced: they name or convert an argument.

pub(crate) mod cast_label;
pub(crate) mod comparable;
