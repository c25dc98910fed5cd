//! The scheduler's server. Ballista's own has no TLS, and refuses an executor that was killed and started again under its
//! name.

use std::convert::Infallible;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use ballista_core::serde::protobuf::scheduler_grpc_server::{SchedulerGrpc, SchedulerGrpcServer};
use ballista_core::serde::protobuf::{
    CancelJobParams, CancelJobResult, CleanJobDataParams, CleanJobDataResult, CreateUpdateSessionParams,
    CreateUpdateSessionResult, ExecuteQueryParams, ExecuteQueryResult, ExecutorRegistration, ExecutorStoppedParams,
    ExecutorStoppedResult, GetJobMetricsParams, GetJobMetricsResult, GetJobStatusParams, GetJobStatusResult,
    HeartBeatParams, HeartBeatResult, PollWorkParams, PollWorkResult, RegisterExecutorParams, RegisterExecutorResult,
    RemoveSessionParams, RemoveSessionResult, UpdateTaskStatusParams, UpdateTaskStatusResult,
};
use ballista_core::serde::scheduler::ExecutorMetadata;
use ballista_scheduler::scheduler_server::SchedulerServer;
use datafusion_proto::protobuf::{LogicalPlanNode, PhysicalPlanNode};
use futures::future::BoxFuture;
use tokio::net::{TcpListener, TcpStream};
use tonic::body::Body;
use tonic::codegen::{Context, Poll, Service, http};
use tonic::service::Routes;
use tonic::transport::server::TcpIncoming;
use tonic::transport::{Endpoint, Server};
use tonic::{Request, Response, Status};

use crate::MESSAGE;
use crate::error::ClusterError;
use crate::tls::config::{ALIVE, Tls};
use crate::tls::probe::{BETWEEN, READY, probe};

/// How often an executor is registered, and the wait between two attempts.
const ATTEMPTS: (u32, Duration) = (5, Duration::from_millis(200));

/// How long an executor of the same name is given to take a connection.
const ANSWER: Duration = Duration::from_secs(2);
/// How often it is looked whether Ballista has forgotten an executor, and the wait between two looks.
const LOOKS: (u32, Duration) = (200, Duration::from_millis(10));
/// The wait after that, in which Ballista gives the work of the executor back.
const SETTLING: Duration = Duration::from_millis(100);

/// Ballista's scheduler, whose plans are those of DataFusion.
pub(crate) type Ballista = SchedulerServer<LogicalPlanNode, PhysicalPlanNode>;

/// Serves `scheduler`, with TLS or in clear, until it fails.
pub(crate) async fn serve(listener: TcpListener, scheduler: Ballista, tls: Option<Tls>) -> Result<(), ClusterError> {
    let server = match &tls {
        Some(tls) => tls.server().ok_or(ClusterError::NoCertificate { role: "a scheduler" })?,
        None => Ok(Server::builder().tcp_nodelay(true).http2_keepalive_interval(Some(ALIVE))),
    };

    let readiness = ReadinessService(scheduler.clone());
    let service = SchedulerGrpcServer::new(SchedulerService { scheduler, tls })
        .max_decoding_message_size(MESSAGE)
        .max_encoding_message_size(MESSAGE);
    let routes = Routes::from(Routes::new(service).into_axum_router().route_service(READY, readiness));
    let incoming = TcpIncoming::from(listener).with_nodelay(Some(true));

    let served = async { server?.add_routes(routes).serve_with_incoming(incoming).await };
    served.await.map_err(|source| ClusterError::Serve { role: "the scheduler", source })
}

/// Says whether executors are connected, as Ballista's server does, and names them.
#[derive(Clone)]
struct ReadinessService(Ballista);

impl ReadinessService {
    /// The names of the executors, with [`BETWEEN`] between them.
    async fn names(&self) -> String {
        let known = self.0.state.executor_manager.get_executors_state().await.unwrap_or_default();
        let names: Vec<String> = known.into_iter().map(|(executor, ..)| executor.id).collect();
        names.join(BETWEEN)
    }
}

impl<B> Service<http::Request<B>> for ReadinessService {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: http::Request<B>) -> Self::Future {
        let service = self.clone();
        Box::pin(async move {
            if service.0.is_ready() {
                return Ok(http::Response::new(Body::new(service.names().await)));
            }
            let mut response = http::Response::new(Body::empty());
            *response.status_mut() = http::StatusCode::SERVICE_UNAVAILABLE;
            Ok(response)
        })
    }
}

/// Ballista's scheduler. It registers executors by the one port that they have with TLS, and lets one take the place of a
/// process that is gone.
struct SchedulerService {
    scheduler: Ballista,
    tls: Option<Tls>,
}

impl SchedulerService {
    /// Fails unless the executor is reached by TLS. Ballista itself would only find out when it launches work there, again and
    /// again.
    async fn reach(&self, executor: &ExecutorRegistration, tls: &Tls) -> Result<(), Status> {
        let host = executor.host.as_deref().ok_or_else(|| Status::invalid_argument("an executor without a host"))?;
        let port = u16::try_from(executor.port).map_err(|_| Status::invalid_argument("no port"))?;
        let reason = match Endpoint::from_shared(format!("http://{host}:{port}")) {
            Ok(endpoint) => why_unreached(&endpoint, tls, host, port).await,
            Err(error) => Some(error.to_string()),
        };

        let Some(reason) = reason else { return Ok(()) };
        let id = &executor.id;
        Err(Status::failed_precondition(format!("the scheduler cannot reach executor {id} at {host}:{port}: {reason}")))
    }

    /// Forgets the executor that had the name of one that starts, if its process is gone: Ballista would keep it until its
    /// heartbeats have been missing for long enough.
    async fn take_over(&self, executor: &ExecutorRegistration) -> Result<(), Status> {
        let Ok(known) = self.scheduler.state.executor_manager.get_executor_metadata(&executor.id).await else {
            return Ok(());
        };
        let place = format!("{}:{}", known.host, known.grpc_port);
        if !is_at_place_of(executor, &known) && answers(&place).await {
            return Err(Status::already_exists(self.is_taken(&known, &place)));
        }

        tracing::info!("executor {}: the process at {place} is gone, and one of the same name has started", known.id);
        let reason = "its process is gone, and one of the same name has started".to_owned();
        let stopped = ExecutorStoppedParams { executor_id: known.id, reason };
        self.scheduler.executor_stopped(Request::new(stopped)).await?;
        let (looks, wait) = LOOKS;
        for _ in 0..looks {
            if self.scheduler.state.executor_manager.get_executor_metadata(&executor.id).await.is_err() {
                tokio::time::sleep(SETTLING).await;
                break;
            }
            tokio::time::sleep(wait).await;
        }
        Ok(())
    }

    /// Why a second executor of a name is refused, and until when.
    fn is_taken(&self, known: &ExecutorMetadata, place: &str) -> String {
        let heartbeat = self.scheduler.state.executor_manager.get_executor_hearbeat(&known.id);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let age = heartbeat.map_or(0, |heartbeat| now.saturating_sub(heartbeat.timestamp));
        format!(
            "an executor called {} answers at {place}: stop that one, or choose another --name. Its last heartbeat was {age} s \
             ago; after {} s without one it counts as lost",
            known.id, self.scheduler.state.config.executor_timeout_seconds
        )
    }

    /// Registers an executor with Ballista; with TLS again and again, until Ballista has taken its port.
    async fn register(&self, executor: &ExecutorRegistration) -> Answer<RegisterExecutorResult> {
        let params = RegisterExecutorParams { metadata: Some(executor.clone()) };
        let (attempts, wait) = if self.tls.is_some() { ATTEMPTS } else { (1, Duration::ZERO) };
        for _ in 1..attempts {
            // Ballista tries the port in clear, whose end by the executor it may take for that of the executor.
            match self.scheduler.register_executor(Request::new(params.clone())).await {
                Err(_) => tokio::time::sleep(wait).await,
                registered => return registered,
            }
        }
        self.scheduler.register_executor(Request::new(params)).await
    }
}

/// Why a server is not reached by TLS; `None` if it is.
async fn why_unreached(endpoint: &Endpoint, tls: &Tls, host: &str, port: u16) -> Option<String> {
    let endpoint = match tls.endpoint(endpoint, None) {
        Ok(endpoint) => endpoint,
        Err(error) => return Some(error.to_string()),
    };
    let reached = async { probe(endpoint.connect().await?).await };
    match reached.await {
        Ok(_) => None,
        Err(error) => Some(tls.failure(&error, host, port).await.reason),
    }
}

/// Whether an executor listens where another one did: then the other is gone.
fn is_at_place_of(executor: &ExecutorRegistration, known: &ExecutorMetadata) -> bool {
    executor.host.as_deref() == Some(&*known.host) && executor.grpc_port == u32::from(known.grpc_port)
}

/// Whether a process takes connections at `place`.
async fn answers(place: &str) -> bool {
    matches!(tokio::time::timeout(ANSWER, TcpStream::connect(place)).await, Ok(Ok(_)))
}

/// An executor with TLS has one port for rows and for work; the other is Ballista's, on its loopback.
fn by_one_port(mut executor: ExecutorRegistration) -> ExecutorRegistration {
    executor.grpc_port = executor.port;
    executor
}

/// Why an executor leaves, from the words of Ballista's executor or of ours.
fn cause_of_end(reason: &str) -> &str {
    match reason {
        "executor received terminate signal." => "it was stopped by SIGTERM",
        "executor received ctrl-c event." => "it was stopped by SIGINT",
        reason => reason,
    }
}

type Answer<T> = Result<Response<T>, Status>;

#[tonic::async_trait]
impl SchedulerGrpc for SchedulerService {
    type ExecuteQueryPushStream = <Ballista as SchedulerGrpc>::ExecuteQueryPushStream;

    async fn register_executor(&self, request: Request<RegisterExecutorParams>) -> Answer<RegisterExecutorResult> {
        let executor = request.into_inner().metadata;
        let mut executor = executor.ok_or_else(|| Status::invalid_argument("no executor is named"))?;
        if let Some(tls) = &self.tls {
            executor = by_one_port(executor);
            self.reach(&executor, tls).await?;
        }
        self.take_over(&executor).await?;
        let registered = self.register(&executor).await?;
        let place = format!("{}:{}", executor.host.as_deref().unwrap_or_default(), executor.grpc_port);
        tracing::info!("executor {} at {place} is connected", executor.id);
        Ok(registered)
    }

    async fn heart_beat_from_executor(&self, request: Request<HeartBeatParams>) -> Answer<HeartBeatResult> {
        let mut heartbeat = request.into_inner();
        if self.tls.is_some() {
            heartbeat.metadata = heartbeat.metadata.map(by_one_port);
        }
        if heartbeat.metadata.as_ref().is_some_and(|executor| executor.host.is_none()) {
            return Err(Status::invalid_argument("an executor without a host"));
        }
        self.scheduler.heart_beat_from_executor(Request::new(heartbeat)).await
    }

    /// Executors take work, and do not ask for it.
    async fn poll_work(&self, _: Request<PollWorkParams>) -> Answer<PollWorkResult> {
        Err(Status::unimplemented("executors of tidetable do not poll"))
    }

    async fn update_task_status(&self, request: Request<UpdateTaskStatusParams>) -> Answer<UpdateTaskStatusResult> {
        self.scheduler.update_task_status(request).await
    }

    async fn create_update_session(
        &self,
        request: Request<CreateUpdateSessionParams>,
    ) -> Answer<CreateUpdateSessionResult> {
        self.scheduler.create_update_session(request).await
    }

    async fn remove_session(&self, request: Request<RemoveSessionParams>) -> Answer<RemoveSessionResult> {
        self.scheduler.remove_session(request).await
    }

    async fn execute_query_push(&self, request: Request<ExecuteQueryParams>) -> Answer<Self::ExecuteQueryPushStream> {
        self.scheduler.execute_query_push(request).await
    }

    async fn execute_query(&self, request: Request<ExecuteQueryParams>) -> Answer<ExecuteQueryResult> {
        self.scheduler.execute_query(request).await
    }

    async fn get_job_status(&self, request: Request<GetJobStatusParams>) -> Answer<GetJobStatusResult> {
        self.scheduler.get_job_status(request).await
    }

    async fn get_job_metrics(&self, request: Request<GetJobMetricsParams>) -> Answer<GetJobMetricsResult> {
        self.scheduler.get_job_metrics(request).await
    }

    async fn executor_stopped(&self, request: Request<ExecutorStoppedParams>) -> Answer<ExecutorStoppedResult> {
        let ExecutorStoppedParams { executor_id, reason } = request.get_ref();
        tracing::info!("executor {executor_id} has left: {}", cause_of_end(reason));
        self.scheduler.executor_stopped(request).await
    }

    async fn cancel_job(&self, request: Request<CancelJobParams>) -> Answer<CancelJobResult> {
        // The inherent method of the same name takes an id.
        SchedulerGrpc::cancel_job(&self.scheduler, request).await
    }

    async fn clean_job_data(&self, request: Request<CleanJobDataParams>) -> Answer<CleanJobDataResult> {
        self.scheduler.clean_job_data(request).await
    }
}
