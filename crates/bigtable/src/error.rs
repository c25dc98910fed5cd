//! Errors of this crate. Each message states what failed and what to do next.

use std::io;

use tidetable_layout::error::ShapeError;
use tidetable_sql::SqlError;
use tidetable_store::StoreError;

/// An error of a transfer to or from Bigtable, or of the server.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BigtableError {
    /// The store could not be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A block does not match its schema.
    #[error(transparent)]
    Shape(#[from] ShapeError),
    /// SQL that is not valid, or failed.
    #[error(transparent)]
    Sql(#[from] Box<SqlError>),
    /// An address that cannot be listened on.
    #[error("cannot listen on {address}: {source}{}", bind_advice(.source))]
    Bind {
        /// Host and port.
        address: String,
        /// The cause.
        source: io::Error,
    },
}

/// What to do about an address that cannot be listened on.
fn bind_advice(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::AddrInUse => {
            "; end what listens there, or choose another port with --bind HOST:PORT (0 takes a free one)"
        }
        io::ErrorKind::PermissionDenied => "; choose a port above 1023 with --bind HOST:PORT",
        io::ErrorKind::InvalidInput => "; write --bind HOST:PORT, such as --bind 127.0.0.1:8086",
        _ => "; choose another address with --bind HOST:PORT",
    }
}

/// Results of this crate.
pub type Result<T, E = BigtableError> = std::result::Result<T, E>;
