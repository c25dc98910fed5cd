//! Aggregations evaluated in the scan, on records or from the stats of stripes. What is aggregated is defined in `aggregate`.

pub(crate) mod exec;
pub(crate) mod newest;
pub(crate) mod runs;
pub(crate) mod stripe_stats;
pub(crate) mod timeline;
