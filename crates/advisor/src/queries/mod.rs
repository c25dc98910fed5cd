//! Queries of a workload, planned and counted on each layout.

mod ask;
mod parameters;
mod plan;

pub use ask::{Asked, Drawn, Seen, ask};
pub use parameters::draw_specs;
pub(crate) use plan::{plan, records_fields, source_bounds};
