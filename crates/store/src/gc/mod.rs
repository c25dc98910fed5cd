//! Garbage collection: rules of families, and the GC filter that applies them.

pub(crate) mod apply;
pub(crate) mod rule;
#[cfg(test)]
pub(crate) mod tests;

pub use apply::{GcFilter, RemovedCells};
pub(crate) use apply::{remove, widen_group};
pub use rule::{GcError, GcRule};
