//! Heatmaps: row keys by time, in buckets of equal count that are fixed over all keys, and the patterns in them.

mod map;
mod patterns;
mod reads;
mod stored;
mod written;

pub use map::{Heatmap, MOST_BUCKETS};
pub use patterns::{Pattern, patterns};
pub use reads::{StoredReads, stored_reads};
pub use stored::StoredTable;
pub use written::{Metric, stored_heatmap};
