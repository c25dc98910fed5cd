//! Physical optimizer rules.

pub(crate) mod aggregate_below_join;
pub(crate) mod node_rule;
pub(crate) mod partial_aggregate;
pub(crate) mod record_scan;
pub(crate) mod sort_merge_join;
pub(crate) mod top_k;
