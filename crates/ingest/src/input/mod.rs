//! Inputs of a load: plan, feeds, row preparation, read-ahead.

mod entry;
pub(crate) mod feed;
pub(crate) mod owed;
pub(crate) mod plan;
pub(crate) mod prepare;
pub(crate) mod read;
