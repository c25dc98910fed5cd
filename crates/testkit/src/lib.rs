//! Dev-only: telemetry generated from a seed, for tests and benchmarks of every crate.
//!
//! The output is a function of the seed, whatever the number of threads; it comes with the sums that a reader must
//! find ([`Written`]).

mod metrics;
mod readings;
mod seeded;
mod written;

pub use metrics::Metrics;
pub use readings::Readings;
pub use seeded::Seeded;
pub use written::Written;
