//! Plans whose parts other processes run.
//!
//! A scan there is a [`DistributedScan`](scan::DistributedScan): a value that names a table, a version and scan ranges, and that
//! whoever runs it turns into a scan of its own store.

pub(crate) mod groups;
pub(crate) mod order;
pub(crate) mod plan;
pub(crate) mod scan;
