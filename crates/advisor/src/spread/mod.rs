//! How writes spread over the key space as time goes by.
//!
//! Bigtable does not publish where it splits tablets, so no tablet is drawn here. What is measured holds under any rule
//! that cuts the keys known so far into ranges: before each slice of time, these keys are cut into K ranges of equal count,
//! and the share of the slice's source rows that lands in the fullest range is its *top share*. A range's top share
//! cannot fall below that of the best cut in *hindsight*, and no cut at all helps against a hot *row*.

mod axis;
mod cuts;
mod fenwick;
mod shares;
mod write_log;

pub(crate) use axis::MOST_SLICES;
pub use axis::{Axis, parse_slice};
pub use shares::{HotRow, Shares, Spread, spread};
pub use write_log::{SliceWrite, WriteLog};
