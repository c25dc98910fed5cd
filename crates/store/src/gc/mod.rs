//! Garbage collection: rules of families, and what they leave of a block.

pub(crate) mod apply;
pub(crate) mod rule;
#[cfg(test)]
pub(crate) mod tests;

pub(crate) use apply::{GcFilter, remove, widen_group};
pub use rule::{GcError, GcRule};
