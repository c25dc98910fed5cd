//! Dev-only: how fast the parts of a load are, and how much memory it holds.
//!
//! A [`Shape`] is a source with its table; a [`Bench`] loads files of one shape into a store, the way a job does, without
//! SQL and so without DataFusion in the build. `benches/micro.rs` measures the parts, the binary `load` a whole load, the binary
//! `compact` what comes after it, `tests/memory.rs` its memory.

mod bench;
mod shape;

pub use bench::{Bench, Done};
pub use shape::Shape;

/// Whatever went wrong: a bench has nobody to tell but its user.
pub type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;
