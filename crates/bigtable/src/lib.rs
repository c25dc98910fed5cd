//! tidetable and Bigtable: push, pull, diff, and a read-only server of the Data API.

pub mod cells;
pub mod client;
pub mod diff;
mod error;
mod names;
pub mod propose;
pub mod proto;
pub mod pull;
pub mod push;
mod row;
mod row_merger;
pub mod rows;
pub mod serve;

pub use error::{BigtableError, Result};
