//! Heatmaps: row keys by time, in buckets of equal count that are fixed over all keys, and the patterns in them.

mod map;
mod patterns;
mod stored;

pub use map::{Heatmap, MOST_BUCKETS};
pub use patterns::{Pattern, patterns};
pub use stored::{Metric, StoredTable, stored_heatmap};
