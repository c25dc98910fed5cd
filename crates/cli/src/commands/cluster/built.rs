//! A build with clusters.

use std::io::Write;
use std::net::SocketAddr;
use std::sync::Arc;

use tidetable_cluster::{Ballista, ClusterError, ClusterQueries, ExecutorOptions, SCHEME, run_executor, run_scheduler};
use tidetable_runner::run::machine;
use tidetable_runner::units::{UnitCarrier, Worker};
use tidetable_runner::{UlidIds, runtime};
use tidetable_sql::{SendableRecordBatchStream, Session};
use tidetable_store::load::MIN_LOAD_MEMORY;
use tidetable_store::{Ids, ulid_text};

use crate::args::{Executor, Global, Scheduler};
use crate::commands::{clock, project};
use crate::diagnostics::print_message;
use crate::error::CliError;
use crate::output::stdout;

/// Brings the units of run `run` to the scheduler at `address`.
pub fn carrier(address: &str, run: &str) -> Result<Arc<dyn UnitCarrier>, CliError> {
    Ok(Arc::new(Ballista::new(address, run)?))
}

/// Runs queries by the executors of a scheduler.
#[derive(Debug)]
pub struct Queries(ClusterQueries);

impl Queries {
    /// Queries of `root` by the scheduler at `address`.
    pub fn new(address: &str, root: &str) -> Result<Self, CliError> {
        let name = format!("sql-{}", ulid_text(UlidIds::default().next()));
        Ok(Self(ClusterQueries::new(address, root, &name)?))
    }

    /// The rows of a query.
    pub async fn stream(&self, session: &Session, query: &str) -> Result<SendableRecordBatchStream, CliError> {
        self.0.stream(session, query).await.map_err(|error| match error {
            ClusterError::Sql(error) => CliError::Sql(error),
            error => CliError::Cluster(error),
        })
    }

    /// Cancels the query that still runs.
    pub async fn cancel(&self) {
        self.0.cancel().await;
    }
}

/// Runs a scheduler until it is stopped. Its address is written to standard output.
pub fn scheduler(global: &Global, args: &Scheduler) -> Result<(), CliError> {
    if !args.bind.ip().is_loopback() {
        print_message(
            global,
            "warning: anyone who reaches this address can have work done: use a network that you trust",
        );
    }
    let host = args.host.clone();
    let ready = move |address: SocketAddr| {
        let place = host.map_or_else(|| address.to_string(), |host| format!("{host}:{}", address.port()));
        let mut out = stdout();
        let _ = writeln!(out, "{SCHEME}{place}").and_then(|()| out.flush());
    };
    let runtime = runtime()?;
    runtime.block_on(async {
        tokio::select! {
            ended = run_scheduler(args.bind, args.host.as_deref(), ready) => ended.map_err(CliError::from),
            stopped = stopped() => stopped,
        }
    })
}

/// Runs an executor until it is stopped.
pub fn executor(global: &Global, args: &Executor) -> Result<(), CliError> {
    if args.memory < MIN_LOAD_MEMORY {
        return Err(CliError::MemoryTooSmall);
    }
    let project = project(global)?;
    let scheduler = args.scheduler.clone().or_else(|| project.cluster.clone());
    let scheduler = scheduler.ok_or(CliError::Usage(
        "no scheduler is named: add --scheduler ballista://HOST:PORT, or `[cluster] url` to tidetable.toml",
    ))?;
    let slots = args.slots.or_else(|| std::thread::available_parallelism().ok().map(usize::from)).unwrap_or(1);
    let id = ulid_text(UlidIds::default().next());
    let name = args.name.clone().unwrap_or_else(|| {
        let machine = machine().unwrap_or_else(|| "executor".to_owned());
        format!("{machine}-{}", id.get(id.len().saturating_sub(6)..).unwrap_or(&id).to_lowercase())
    });
    let work = tempfile::Builder::new().prefix("tidetable-executor-").tempdir()?;
    let work_dir = args.work_dir.clone().unwrap_or_else(|| work.path().to_owned());
    // Of queries and requests: units wait for them on threads of the other runtime.
    let queries = runtime()?;
    let root = project.root.clone();
    let worker = Worker::open(project, (name.clone(), args.memory), queries.handle().clone(), clock)?;
    let options = ExecutorOptions {
        scheduler: scheduler.clone(),
        slots,
        bind: args.bind,
        host: args.host.clone(),
        ports: (args.port, args.scheduler_port),
        work_dir,
        name: name.clone(),
    };
    print_message(global, &format!("executor {name} of {scheduler}: {slots} units at a time in root {root}"));
    let servers = runtime()?;
    servers.block_on(run_executor(options, Arc::new(worker)))?;
    Ok(())
}

/// Waits for SIGINT or SIGTERM.
async fn stopped() -> Result<(), CliError> {
    let mut terminate = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?;
    tokio::select! {
        interrupted = tokio::signal::ctrl_c() => interrupted?,
        _ = terminate.recv() => {}
    }
    Ok(())
}
