//! Files of queries: what a table will be asked, how often, and how much it will hold.
//!
//! ```toml
//! goal = "latency"
//! keep = "365d"
//! [scale]
//! entities = { meter = 10_000_000 }
//! every = "15m"
//! [query.one_day]
//! per_second = 50
//! where = "meter = $meter and ts >= $day and ts < $day + interval '1 day'"
//! ```

mod keys;
mod read;

pub use read::{Goal, Need, Params, Query, Scale, Workload};
