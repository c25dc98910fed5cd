//! Reading a version: snapshots, and scans that merge its SSTs.

pub(crate) mod collisions;
pub(crate) mod known_collisions;
pub(crate) mod next_ranges;
pub(crate) mod options;
pub(crate) mod row_identity;
pub(crate) mod scan;
pub(crate) mod scan_range;
pub(crate) mod skipped_stripes;
pub(crate) mod snapshot;
pub(crate) mod sst_scan;
pub(crate) mod sst_source;
pub(crate) mod stripes_ahead;
pub(crate) mod window_mask;

pub use known_collisions::KnownCollisions;
pub use options::{ScanCounts, ScanMode, ScanOptions, StripePruner, StripeStats};
pub use scan::BlockScan;
pub use scan_range::ScanRange;
pub use snapshot::{ALL_TIMES, Snapshot};
pub use sst_source::SstSource;
pub use tidetable_sstable::{RecordFilter, Scalar, StripeMeta, ValueRange};
pub use window_mask::WindowMask;

pub use crate::log::SstPlace;
pub use crate::merge::slice_block;
