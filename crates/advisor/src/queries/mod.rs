//! Queries of a workload, planned and counted on each layout.

mod ask;
mod parameters;
mod plan;

pub use ask::{Asked, Drawn, Seen, ask};
pub(crate) use parameters::profiled_columns;
pub use parameters::{draw_specs, profiled_of};
pub(crate) use plan::{plan, records_fields, source_bounds};
