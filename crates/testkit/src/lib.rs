//! Dev-only: telemetry made from a seed, for tests and benches of every crate.
//!
//! What is written is a function of the seed alone, whatever the number of threads; the sums that a reader must find
//! come with it ([`Written`]).

mod metrics;
mod readings;
mod seeded;
mod written;

pub use metrics::Metrics;
pub use readings::Readings;
pub use seeded::Seeded;
pub use written::Written;
