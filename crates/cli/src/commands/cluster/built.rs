//! A build with clusters.

use std::io::Write;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tidetable_cluster::{
    Ballista, ExecutorOptions, SCHEME, SchedulerOptions, TLS_SCHEME, TlsFiles, run_executor, run_scheduler,
};
use tidetable_ingest::MIN_LOAD_MEMORY;
use tidetable_job::Project;
use tidetable_runner::run::machine;
use tidetable_runner::units::UnitCarrier;
use tidetable_runner::{UlidIds, Worker, WorkerOptions, runtime};
use tidetable_store::{Ids, ulid_text};

use crate::args::maintenance::Certificates;
use crate::args::{Executor, Global, Scheduler};
use crate::commands::{clock, project};
use crate::diagnostics::print_message;
use crate::error::CliError;
use crate::output::stdout;
use crate::output::values::count;
use crate::place::writable;

/// A scheduler, and how it is reached.
#[derive(Debug, Clone)]
pub struct Elsewhere {
    address: String,
    tls: TlsFiles,
    /// How long the next answer is waited for; `None` for the default.
    timeout: Option<Duration>,
}

impl Elsewhere {
    /// The scheduler at `address`, reached as the project says.
    pub fn of(address: &str, project: &Project) -> Self {
        Self { address: address.to_owned(), tls: files_of(project), timeout: project.cluster.timeout }
    }
}

/// The files for TLS that a project names.
fn files_of(project: &Project) -> TlsFiles {
    let cluster = &project.cluster;
    let [ca, cert, key] =
        [&cluster.ca, &cluster.cert, &cluster.key].map(|path| path.as_ref().map(|path| project.dir.join(path)));
    TlsFiles { ca, cert, key }
}

/// The files for TLS of the command line.
fn files_of_args(args: &Certificates) -> TlsFiles {
    TlsFiles { ca: args.tls_ca.clone(), cert: args.tls_cert.clone(), key: args.tls_key.clone() }
}

/// Microseconds of an option as a duration.
fn duration(micros: i64) -> Duration {
    Duration::from_micros(u64::try_from(micros).unwrap_or_default())
}

/// Whether this build can reach schedulers: it can.
pub fn check(_: &Elsewhere) -> Result<(), CliError> {
    Ok(())
}

/// Brings the units of run `run` to a scheduler.
pub fn carrier(to: &Elsewhere, run: &str) -> Result<Arc<dyn UnitCarrier>, CliError> {
    let ballista = Ballista::new(&to.address, &to.tls, run)?;
    Ok(Arc::new(match to.timeout {
        Some(timeout) => ballista.with_timeout(timeout),
        None => ballista,
    }))
}

/// Runs a scheduler until it is stopped. Its address is written to standard output.
pub fn scheduler(global: &Global, args: &Scheduler) -> Result<(), CliError> {
    let tls = files_of_args(&args.tls);
    let open = match (&tls.cert, &tls.ca) {
        _ if args.bind.ip().is_loopback() => None,
        (None, _) => Some(
            "warning: anyone who reaches this address can have work done and read answers: use a network that you trust, or \
             --tls-cert, --tls-key and --tls-ca",
        ),
        (Some(_), None) => Some(
            "warning: anyone who reaches this address can have work done: with --tls-ca only holders of a certificate of \
             your authority can",
        ),
        (Some(_), Some(_)) => None,
    };
    if let Some(open) = open {
        print_message(global, open);
    }

    let (host, scheme) = (args.host.clone(), if tls.is_empty() { SCHEME } else { TLS_SCHEME });
    let ready = move |address: SocketAddr| {
        let place = host.map_or_else(|| address.to_string(), |host| format!("{host}:{}", address.port()));
        let mut out = stdout();
        let _ = writeln!(out, "{scheme}{place}").and_then(|()| out.flush());
    };

    let options = SchedulerOptions {
        bind: args.bind,
        host: args.host.clone(),
        executor_timeout: duration(args.executor_timeout),
        tls,
    };

    let runtime = runtime()?;
    runtime.block_on(async {
        tokio::select! {
            ended = run_scheduler(options, ready) => ended.map_err(CliError::from),
            stopped = stopped() => stopped,
        }
    })?;
    print_message(global, "scheduler stopped by a signal");
    Ok(())
}

/// Runs an executor until it is stopped.
pub fn executor(global: &Global, args: &Executor) -> Result<(), CliError> {
    if args.memory < MIN_LOAD_MEMORY {
        return Err(CliError::MemoryTooSmall);
    }

    let project = project(global)?;
    let scheduler = args.scheduler.clone().or_else(|| project.cluster.url.clone());
    let scheduler = scheduler.ok_or(CliError::Usage(
        "no scheduler is named: add --scheduler ballista://HOST:PORT, or `[cluster] url` to tidetable.toml",
    ))?;

    let given = files_of_args(&args.tls);
    let tls = if given.is_empty() { files_of(&project) } else { given };
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
    let temp_dir = args.temp_dir.clone().map(writable).transpose()?;
    let units_by = WorkerOptions { name: name.clone(), memory: args.memory, temp_dir };
    let worker = Worker::open(project, units_by, queries.handle().clone(), clock)?;

    let options = ExecutorOptions {
        scheduler: scheduler.clone(),
        slots,
        bind: args.bind,
        host: args.host.clone(),
        ports: (args.port, args.scheduler_port),
        heartbeat: duration(args.heartbeat),
        tls,
        work_dir,
        name: name.clone(),
    };

    let units = count(slots as u64, "unit");
    print_message(global, &format!("executor {name} of {scheduler}: {units} at a time in root {root}"));
    let servers = runtime()?;
    servers.block_on(run_executor(options, Arc::new(worker)))?;
    print_message(global, &format!("executor {name} stopped by a signal"));
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
