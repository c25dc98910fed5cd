//! Reading a version: snapshots, and scans that merge its SSTs.

pub(crate) mod scan;
pub(crate) mod snapshot;
pub(crate) mod window_mask;
