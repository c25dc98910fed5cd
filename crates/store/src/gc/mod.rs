//! Garbage collection: rules of families, and what they leave of a block.

mod apply;
mod rule;

#[cfg(test)]
mod tests;

pub(crate) use apply::{Collector, remove, widen_group};
pub use rule::{GcError, GcRule};
