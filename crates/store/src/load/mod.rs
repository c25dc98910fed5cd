//! Loading: turns inputs into sorted SSTs and version edits.
//!
//! An input is read once for all tables that load it (`pass`). Its pieces are parsed and encoded into cells on all
//! cores (`encode`). When the memory for cells is full, they are sorted by counting (`sort`), built into blocks
//! and written, one SST or more per window. A load commits nothing: it returns a [`VersionEdit`](crate::VersionEdit)
//! for each table.
//!
//! A load is planned and its edit made by `drive`; what lies between is a list of [`LoadUnit`]s, which may run anywhere.

pub(crate) mod batcher;
pub(crate) mod drive;
pub(crate) mod encode;
pub(crate) mod encoders;
pub(crate) mod input;
pub(crate) mod output;
pub(crate) mod overtaken;
pub(crate) mod pass;
pub(crate) mod rebuild;
pub(crate) mod run;
pub(crate) mod sort;
pub(crate) mod spec;
pub(crate) mod state;
pub(crate) mod stats;
#[cfg(test)]
pub(crate) mod tests;
pub(crate) mod unit;
pub(crate) mod work;

pub use input::feed::{Feed, FeedEnd, FeedPiece, FileFeed};
pub use input::owed::{LeftWindow, owed_in};
pub use input::plan::{Grown, GrowthOf, InputPlan, InputPlanOptions};
pub use input::prepare::{Prepare, Prepared, UnpreparedRow};
pub use input::read::RejectedRow;
#[doc(hidden)]
pub use sort::order::order_events;
pub use spec::{LoadTarget, Loaded, Loader, MIN_LOAD_MEMORY, Progress, TableTarget, UnitLoader};
pub use stats::{EmptyRow, LargestRow, LoadStats};
pub use unit::{LoadUnit, LoadUnitDone, RunLoadUnits};
