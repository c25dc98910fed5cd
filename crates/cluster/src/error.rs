//! Errors of the servers.

use ballista_core::error::BallistaError;
use tidetable_runner::RunError;
use tidetable_sql::SqlError;

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
    #[error("\"{address}\" is no address of a scheduler: write ballista://HOST:PORT")]
    Address {
        /// The address.
        address: String,
    },
    /// The directory for the answers that wait to be fetched cannot be used.
    #[error("cannot use {directory} for answers: {source}")]
    WorkDirectory {
        /// The directory.
        directory: String,
        /// The cause.
        source: std::io::Error,
    },
    /// Ballista failed.
    #[error("{role} ended: {source}")]
    Ballista {
        /// Which server.
        role: &'static str,
        /// The cause.
        source: Box<BallistaError>,
    },
    /// No scheduler to send a query to.
    #[error(
        "the scheduler at {place} cannot be reached: {reason}; start it with `tidetable scheduler`, or correct the address"
    )]
    Unreachable {
        /// Its address.
        place: String,
        /// The cause.
        reason: String,
    },
    /// A query failed.
    #[error("the query failed on the executors of {place}: {reason}")]
    Query {
        /// Address of the scheduler.
        place: String,
        /// The cause.
        reason: String,
    },
    /// A query is wrong, or only one process can run it.
    #[error(transparent)]
    Sql(#[from] SqlError),
    /// The root or the program cannot be used.
    #[error(transparent)]
    Run(#[from] Box<RunError>),
}
