//! Errors of this crate. Each message states what failed and what to do next.

use std::io;
use std::sync::Arc;

use tidetable_source::panics::Panicked;
use tidetable_store::StoreError;

/// Why a server cannot listen, or cannot read a table that a client asks for.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServingError {
    /// The store could not be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A table that has lost its newest version, so that an older one would be taken for it.
    #[error(transparent)]
    Lost(Arc<StoreError>),
    /// A table that the store does not have.
    #[error("table not found: {table}; tables here: {known}")]
    NoTable {
        /// The table as the client names it.
        table: String,
        /// The tables of the store, separated by commas, or `none`.
        known: String,
    },
    /// What a client asked for has panicked.
    #[error(transparent)]
    Panicked(#[from] Panicked),
    /// The server ends, and with it what a client waits for.
    #[error("the server ends")]
    Ended,
    /// An address that cannot be listened on.
    #[error("cannot listen on {address}: {source}{}", listen_advice(.source, .option, .port))]
    Listen {
        /// Host and port as the command line names them.
        address: String,
        /// The option that names them.
        option: &'static str,
        /// The port that the option has by default.
        port: u16,
        /// Why the system refuses it.
        source: io::Error,
    },
}

/// What to do about an address that cannot be listened on.
fn listen_advice(error: &io::Error, option: &str, port: &u16) -> String {
    match error.kind() {
        io::ErrorKind::AddrInUse => {
            format!("; end what listens there, or choose another port with {option} HOST:PORT (0 takes a free one)")
        }
        io::ErrorKind::PermissionDenied => format!("; choose a port above 1023 with {option} HOST:PORT"),
        io::ErrorKind::InvalidInput => format!("; write {option} HOST:PORT, such as {option} 127.0.0.1:{port}"),
        _ => format!("; choose another address with {option} HOST:PORT"),
    }
}

/// Results of this crate.
pub type Result<T, E = ServingError> = std::result::Result<T, E>;
