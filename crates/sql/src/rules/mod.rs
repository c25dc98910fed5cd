//! How rules of the optimizer are written: a rule for each node of a physical plan, and rewrites of comparisons.

pub(crate) mod comparison_rule;
pub(crate) mod node_rule;
