//! External sort: windows that outgrow the memory of a load are spilled, and merged when they are complete.
//!
//! When memory is full, the events of such a window are sorted by row key and appended to a temporary file as a
//! [`Spill`](file::Spill): pages of a few thousand events, with the row keys that each begins and ends with. Once all
//! events are there, the keys of the pages cut the window into ranges that fit in memory. Each range is read from all
//! spills, sorted and encoded as if it had never left memory. So a row lies in one SST, and the SSTs of a window have
//! disjoint keys, in whatever order its events came. See Knuth, "The Art of Computer Programming", volume 3, section 5.4.

pub(crate) mod fates;
pub(crate) mod file;
pub(crate) mod merge;
pub(crate) mod names;
pub(crate) mod page;
pub(crate) mod ranges;
