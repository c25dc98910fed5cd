//! The executor: Ballista's, with a worker that runs units.

use std::net::{IpAddr, SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;

use ballista_core::RuntimeProducer;
use ballista_core::error::BallistaError;
use ballista_core::registry::BallistaFunctionRegistry;
use ballista_executor::executor_process::{ExecutorProcessConfig, start_executor_process};
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use tidetable_runner::RunError;
use tidetable_runner::units::{Worker, root_key};

use crate::address::host_and_port;
use crate::codec::PlanCodec;
use crate::error::ClusterError;
use crate::query::roots::RootStores;
use crate::query::settings::function_state;

/// Seconds between two heartbeats.
const HEARTBEAT: u64 = 5;
/// Seconds for which a scheduler is waited for at the start.
const CONNECT: u16 = 60;
/// Seconds after which answers that nobody fetched are removed, and between two looks for them.
const ANSWERS: (u64, u64) = (3600, 300);

/// Options of an executor.
#[derive(Debug, Clone)]
pub struct ExecutorOptions {
    /// The scheduler, `ballista://HOST:PORT`.
    pub scheduler: String,
    /// Units at a time.
    pub slots: usize,
    /// The address on which the scheduler and drivers reach it.
    pub bind: IpAddr,
    /// The name under which they reach it; the address if `None`.
    pub host: Option<String>,
    /// Ports for answers and for the scheduler; 0 for any.
    pub ports: (u16, u16),
    /// Where answers wait to be fetched.
    pub work_dir: PathBuf,
    /// Its name.
    pub name: String,
}

/// Runs an executor until it gets a signal, or fails.
///
/// # Errors
/// [`ClusterError`].
pub async fn run_executor(options: ExecutorOptions, worker: Arc<Worker>) -> Result<(), ClusterError> {
    let (scheduler_host, scheduler_port) = host_and_port(&options.scheduler)?;
    let work_dir = options.work_dir.display().to_string();
    std::fs::create_dir_all(&options.work_dir)
        .map_err(|source| ClusterError::WorkDirectory { directory: work_dir.clone(), source })?;
    let (port, grpc_port) = ports(options.bind, options.ports)?;
    let key = root_key(worker.root()).map_err(|error| Box::new(RunError::Build(error)))?;
    let functions = function_state(None).map_err(|error| ClusterError::Ballista {
        role: "the executor",
        source: Box::new(BallistaError::DataFusionError(Box::new(error))),
    })?;
    let config = ExecutorProcessConfig {
        executor_id: options.name,
        bind_host: options.bind.to_string(),
        external_host: Some(options.host.unwrap_or_else(|| options.bind.to_string())),
        port,
        grpc_port,
        scheduler_host,
        scheduler_port,
        scheduler_connect_timeout_seconds: CONNECT,
        vcores: options.slots.max(1),
        work_dir: Some(work_dir),
        job_data_ttl_seconds: ANSWERS.0,
        job_data_clean_up_interval_seconds: ANSWERS.1,
        executor_heartbeat_interval_seconds: HEARTBEAT,
        // Units have a budget of their own.
        memory_pool_size: Some(0),
        override_function_registry: Some(Arc::new(BallistaFunctionRegistry::from(&functions))),
        override_runtime_producer: Some(runtime_of(Arc::clone(&worker), key)),
        override_physical_codec: Some(Arc::new(PlanCodec::new(Some(worker)))),
        ..ExecutorProcessConfig::default()
    };
    start_executor_process(Arc::new(config))
        .await
        .map_err(|source| ClusterError::Ballista { role: "the executor", source: Box::new(source) })
}

/// Makes what queries run with: they read the root, and nothing else.
fn runtime_of(worker: Arc<Worker>, key: String) -> RuntimeProducer {
    Arc::new(move |_| {
        let roots = Arc::new(RootStores::of(&key, &worker.store()));
        RuntimeEnvBuilder::new().with_object_store_registry(roots).build_arc()
    })
}

/// Two ports: those that are given, or free ones, because an executor tells the scheduler its ports before it listens.
fn ports(bind: IpAddr, given: (u16, u16)) -> Result<(u16, u16), ClusterError> {
    let free = |port: u16| {
        let address = SocketAddr::new(bind, port);
        let listener = TcpListener::bind(address).and_then(|listener| Ok((listener.local_addr()?.port(), listener)));
        listener.map_err(|source| ClusterError::Listen { address: address.to_string(), source })
    };
    // Both are held until both are known.
    let (first, second) = (free(given.0)?, free(given.1)?);
    Ok((first.0, second.0))
}
