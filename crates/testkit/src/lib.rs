//! Dev-only: telemetry generated from a seed, for tests and benchmarks of every crate.
//!
//! The output is a function of the seed, whatever the number of threads; it comes with the counts and sums that a
//! reader must find ([`Written`]). By default samples arrive as those of devices do: in no order within an instant,
//! some late, some twice, some never ([`Arrival`]).

mod args;
mod arrival;
mod entities;
mod grid;
mod metrics;
mod readings;
mod seeded;
mod written;

pub use args::Args;
pub use arrival::{Arrival, DUPLICATES, GAPS, LATE};
pub use metrics::Metrics;
pub use readings::Readings;
pub use seeded::Seeded;
pub use written::{ColumnSum, Written};
