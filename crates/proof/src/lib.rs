//! Proofs of what the store promises: an Ok from a commit is durable, a corrupt byte is an error and never a wrong
//! answer, readers see whole commits.
//!
//! * [`sim`] holds what stands in for disks and buckets, and fails as they do;
//! * [`World`](world::World) runs a table on it, [`Model`](model::Model) says what the table must hold;
//! * [`proofs`] put the two against each other, each from a seed and in a size; the tests of this crate run them small,
//!   the binary `prove` runs them in any size.

pub mod cells;
pub mod event;
mod finding;
pub mod history;
pub mod model;
pub mod proofs;
pub mod random;
pub mod shape;
pub mod sim;
pub mod step;
pub mod world;

pub use finding::{Finding, Result};
