//! Loading: turns inputs into sorted SSTs and version edits.
//!
//! An input is read once for all tables that load it (`pass`). Its pieces are parsed and encoded into cells on all
//! cores (`encode`). When the memory for cells is full, they are sorted by counting (`sort`), built into blocks
//! and written, one SST or more per window. A load commits nothing: it returns a [`VersionEdit`](tidetable_store::VersionEdit)
//! for each table.
//!
//! A load is planned and its edit made by `drive`; what lies between is a list of [`LoadUnit`]s, which may run anywhere.

mod batcher;
mod drive;
mod earlier;
mod encode;
mod encoders;
mod hidden_events;
mod input;
mod output;
mod pass;
mod rebuild;
mod run;
mod sort;
mod spec;
mod spill;
mod state;
mod stats;
#[cfg(test)]
mod tests;
mod unit;
mod work;

pub use input::feed::{Feed, FeedEnd, FeedPiece, FileFeed, LoadedContent};
pub use input::owed::{LeftWindow, owed_in};
pub use input::plan::{Grown, GrowthOf, InputPlan, InputPlanOptions};
pub use input::prepare::{Prepare, Prepared, UnpreparedRow};
pub use input::read::RejectedRow;
#[doc(hidden)]
pub use sort::order::order_events;
pub use spec::{LoadTarget, Loaded, Loader, MIN_LOAD_MEMORY, Progress, TableTarget, UnitLoader};
pub use stats::{EmptyRow, FirstPlace, LoadStats, NotedRows, ReplacedCells};
pub use unit::{LoadUnit, LoadUnitDone, RunLoadUnits};
