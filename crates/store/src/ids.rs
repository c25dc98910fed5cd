//! Names for files and commits. They come from outside, so that a test can fix them.

use std::fmt::Debug;

/// A source of 128-bit ids, no two alike; as ULIDs they sort by the time they were made.
pub trait Ids: Debug + Send + Sync {
    /// The next id.
    fn next(&self) -> u128;
}

/// The text of an id as a file name.
pub fn ulid_text(id: u128) -> String {
    ulid::Ulid(id).to_string()
}
