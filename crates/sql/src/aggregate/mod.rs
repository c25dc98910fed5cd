//! Aggregations that a scan can evaluate: their definition and the states of their functions.

pub(crate) mod row_states;
pub(crate) mod spec;
