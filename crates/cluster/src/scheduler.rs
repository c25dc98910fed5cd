//! The scheduler: Ballista's, with the encoding of units.

use std::net::SocketAddr;
use std::sync::Arc;

use ballista_core::error::BallistaError;
use ballista_scheduler::cluster::BallistaCluster;
use ballista_scheduler::config::{SchedulerConfig, TaskDistributionPolicy};
use ballista_scheduler::scheduler_process::{create_scheduler, start_grpc_service_with_listener};
use datafusion_proto::protobuf::{LogicalPlanNode, PhysicalPlanNode};
use tokio::net::TcpListener;

use crate::codec::PlanCodec;
use crate::error::ClusterError;
use crate::query::settings::function_state;

/// Seconds without a heartbeat after which an executor counts as lost, and its units run elsewhere.
const EXECUTOR_TIMEOUT: u64 = 40;
/// Seconds between two looks for lost executors.
const LOOKS: u64 = 5;
/// Seconds that jobs wait for an executor when the last one is lost.
const NO_EXECUTORS: u64 = 60;
/// Seconds after which the answers and the state of ended jobs are removed.
const CLEAN_UP: u64 = 120;

/// Runs a scheduler that listens on `bind` and that executors reach as `host`, until it fails. `ready` gets the address.
///
/// # Errors
/// [`ClusterError`].
pub async fn run_scheduler(
    bind: SocketAddr,
    host: Option<&str>,
    ready: impl FnOnce(SocketAddr) + Send,
) -> Result<(), ClusterError> {
    let ended = |source: BallistaError| ClusterError::Ballista { role: "the scheduler", source: Box::new(source) };
    let listen = |source| ClusterError::Listen { address: bind.to_string(), source };
    let listener = TcpListener::bind(bind).await.map_err(listen)?;
    let address = listener.local_addr().map_err(listen)?;
    let config = Arc::new(SchedulerConfig {
        bind_host: address.ip().to_string(),
        bind_port: address.port(),
        external_host: host.map_or_else(|| address.ip().to_string(), str::to_owned),
        task_distribution: TaskDistributionPolicy::RoundRobin,
        executor_timeout_seconds: EXECUTOR_TIMEOUT,
        expire_dead_executor_interval_seconds: LOOKS,
        no_executors_grace_period_seconds: NO_EXECUTORS,
        finished_job_data_clean_up_interval_seconds: CLEAN_UP,
        finished_job_state_clean_up_interval_seconds: CLEAN_UP,
        override_physical_codec: Some(Arc::new(PlanCodec::new(None))),
        override_session_builder: Some(Arc::new(|config| function_state(Some(config)))),
        ..SchedulerConfig::default()
    });
    config.validate().map_err(ended)?;
    let cluster = BallistaCluster::new_from_config(&config).await.map_err(ended)?;
    let scheduler = create_scheduler::<LogicalPlanNode, PhysicalPlanNode>(cluster, config).await.map_err(ended)?;
    ready(address);
    start_grpc_service_with_listener(listener, scheduler).await.map_err(ended)
}
