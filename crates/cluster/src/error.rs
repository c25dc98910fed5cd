//! Errors of the servers, and of clients that cannot be set up.

use ballista_core::error::BallistaError;

/// Why a scheduler or an executor could not be started, or ended.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "each message says what its fields are")]
pub enum ClusterError {
    /// An address that a server cannot listen on.
    #[error("cannot listen on {address}: {source}; choose another address or port")]
    Listen { address: String, source: std::io::Error },
    /// An address of a scheduler that cannot be parsed.
    #[error(
        "\"{address}\" is no address of a scheduler: write ballista://HOST:PORT, or ballista+tls://HOST:PORT with TLS"
    )]
    Address { address: String },
    /// An address without TLS, although certificates are named.
    #[error(
        "{address} is not encrypted, but certificates are named for it: write {}, or leave them out",
        address.replacen("ballista:", "ballista+tls:", 1)
    )]
    InClear { address: String },
    /// A file for TLS that cannot be read.
    #[error("cannot read {file}: {source}; name a file in PEM that this user may read")]
    TlsFile { file: String, source: std::io::Error },
    /// A file for TLS with something else in it.
    #[error("{file} holds no {holds} in PEM: name the file that has it")]
    TlsContent { file: String, holds: &'static str },
    /// A certificate without its key, or a key without its certificate.
    #[error("a {given} is named without its {missing}: name the files of both")]
    HalfIdentity { given: &'static str, missing: &'static str },
    /// Files that do not go together, or hold what the library refuses.
    #[error("{files} cannot be used for TLS: {reason}; the key must be that of the first certificate of its file")]
    TlsUnusable { files: String, reason: String },
    /// A server with TLS that has no certificate.
    #[error(
        "{role} with TLS needs a certificate of its own, which the others check: name its file and that of its key by --tls-cert \
         and --tls-key"
    )]
    NoCertificate { role: &'static str },
    /// A timeout after which every executor would count as lost.
    #[error("--executor-timeout must be at least {least}s, and several times --heartbeat of the executors")]
    ExecutorTimeout {
        /// The least that is accepted, in seconds.
        least: u64,
    },
    /// A time between two heartbeats that is less than a second.
    #[error("--heartbeat must be at least 1s, and a fraction of --executor-timeout of the scheduler")]
    Heartbeat,
    /// The transport of a server failed while it served.
    #[error("{role} ended: {source}")]
    Serve { role: &'static str, source: tonic::transport::Error },
    /// The directory for the answers that wait to be fetched cannot be used.
    #[error(
        "executor {executor} cannot write answers to {directory}: {source}; it takes no more units. Free the disk, or choose \
         another folder by --work-dir, and start it again"
    )]
    WorkDirectory { executor: String, directory: String, source: std::io::Error },
    /// A scheduler that does not take an executor.
    #[error("the scheduler at {place} refuses this executor: {reason}")]
    Refused { place: String, reason: String },
    /// Ballista failed while it was set up, or while it ran.
    #[error("{role} ended: {source}")]
    Ballista { role: &'static str, source: Box<BallistaError> },
    /// A scheduler that an executor cannot reach.
    #[error(
        "the scheduler at {place} cannot be reached: {reason}; start it with `tidetable scheduler`, or correct the address"
    )]
    Unreachable { place: String, reason: String },
    /// A scheduler that stopped answering the heartbeats of an executor.
    #[error(
        "the scheduler at {place} does not answer any more: this executor has ended; start it again once the scheduler is there, \
         as systemd does with `Restart=always`"
    )]
    SchedulerGone { place: String },
}
