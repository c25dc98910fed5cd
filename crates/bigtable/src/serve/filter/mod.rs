//! Row filters: checked and compiled once a request, pushed into the scan where that gives the same cells, and evaluated on
//! batches of cells.

mod compile;
mod evaluate;
mod regex;
#[cfg(test)]
mod tests;
mod tree;
mod wanted;

pub(crate) use compile::compile;
pub(crate) use evaluate::{Evaluator, Picked};
pub(crate) use tree::Filter;
pub(crate) use wanted::Wanted;
