//! Compaction: merges SSTs of a window into one sorted run, without tombstoned and expired cells.
//!
//! `picker` selects candidate SSTs from the manifest; a [`CompactionPlan`] lists the merges worth doing;
//! [`Compaction`] writes the new SSTs and the edit that replaces the old ones. SSTs appended meanwhile stay: they are
//! newer. Old SSTs stay on disk, because older versions name them.
//!
//! A merge is split into subcompactions (`subcompaction`), which run on all cores: dense stripes without hidden
//! cells that no other input overlaps are copied as bytes; the rows of others are merged and encoded again.
//!
//! A merge may cover some of a window's SSTs, if they are consecutive. It applies garbage-collection rules only if no
//! older SST shares keys with them: it may hold an older version of a removed cell.
//!
//! Settled windows are joined into multi-window files (`join`), where row keys name the window.
//!
//! Rules are applied window by window, even where rows span windows. That is sound: rules are monotonic in age and in
//! the number of newer versions, and a window has at most as many newer versions of a cell as the whole row, so a
//! cell expired in its window is expired in the row. Answers do not change: within a window a rule removes a cell and
//! all older ones, so the newer cells that expire a removed cell remain.
//!
//! Aggregates are merged before rules are applied, as in a read.

pub(crate) mod extent;
pub(crate) mod filter;
pub(crate) mod input;
pub(crate) mod join;
pub(crate) mod output;
pub(crate) mod picker;
pub(crate) mod plan;
pub(crate) mod run;
pub(crate) mod subcompaction;
#[cfg(test)]
pub(crate) mod tests;

pub use extent::{CompactionExtent, CompactionReason};
pub use plan::{CompactionPlan, MergePlan};
pub use run::{Compaction, MergeFailed, Merged, Merger, RunMerges};
