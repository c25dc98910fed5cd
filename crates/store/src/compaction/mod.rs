//! Compaction: SSTs of a window become one run of files, without what drops and rules hide.
//!
//! [`pick`] says which SSTs may be worth it, from the manifest alone; a [`CompactionPlan`] holds those
//! that are, and can be shown; [`Compaction`] writes the files and makes the edit that puts them in the
//! place of the old. What was appended meanwhile stays: it is newer than what was merged. The old
//! files stay on disk, for versions before this one name them.
//!
//! A merge is cut into pieces ([`subcompactions`]), which all cores work on: stripes that no other input overlaps, as dense as they
//! can be and free of what is hidden, are copied as bytes; of the others rows are merged, and encoded anew.
//!
//! Some of the SSTs of a window may be merged and not the others, if they follow one another. Rules take cells out only
//! if no older SST shares keys with those that are merged: it may hold an older value of such a cell.
//!
//! Windows to which nothing comes any more become files of all of them ([`join`]), where rows keep to windows.
//!
//! Rules are judged window by window, even where rows span windows. That is sound: no rule keeps a
//! cell because more newer versions or more age came to it, and a window knows no more newer versions of
//! a cell than the whole row has, so what a window drops the row drops too. And what is left answers as
//! before: in a window a rule keeps the newest cells of a column up to some cell and drops that and all
//! older ones, so the cells that are newer than a dropped one, in number and age, drop it still.
//!
//! Aggregates are merged before they are judged, as in a read.

pub(crate) mod extent;
pub(crate) mod filter;
pub(crate) mod input;
pub(crate) mod join;
pub(crate) mod picker;
pub(crate) mod plan;
pub(crate) mod run;
pub(crate) mod subcompaction;
#[cfg(test)]
pub(crate) mod tests;
pub(crate) mod output;

pub use extent::{CompactionExtent, CompactionReason};
pub use plan::{CompactionPlan, MergePlan};
pub use run::Compaction;
