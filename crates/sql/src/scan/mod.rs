//! Scans: a file source over scan ranges, its opener, and readers of records, rows, cells and aggregates.

pub(crate) mod cell_reader;
pub(crate) mod coalesce;
pub(crate) mod file_groups;
pub(crate) mod late_filter;
pub(crate) mod metrics;
pub(crate) mod opener;
pub(crate) mod read;
pub(crate) mod records;
pub(crate) mod rows;
pub(crate) mod source;
pub(crate) mod spec;
pub(crate) mod sums;
