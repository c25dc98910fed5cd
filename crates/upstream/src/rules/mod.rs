//! How rules of the optimizer are written: a rule for each node of a physical plan, and rewrites of comparisons.

pub mod comparison_rule;
pub mod node_rule;
