//! Dev-only: a bucket server in memory, on loopback, that speaks S3 and the XML API of Google Cloud Storage as far as
//! `object_store` and DuckDB's `httpfs` do.
//!
//! All buckets are under one mutex, so that a conditional write is atomic. Replies fail by a seed ([`Faults`]) or where a
//! [`Watch`] says so; each may come late; requests are counted ([`Counts`]), and all that was received can be searched
//! ([`Received`]).
//!
//! ```
//! # use tidetable_bucket_server::{Options, Server};
//! # fn main() -> std::io::Result<()> {
//! let server = Server::start(Options::default())?;
//! assert!(server.endpoint().starts_with("http://127.0.0.1:"));
//! assert_eq!(server.counts().total(), 0);
//! # Ok(())
//! # }
//! ```
//!
//! * `http` reads requests and writes replies, one thread a connection;
//! * `api` turns a request into an operation of a `bucket` and its result into a reply;
//! * `control` answers paths below `/_/`, by which another process reads counts and sets faults.

mod api;
mod bucket;
mod clock;
mod control;
mod counts;
mod faults;
mod http;
mod kind;
mod options;
mod received;
mod server;

pub use clock::Clock;
pub use counts::Counts;
pub use faults::{Fault, Faults, WrongFaults};
pub use kind::Kind;
pub use options::{Options, duration};
pub use received::{Found, Received};
pub use server::{Arrival, Server, Watch};
