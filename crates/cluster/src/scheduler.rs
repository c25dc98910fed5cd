//! The scheduler: Ballista's, with the encoding of units, an order of executors and a server of ours.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use ballista_core::error::BallistaError;
use ballista_scheduler::cluster::BallistaCluster;
use ballista_scheduler::config::{SchedulerConfig, TaskDistributionPolicy};
use ballista_scheduler::scheduler_process::create_scheduler;
use datafusion_proto::protobuf::{LogicalPlanNode, PhysicalPlanNode};
use tokio::net::TcpListener;

use crate::codec::PlanCodec;
use crate::error::ClusterError;
use crate::rotation::Rotation;
use crate::runtime::session_without_files;
use crate::service::serve;
use crate::tls::config::Tls;
use crate::tls::files::TlsFiles;

/// The shortest time after which an executor counts as lost.
const SHORTEST: Duration = Duration::from_secs(3);
/// Looks for lost executors within the time after which one counts as lost.
const LOOKS: u64 = 8;
/// The shortest time that jobs wait for an executor when the last one is lost, in seconds.
const NO_EXECUTORS: u64 = 60;
/// Seconds after which the answers and the state of ended jobs are removed.
const CLEAN_UP: u64 = 120;
/// How long a request of the scheduler to an executor may take before it fails.
const REQUEST: Duration = Duration::from_secs(20);

/// Options of a scheduler, as its command line has them.
#[derive(Debug, Clone)]
pub struct SchedulerOptions {
    /// The address to listen on; port 0 stands for any that is free.
    pub bind: SocketAddr,
    /// The name under which executors reach it; the address if `None`.
    pub host: Option<String>,
    /// Time without a heartbeat after which an executor counts as lost, and its units run elsewhere.
    pub executor_timeout: Duration,
    /// Certificates for TLS, of which a scheduler needs one of its own; none for connections in clear.
    pub tls: TlsFiles,
}

fn ended(source: BallistaError) -> ClusterError {
    ClusterError::Ballista { role: "the scheduler", source: Box::new(source) }
}

/// Runs a scheduler until it fails. `ready` gets the address.
///
/// # Errors
/// [`ClusterError`].
pub async fn run_scheduler(
    options: SchedulerOptions,
    ready: impl FnOnce(SocketAddr) + Send,
) -> Result<(), ClusterError> {
    let SchedulerOptions { bind, host, executor_timeout, tls } = options;
    if executor_timeout < SHORTEST {
        return Err(ClusterError::ExecutorTimeout { least: SHORTEST.as_secs() });
    }
    let tls = if tls.is_empty() { None } else { Some(Tls::of(&tls)?) };
    if tls.as_ref().is_some_and(|tls| tls.server().is_none()) {
        return Err(ClusterError::NoCertificate { role: "a scheduler" });
    }

    let listen = |source| ClusterError::Listen { address: bind.to_string(), source };
    let listener = TcpListener::bind(bind).await.map_err(listen)?;
    let address = listener.local_addr().map_err(listen)?;

    let lost_after = executor_timeout.as_secs();
    let config = Arc::new(SchedulerConfig {
        bind_host: address.ip().to_string(),
        bind_port: address.port(),
        external_host: host.unwrap_or_else(|| address.ip().to_string()),
        task_distribution: TaskDistributionPolicy::Custom(Arc::new(Rotation::default())),
        executor_timeout_seconds: lost_after,
        expire_dead_executor_interval_seconds: (lost_after / LOOKS).max(1),
        // Longer than the time between two heartbeats, by which an executor comes back.
        no_executors_grace_period_seconds: lost_after.max(NO_EXECUTORS),
        finished_job_data_clean_up_interval_seconds: CLEAN_UP,
        finished_job_state_clean_up_interval_seconds: CLEAN_UP,
        override_physical_codec: Some(Arc::new(PlanCodec::new(None))),
        override_session_builder: Some(Arc::new(session_without_files)),
        override_create_grpc_client_endpoint: tls.as_ref().map(|tls| tls.hook(Some(REQUEST))),
        ..SchedulerConfig::default()
    });

    config.validate().map_err(ended)?;
    let cluster = BallistaCluster::new_from_config(&config).await.map_err(ended)?;
    let scheduler = create_scheduler::<LogicalPlanNode, PhysicalPlanNode>(cluster, config).await.map_err(ended)?;
    ready(address);
    serve(listener, scheduler, tls).await
}
