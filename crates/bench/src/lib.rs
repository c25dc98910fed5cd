//! Dev-only: benchmarks of loads, compactions and queries, and tests of memory use.
//!
//! A [`Shape`] is a source with its table, [`Telemetry`] a size of generated files; a [`Bench`] loads files of one shape into a store, as a job does, without
//! SQL and so without building DataFusion. `benches/micro` measures the parts, the binary `load` a whole load, the
//! binary `compact` compaction, `tests/memory.rs` memory.

mod bench;
mod shape;

pub use bench::{Bench, Done};
pub use shape::{Shape, Telemetry};

/// Any error, reported to the user of the benchmark.
pub type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;
