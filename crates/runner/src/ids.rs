//! Names of runs, files and commits: ULIDs, which sort by time of creation.

use std::sync::{Mutex, PoisonError};

use tidetable_store::Ids;
use ulid::{Generator, Ulid};

/// ULIDs of the machine's clock and randomness, ascending within a process.
#[derive(Default)]
pub struct UlidIds {
    generator: Mutex<Generator>,
}

impl Ids for UlidIds {
    fn next(&self) -> u128 {
        let mut generator = self.generator.lock().unwrap_or_else(PoisonError::into_inner);
        // A generator overflows after 2^80 ids of one millisecond.
        generator.generate().unwrap_or_else(|_| Ulid::generate()).0
    }
}

impl std::fmt::Debug for UlidIds {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("UlidIds")
    }
}
