//! The address of a server.

use tokio::net::TcpListener;

use crate::error::{Result, ServingError};

/// Listens on `address`, which the command line names with `option`; `port` is the default port of that option.
///
/// # Errors
/// If the address is not one of this machine, or another process listens there.
pub async fn listen(address: &str, option: &'static str, port: u16) -> Result<TcpListener> {
    let listener = TcpListener::bind(address).await;
    listener.map_err(|source| ServingError::Listen { address: address.to_owned(), option, port, source })
}
