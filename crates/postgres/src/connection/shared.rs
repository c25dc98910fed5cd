//! What all clients share.

use std::sync::Arc;

use ring::rand::SystemRandom;
use tokio::sync::Semaphore;
use tokio_rustls::TlsAcceptor;

use crate::access::Password;
use crate::connection::watch::Cancels;
use crate::engine::Engine;

/// What all clients share: who may connect, how many, and what answers them.
pub(crate) struct Shared {
    pub(crate) engine: Arc<Engine>,
    /// The user who may connect, with the password; without it anyone may.
    pub(crate) user: Option<(String, Password)>,
    pub(crate) tls: Option<TlsAcceptor>,
    /// Whether clients without TLS are refused.
    pub(crate) needs_tls: bool,
    /// Places of sessions.
    pub(crate) places: Arc<Semaphore>,
    /// The number of places.
    pub(crate) most_clients: usize,
    pub(crate) cancels: Cancels,
    pub(crate) random: SystemRandom,
}
