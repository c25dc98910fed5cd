//! Aggregation in the scan.

pub(crate) mod exec;
pub(crate) mod newest;
pub(crate) mod row_states;
pub(crate) mod runs;
pub(crate) mod spec;
pub(crate) mod stripe_stats;
pub(crate) mod timeline;
