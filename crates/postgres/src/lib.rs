//! A read-only server of PostgreSQL's protocol: SQL over a store, for drivers, `psql` and dashboards.
//!
//! | module | contents |
//! |---|---|
//! | `server` | listens, takes clients up to a limit, ends |
//! | `connection` | a client: start, statements in both forms of the protocol, cursors, COPY |
//! | `engine` | plans and runs queries, each over one version of each table |
//! | `catalog` | `pg_catalog` and `information_schema`, made of the tables of the store |
//! | `statement` | which statements are queries, and which are about the session |
//! | `types`, `encode`, `parameters` | types of PostgreSQL, values to clients and from them |
//! | `wire`, `access` | messages, passwords, TLS |

mod access;
mod catalog;
mod connection;
mod encode;
mod engine;
mod error;
mod parameters;
mod server;
mod statement;
mod types;
mod wire;

pub use error::{PostgresError, Result};
pub use server::{Access, Options, Server};
