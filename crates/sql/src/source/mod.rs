//! The file source of a table: its scan ranges are the "files", which an opener reads and decodes.

pub(crate) mod opener;
pub(crate) mod read;
pub(crate) mod sst_source;
