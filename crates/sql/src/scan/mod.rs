//! Scans of a table: what they read, and readers of records, rows and cells.

pub(crate) mod cell_reader;
pub(crate) mod coalesce;
pub(crate) mod file_groups;
pub(crate) mod late_filter;
pub(crate) mod metrics;
pub(crate) mod records;
pub(crate) mod rows;
pub(crate) mod spec;
pub(crate) mod sums;
