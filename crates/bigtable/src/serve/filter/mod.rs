//! Row filters: checked and compiled once a request, pushed into the scan where that gives the same cells, and evaluated on
//! batches of cells.
//!
//! A filter of a kilobyte may multiply each cell by millions. Copies of a cell are therefore counted, rows are evaluated in
//! pieces, and compiled patterns are dropped and made again: what is held does not depend on the filter.

mod compile;
mod evaluate;
mod patterns;
mod picks;
mod regex;
#[cfg(test)]
mod tests;
mod tree;
mod wanted;

pub(crate) use compile::compile;
pub(crate) use evaluate::{Evaluator, PickedRows};
pub(crate) use picks::Picked;
pub(crate) use tree::{CompiledFilter, Filter};
pub(crate) use wanted::Wanted;
