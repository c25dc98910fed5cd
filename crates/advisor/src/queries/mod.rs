//! Queries of a workload, planned and counted on each layout.

mod ask;
mod parameters;

pub use ask::{Asked, Seen, ask};
pub use parameters::draw_specs;
