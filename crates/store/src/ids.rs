//! Ids of files and commits. The caller provides them, so that tests can fix them.

use std::fmt::Debug;

/// Directory of the tables of a store.
pub const TABLES: &str = "tables";

/// A source of unique 128-bit ids; as ULIDs they sort by creation time.
pub trait Ids: Debug + Send + Sync {
    /// The next id, which no file and no commit has.
    fn next(&self) -> u128;
}

/// An id as ULID text, for file names.
pub fn ulid_text(id: u128) -> String {
    ulid::Ulid(id).to_string()
}
