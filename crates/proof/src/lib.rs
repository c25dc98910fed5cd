//! Randomised proofs of the store's promises: acknowledged commits are durable, a corrupt byte gives an error and
//! never a wrong answer, readers see whole commits.
//!
//! * [`sim`] simulates disks and buckets with their failures;
//! * [`World`](world::World) runs a table on them, [`Model`](model::Model) is the expected content of the table;
//! * [`proofs`] compare the two, each from a seed and in a given size; the tests of this crate run small sizes, the
//!   binary `prove` any size.

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
