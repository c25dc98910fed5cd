//! The objects that commands print with `--output json`: their keys with types and descriptions.
//!
//! These lists are the contract. They define the columns of results; [`shaped`] converts stored JSON to
//! them; `docs/reference/json-output.md` is generated from them. So a stored format may change while the
//! output stays.

pub(crate) mod advisor;
#[cfg(any(feature = "bigtable", test))]
pub(crate) mod bigtable;
pub(crate) mod files;
pub(crate) mod record;
pub(crate) mod rows;
pub(crate) mod shape;
#[cfg(test)]
pub(crate) mod tests;

pub use advisor::{ADVICE, COMPARED, HEATMAP};
#[cfg(any(feature = "bigtable", test))]
pub use bigtable::{COMPARED_CELLS, PULLED, PUSHED};
pub use files::{INSPECTION, MANIFEST};
pub use record::{COMPACTION, RUN};
pub use rows::*;
pub use shape::{shaped, write_object};
