//! Dev-only: readings made from a seed, for tests and benches of every crate.

mod readings;

pub use readings::{Readings, Seeded};
