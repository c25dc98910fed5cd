//! A read-only server of Bigtable's Data API, and of the listings of its Table Admin API.

mod admin;
mod data;
mod filter;
#[doc(hidden)]
pub mod fuzzing;
mod names;
mod query;
mod refusal;
mod rows;
mod sample;
mod server;

pub(crate) use admin::Ignored;
pub use rows::{EncodedRows, RowsCodec};
pub use server::{Address, ServeOptions, Server};
