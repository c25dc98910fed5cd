//! Several tables instead of one: each query goes to the one that answers it with the least load.
//!
//! The second table is another layout of the same rows, a table for each day, or one of the newest row of each entity.

mod days;
mod newest;
mod pair;
mod pairing;

pub use pair::Pair;
pub(super) use pair::{Pairs, Third, pairs, third};
pub(super) use pairing::Pairing;
pub use pairing::{Second, TableLoad};
