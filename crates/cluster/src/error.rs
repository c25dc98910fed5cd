//! Errors of the servers.

use ballista_core::error::BallistaError;

/// Why a scheduler or an executor could not be started, or ended.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClusterError {
    /// An address that cannot be used.
    #[error("cannot listen on {address}: {source}; choose another address or port")]
    Listen {
        /// The address.
        address: String,
        /// The cause.
        source: std::io::Error,
    },
    /// An address that is none.
    #[error(
        "\"{address}\" is no address of a scheduler: write ballista://HOST:PORT, or ballista+tls://HOST:PORT with TLS"
    )]
    Address {
        /// The address.
        address: String,
    },
    /// An address without TLS, although certificates are named.
    #[error(
        "{address} is not encrypted, but certificates are named for it: write {}, or leave them out",
        address.replacen("ballista:", "ballista+tls:", 1)
    )]
    InClear {
        /// The address.
        address: String,
    },
    /// A file for TLS that cannot be read.
    #[error("cannot read {file}: {source}; name a file in PEM that this user may read")]
    TlsFile {
        /// The file.
        file: String,
        /// The cause.
        source: std::io::Error,
    },
    /// A file for TLS with something else in it.
    #[error("{file} holds no {holds} in PEM: name the file that has it")]
    TlsContent {
        /// The file.
        file: String,
        /// What it should hold.
        holds: &'static str,
    },
    /// A certificate without its key, or a key without its certificate.
    #[error("a {given} is named without its {missing}: name the files of both")]
    HalfIdentity {
        /// What is named.
        given: &'static str,
        /// What is not.
        missing: &'static str,
    },
    /// Files that do not go together.
    #[error("{files} cannot be used for TLS: {reason}; the key must be that of the first certificate of its file")]
    TlsUnusable {
        /// The files.
        files: String,
        /// The cause.
        reason: String,
    },
    /// A server without a certificate.
    #[error(
        "{role} with TLS needs a certificate of its own, which the others check: name its file and that of its key by --tls-cert \
         and --tls-key"
    )]
    NoCertificate {
        /// Which server.
        role: &'static str,
    },
    /// A timeout after which every executor would count as lost.
    #[error("--executor-timeout must be at least {least}s, and several times --heartbeat of the executors")]
    ExecutorTimeout {
        /// The least that is accepted, in seconds.
        least: u64,
    },
    /// No time between two heartbeats.
    #[error("--heartbeat must be at least 1s, and a fraction of --executor-timeout of the scheduler")]
    Heartbeat,
    /// A server failed.
    #[error("{role} ended: {source}")]
    Serve {
        /// Which server.
        role: &'static str,
        /// The cause.
        source: tonic::transport::Error,
    },
    /// The directory for the answers that wait to be fetched cannot be used.
    #[error("cannot use {directory} for answers: {source}")]
    WorkDirectory {
        /// The directory.
        directory: String,
        /// The cause.
        source: std::io::Error,
    },
    /// A scheduler that does not take an executor.
    #[error("the scheduler at {place} refuses this executor: {reason}")]
    Refused {
        /// Its address.
        place: String,
        /// What it says.
        reason: String,
    },
    /// Ballista failed.
    #[error("{role} ended: {source}")]
    Ballista {
        /// Which server.
        role: &'static str,
        /// The cause.
        source: Box<BallistaError>,
    },
    /// A scheduler that an executor cannot reach.
    #[error(
        "the scheduler at {place} cannot be reached: {reason}; start it with `tidetable scheduler`, or correct the address"
    )]
    Unreachable {
        /// Its address.
        place: String,
        /// The cause.
        reason: String,
    },
}
