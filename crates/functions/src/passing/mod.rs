//! Functions that give one of their arguments.

pub(crate) mod nullif;
pub(crate) mod one_row;
pub(crate) mod opaque;
