//! Units of work on Apache Ballista.
//!
//! | module | contents |
//! |---|---|
//! | `carrier` | [`Ballista`], which brings the units of a run to a scheduler and their answers back |
//! | `jobs`, `attempts`, `job` | groups of units, each a job of the scheduler; which are sent again; one job |
//! | `exec`, `codec` | the plan node that runs units, and its encoding |
//! | `scheduler`, `executor` | the two servers; the folder in which the answers of an executor wait |
//! | `rotation` | which executor gets the next unit |
//! | `runtime` | what plans run in: sessions that read no files |
//! | `service` | what the scheduler answers |
//! | `session`, `address`, `connect` | settings of jobs; addresses of and connections to schedulers |
//! | `tls` | certificates, and the servers with TLS |
//!
//! Ballista plans nothing here: a job of units is `UnitExec(DataSourceExec)` with a partition of one row for each unit. An executor
//! runs the units by a [`Worker`](tidetable_runner::Worker) of its own project; a scheduler cannot run them.

mod address;
mod attempts;
mod carrier;
mod codec;
mod connect;
mod error;
mod exec;
mod executor;
mod job;
mod jobs;
mod rotation;
mod runtime;
mod scheduler;
mod service;
mod session;
mod tls;

pub use address::{SCHEME, TLS_SCHEME};
pub use carrier::Ballista;
pub use error::ClusterError;
pub use executor::{ExecutorOptions, run_executor};
pub use scheduler::{SchedulerOptions, run_scheduler};
pub use session::Chaos;
pub use tls::files::TlsFiles;

/// The largest message between the processes in bytes: a plan with its units, or an answer.
pub(crate) const MESSAGE: usize = 16 << 20;
