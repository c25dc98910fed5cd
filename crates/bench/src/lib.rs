//! Dev-only: benchmarks of loads, compactions and queries, and tests of memory use.
//!
//! A [`Shape`] is a source with its table, [`Telemetry`] a size of generated files; a [`Bench`] loads files of one shape into a
//! store, as a job does, without SQL and so without building DataFusion. `benches/micro` measures the parts, the binary `load` a
//! whole load, the binary `compact` compaction, `tests/memory.rs` memory.

mod bench;
mod shape;

use std::fmt::Display;
use std::io::{self, Write};

pub use bench::{Bench, Done};
pub use shape::{Shape, Telemetry};

/// Writes a line of a report: a name, and its figure in a column beside it.
///
/// # Errors
/// Those of writing to `out`.
pub fn line(out: &mut impl Write, what: &str, value: impl Display) -> io::Result<()> {
    writeln!(out, "{what:<20} {value}")
}

/// Any error of a benchmark, reported to its user as it is. Benchmarks have nobody who would tell one from another.
pub type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;
