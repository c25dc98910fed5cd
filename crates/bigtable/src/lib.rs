//! tidetable and Bigtable: push, pull, diff, and a read-only server of the Data API.

pub mod cells;
mod error;
pub mod proto;

pub use error::{BigtableError, Result};
