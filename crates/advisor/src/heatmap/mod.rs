//! Heatmaps: row keys by time, in buckets of equal count that are fixed over all keys, and the patterns in them.

mod key_list;
mod map;
mod parts;
mod patterns;
mod reads;
mod segments;
mod stored;
mod written;

pub(crate) use key_list::{KeyList, KeysAt};
pub use map::{Heatmap, MOST_BUCKETS};
pub use patterns::{Pattern, patterns};
pub use reads::{StoredReads, stored_reads};
pub use segments::key_segments;
pub use stored::StoredTable;
pub use written::{Metric, stored_heatmap};
