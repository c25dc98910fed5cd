//! The proofs of a bucket, on a server of our own, through the S3 client of `object_store`.
//!
//! Each worker has a server, which begins anew with each seed: requests come one after another, so a seed gives the same
//! faults to the same requests. Only two writers race.

mod commits;
mod kills;
mod model;
mod place;

pub use commits::{replies, writers};
pub use kills::{Task, kills};
pub use model::{model, steps};
