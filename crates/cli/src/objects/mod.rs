//! The objects that commands print with `--output json`: the keys of each, with their types and what they say.
//!
//! These lists are what is promised. Rows of results have their columns from them, what is stored is brought into their
//! form by [`shaped`], and `docs/reference/json-output.md` is written from them. So a stored format may change while what
//! is printed stays.

pub(crate) mod files;
pub(crate) mod key;
pub(crate) mod record;
pub(crate) mod rows;
pub(crate) mod shape;
#[cfg(test)]
pub(crate) mod tests;

pub use files::{INSPECTION, MANIFEST};
pub use record::{COMPACTION, RUN};
pub use rows::*;
pub use shape::{shaped, write_object};
