//! Predicates as key ranges, value sets and pruned stripes.

pub(crate) mod dependence;
pub(crate) mod filter;
pub(crate) mod key_ranges;
pub(crate) mod pruning;
pub(crate) mod value_range;
pub(crate) mod value_sets;
