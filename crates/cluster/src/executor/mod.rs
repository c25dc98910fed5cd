//! The executor: Ballista's, with a worker that runs units. It leaves the cluster when its folder of answers cannot be written.

mod answers;

use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::path::PathBuf;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use ballista_core::ConfigProducer;
use ballista_core::error::BallistaError;
use ballista_core::extension::SessionConfigExt;
use ballista_core::serde::protobuf::ExecutorStoppedParams;
use ballista_executor::execution_engine::DefaultExecutionEngine;
use ballista_executor::executor_process::{ExecutorProcessConfig, start_executor_process};
use datafusion::prelude::SessionConfig;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::low_level::raise;
use tidetable_runner::Worker;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;
use tonic::Code;

use self::answers::{AnswerFolder, WatchedEngine};
use crate::codec::PlanCodec;
use crate::connect::SchedulerLink;
use crate::error::ClusterError;
use crate::runtime::runtime_without_files;
use crate::tls::config::Tls;
use crate::tls::executor::SecureServer;
use crate::tls::files::TlsFiles;

/// How long a scheduler is waited for at the start, and the time between two attempts.
const CONNECT: (Duration, Duration) = (Duration::from_secs(60), Duration::from_millis(500));
/// After what wait for a scheduler the executor says so, and the time between two such lines.
const SAY: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(10));
/// How long the scheduler is given to hear that an executor leaves.
const FAREWELL: Duration = Duration::from_secs(10);
/// How long Ballista has to end after a signal before it gets the signal again.
const SIGNAL_AGAIN: Duration = Duration::from_secs(1);
/// How long a request of an executor to the scheduler may take before it fails.
const REQUEST: Duration = Duration::from_secs(20);
/// Seconds after which answers that nobody fetched are removed, and between two looks for them.
const ANSWERS: (u64, u64) = (3600, 300);

/// Options of an executor, as its command line has them.
#[derive(Debug, Clone)]
pub struct ExecutorOptions {
    /// The address of the scheduler, `ballista://HOST:PORT` or `ballista+tls://HOST:PORT`.
    pub scheduler: String,
    /// Units that run at the same time, at least one.
    pub slots: usize,
    /// The address on which the scheduler and drivers reach it.
    pub bind: IpAddr,
    /// The name under which they reach it; the address if `None`.
    pub host: Option<String>,
    /// Ports for answers and for the scheduler; 0 for any. With TLS both use the first, and the second is for this machine.
    pub ports: (u16, u16),
    /// Time between two heartbeats to the scheduler, at least a second and a fraction of the scheduler's limit.
    pub heartbeat: Duration,
    /// Certificates for TLS, which an executor needs for a scheduler with TLS; none for connections in clear.
    pub tls: TlsFiles,
    /// The folder in which answers wait to be fetched. It is made if it is not there.
    pub work_dir: PathBuf,
    /// The name by which the scheduler and messages know it.
    pub name: String,
}

/// Runs an executor until it gets a signal, or fails.
///
/// # Errors
/// [`ClusterError`].
pub async fn run_executor(options: ExecutorOptions, worker: Arc<Worker>) -> Result<(), ClusterError> {
    if options.heartbeat < Duration::from_secs(1) {
        return Err(ClusterError::Heartbeat);
    }
    let link = SchedulerLink::new(&options.scheduler, &options.tls)?;
    let tls = link.tls().map(Arc::as_ref);
    if tls.is_some_and(|tls| tls.server().is_none()) {
        return Err(ClusterError::NoCertificate { role: "an executor" });
    }
    let folder = AnswerFolder { executor: options.name.clone(), path: options.work_dir.clone() };
    folder.probe().map_err(|source| unwritable(&folder, source))?;
    wait_for(&link).await?;

    // Ballista's server of work speaks in clear, and with TLS on loopback only.
    let inner = if tls.is_some() { Ipv4Addr::LOCALHOST.into() } else { options.bind };
    // Both are held until both are known.
    let ((rows, port), (work, grpc_port)) = (listen(options.bind, options.ports.0)?, listen(inner, options.ports.1)?);
    // An executor tells the scheduler its ports before Ballista listens there.
    drop(work);
    let secure = match tls {
        Some(tls) => Some(SecureServer::start(rows, grpc_port, options.work_dir.display().to_string(), tls)?),
        None => {
            drop(rows);
            None
        }
    };

    let (failed, mut fails) = mpsc::channel(1);
    let engine = WatchedEngine { inner: DefaultExecutionEngine::new(), folder: folder.clone(), failed };
    let config = ExecutorProcessConfig {
        bind_host: inner.to_string(),
        port,
        grpc_port,
        override_physical_codec: Some(Arc::new(PlanCodec::new(Some(worker)))),
        override_execution_engine: Some(Arc::new(engine)),
        override_arrow_flight_service: secure.as_ref().map(SecureServer::hook),
        ..config_of(options, &link)
    };
    let ended = tokio::select! {
        ended = until_stopped(start_executor_process(Arc::new(config))) => ended?,
        Some(source) = fails.recv() => {
            let error = unwritable(&folder, source);
            let reason = error.to_string();
            // A scheduler that does not hear it misses the heartbeats.
            let _ = tokio::time::timeout(FAREWELL, leave(&link, &folder.executor, &reason)).await;
            return Err(error);
        }
    };
    drop(secure);
    ended.result(&link)
}

/// What Ballista's executor takes from the options and the link to the scheduler.
fn config_of(options: ExecutorOptions, link: &SchedulerLink) -> ExecutorProcessConfig {
    let (scheduler_host, scheduler_port) = link.host_and_port();
    let tls = link.tls().map(Arc::as_ref);
    ExecutorProcessConfig {
        executor_id: options.name,
        external_host: Some(options.host.unwrap_or_else(|| options.bind.to_string())),
        scheduler_host: scheduler_host.to_owned(),
        scheduler_port,
        scheduler_connect_timeout_seconds: u16::try_from(CONNECT.0.as_secs()).unwrap_or(u16::MAX),
        vcores: options.slots.max(1),
        work_dir: Some(options.work_dir.display().to_string()),
        job_data_ttl_seconds: ANSWERS.0,
        job_data_clean_up_interval_seconds: ANSWERS.1,
        executor_heartbeat_interval_seconds: options.heartbeat.as_secs(),
        // Units have a budget of their own.
        memory_pool_size: Some(0),

        override_runtime_producer: Some(Arc::new(|_: &SessionConfig| runtime_without_files())),
        override_create_grpc_client_endpoint: tls.map(|tls| tls.hook(Some(REQUEST))),
        override_config_producer: tls.map(fetches),
        ..ExecutorProcessConfig::default()
    }
}

/// The error of a folder of answers that cannot be written.
fn unwritable(folder: &AnswerFolder, source: std::io::Error) -> ClusterError {
    let (executor, directory) = (folder.executor.clone(), folder.path.display().to_string());
    ClusterError::WorkDirectory { executor, directory, source }
}

impl Ended<Result<(), BallistaError>> {
    /// The end as a run of the executor returns it. Ballista also ends by itself where no heartbeat is answered.
    fn result(self, link: &SchedulerLink) -> Result<(), ClusterError> {
        if self.with.is_ok() && !self.was_asked {
            return Err(ClusterError::SchedulerGone { place: link.place() });
        }
        self.with.map_err(|source| match source {
            // The scheduler says why, in sentences of its own.
            BallistaError::GrpcError(status)
                if matches!(status.code(), Code::AlreadyExists | Code::FailedPrecondition) =>
            {
                ClusterError::Refused { place: link.place(), reason: status.message().to_owned() }
            }
            source => ClusterError::Ballista { role: "the executor", source: Box::new(source) },
        })
    }
}

/// Tells the scheduler that an executor leaves: its units run on others.
async fn leave(link: &SchedulerLink, executor: &str, reason: &str) {
    let Ok(mut scheduler) = link.connect().await else { return };
    let stopped = ExecutorStoppedParams { executor_id: executor.to_owned(), reason: reason.to_owned() };
    if let Err(status) = scheduler.executor_stopped(stopped).await {
        tracing::debug!(reason = status.message(), "the scheduler was not told that this executor leaves");
    }
}

/// The end of Ballista's process, and whether it was asked for.
#[derive(Debug)]
struct Ended<T> {
    /// What the process returned.
    with: T,
    /// Whether a signal asked the process to end.
    was_asked: bool,
}

/// Runs Ballista's process until it ends. It registers an executor before it listens for signals, and one that came between would
/// end the process by default, with the executor still registered: each is caught here, and sent again until Ballista has taken it.
///
/// # Errors
/// If no handler of signals can be installed.
async fn until_stopped<T>(process: impl Future<Output = T>) -> Result<Ended<T>, ClusterError> {
    let (mut interrupt, mut terminate) = (handler(SignalKind::interrupt())?, handler(SignalKind::terminate())?);
    let mut process = pin!(process);

    loop {
        let number = tokio::select! {
            biased;
            _ = interrupt.recv() => SIGINT,
            _ = terminate.recv() => SIGTERM,
            with = &mut process => return Ok(Ended { with, was_asked: false }),
        };
        if let Ok(with) = tokio::time::timeout(SIGNAL_AGAIN, &mut process).await {
            return Ok(Ended { with, was_asked: true });
        }
        // Once Ballista has taken a signal, it takes no other.
        let _ = raise(number);
    }
}

fn handler(kind: SignalKind) -> Result<Signal, ClusterError> {
    signal(kind).map_err(|error| ClusterError::Ballista { role: "the executor", source: Box::new(error.into()) })
}

/// The settings of tasks that fetch rows of other executors by TLS.
fn fetches(tls: &Tls) -> ConfigProducer {
    let hook = tls.hook(None);
    Arc::new(move || {
        SessionConfig::new_with_ballista().with_ballista_override_create_grpc_client_endpoint(Arc::clone(&hook))
    })
}

/// Waits until the scheduler answers, or says why it never will. What is waited for is logged.
async fn wait_for(link: &SchedulerLink) -> Result<(), ClusterError> {
    let begun = Instant::now();
    let last = Mutex::new("it has not answered yet".to_owned());
    let mut reached = pin!(reach(link, begun, &last));
    let mut wait = SAY.0;

    loop {
        tokio::select! {
            reached = &mut reached => return reached,
            () = tokio::time::sleep(wait) => tracing::warn!("{}", waiting(&link.place(), begun.elapsed(), &last)),
        }
        wait = SAY.1;
    }
}

/// What an executor says while it waits for the scheduler at `place`.
fn waiting(place: &str, waited: Duration, last: &Mutex<String>) -> String {
    let reason = last.lock().unwrap_or_else(PoisonError::into_inner);
    let (waited, limit) = (waited.as_secs(), CONNECT.0.as_secs());
    format!("waiting for the scheduler at {place}, {waited} s of at most {limit} s: {reason}")
}

/// Connects to the scheduler again and again, until it answers or the limit is over. `last` gets the reason of the last failure.
async fn reach(link: &SchedulerLink, begun: Instant, last: &Mutex<String>) -> Result<(), ClusterError> {
    let (limit, pause) = CONNECT;
    loop {
        match link.connect().await {
            Ok(_) => return Ok(()),
            Err(error) if error.lasts || begun.elapsed() >= limit => {
                return Err(ClusterError::Unreachable { place: link.place(), reason: error.reason });
            }
            Err(error) => {
                *last.lock().unwrap_or_else(PoisonError::into_inner) = error.reason;
                tokio::time::sleep(pause).await;
            }
        }
    }
}

/// Listens on a port, or on one that is free if it is 0.
fn listen(bind: IpAddr, port: u16) -> Result<(TcpListener, u16), ClusterError> {
    let address = SocketAddr::new(bind, port);
    let listener = TcpListener::bind(address).and_then(|listener| Ok((listener.local_addr()?.port(), listener)));
    let (port, listener) = listener.map_err(|source| ClusterError::Listen { address: address.to_string(), source })?;
    Ok((listener, port))
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use super::*;

    #[tokio::test]
    async fn an_end_without_a_signal_was_not_asked_for() {
        let ended = until_stopped(ready(7)).await.unwrap();
        assert_eq!((ended.with, ended.was_asked), (7, false));

        let asked = tokio::time::timeout(Duration::from_secs(60), async {
            let process = async {
                raise(SIGTERM).unwrap();
                tokio::time::timeout(Duration::from_millis(200), pending::<()>()).await.is_err()
            };
            until_stopped(process).await.unwrap()
        });
        assert!(asked.await.unwrap().was_asked);
    }
}
