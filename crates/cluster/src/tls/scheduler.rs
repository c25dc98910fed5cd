//! The scheduler's server with TLS. Ballista's own has none.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use ballista_core::serde::protobuf::scheduler_grpc_server::{SchedulerGrpc, SchedulerGrpcServer};
use ballista_core::serde::protobuf::{
    CancelJobParams, CancelJobResult, CleanJobDataParams, CleanJobDataResult, CreateUpdateSessionParams,
    CreateUpdateSessionResult, ExecuteQueryParams, ExecuteQueryResult, ExecutorRegistration, ExecutorStoppedParams,
    ExecutorStoppedResult, GetJobMetricsParams, GetJobMetricsResult, GetJobStatusParams, GetJobStatusResult,
    HeartBeatParams, HeartBeatResult, PollWorkParams, PollWorkResult, RegisterExecutorParams, RegisterExecutorResult,
    RemoveSessionParams, RemoveSessionResult, UpdateTaskStatusParams, UpdateTaskStatusResult,
};
use ballista_scheduler::scheduler_server::SchedulerServer;
use datafusion_proto::protobuf::{LogicalPlanNode, PhysicalPlanNode};
use tokio::net::TcpListener;
use tonic::body::Body;
use tonic::codegen::{Context, Poll, Service, http};
use tonic::service::Routes;
use tonic::transport::Endpoint;
use tonic::transport::server::TcpIncoming;
use tonic::{Request, Response, Status};

use crate::MESSAGE;
use crate::error::ClusterError;
use crate::tls::config::Tls;
use crate::tls::probe::{READY, probe};

/// How often an executor is registered, and the wait between two attempts.
const ATTEMPTS: (u32, Duration) = (5, Duration::from_millis(200));

/// Ballista's scheduler.
pub(crate) type Ballista = SchedulerServer<LogicalPlanNode, PhysicalPlanNode>;

/// Serves `scheduler` with TLS, until it fails.
pub(crate) async fn serve(listener: TcpListener, scheduler: Ballista, tls: Tls) -> Result<(), ClusterError> {
    let server = tls.server().ok_or(ClusterError::NoCertificate { role: "a scheduler" })?;
    let readiness = {
        let scheduler = scheduler.clone();
        Readiness(Arc::new(move || scheduler.is_ready()))
    };
    let service = SchedulerGrpcServer::new(Secured { scheduler, tls })
        .max_decoding_message_size(MESSAGE)
        .max_encoding_message_size(MESSAGE);
    let routes = Routes::from(Routes::new(service).into_axum_router().route_service(READY, readiness));
    let incoming = TcpIncoming::from(listener).with_nodelay(Some(true));
    let served = async { server?.add_routes(routes).serve_with_incoming(incoming).await };
    served.await.map_err(|source| ClusterError::Serve { role: "the scheduler", source })
}

/// Says whether executors are connected, as Ballista's server does.
#[derive(Clone)]
struct Readiness(Arc<dyn Fn() -> bool + Send + Sync>);

impl<B> Service<http::Request<B>> for Readiness {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = std::future::Ready<Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: http::Request<B>) -> Self::Future {
        let mut response = http::Response::new(Body::empty());
        if !(self.0)() {
            *response.status_mut() = http::StatusCode::SERVICE_UNAVAILABLE;
        }
        std::future::ready(Ok(response))
    }
}

/// Ballista's scheduler, which registers executors by the one port that they have with TLS.
struct Secured {
    scheduler: Ballista,
    tls: Tls,
}

impl Secured {
    /// Fails unless the executor is reached by TLS. Ballista itself would only find out when it launches work there, again and
    /// again.
    async fn reach(&self, executor: &ExecutorRegistration) -> Result<(), Status> {
        let host = executor.host.as_deref().ok_or_else(|| Status::invalid_argument("an executor without a host"))?;
        let port = u16::try_from(executor.port).map_err(|_| Status::invalid_argument("no port"))?;
        let place = format!("{host}:{port}");
        let refused = |reason: &str| {
            Status::failed_precondition(format!(
                "the scheduler cannot reach executor {} at {place}: {reason}",
                executor.id
            ))
        };
        let endpoint = Endpoint::from_shared(format!("http://{place}")).map_err(|error| refused(&error.to_string()))?;
        let endpoint = self.tls.endpoint(&endpoint, None).map_err(|error| refused(&error.to_string()))?;
        let reached = async { probe(endpoint.connect().await?).await };
        match reached.await {
            Ok(_) => Ok(()),
            Err(error) => Err(refused(&self.tls.failure(&error, host, port).await.reason)),
        }
    }
}

/// An executor with TLS has one port for rows and for work; the other is Ballista's, on its loopback.
fn by_one_port(mut executor: ExecutorRegistration) -> ExecutorRegistration {
    executor.grpc_port = executor.port;
    executor
}

type Answer<T> = Result<Response<T>, Status>;

#[tonic::async_trait]
impl SchedulerGrpc for Secured {
    type ExecuteQueryPushStream = <Ballista as SchedulerGrpc>::ExecuteQueryPushStream;

    async fn register_executor(&self, request: Request<RegisterExecutorParams>) -> Answer<RegisterExecutorResult> {
        let executor = request.into_inner().metadata.map(by_one_port);
        let executor = executor.ok_or_else(|| Status::invalid_argument("no executor is named"))?;
        self.reach(&executor).await?;
        let register = || RegisterExecutorParams { metadata: Some(executor.clone()) };
        let (attempts, wait) = ATTEMPTS;
        for _ in 1..attempts {
            // Ballista tries the port in clear, whose end by the executor it may take for that of the executor.
            match self.scheduler.register_executor(Request::new(register())).await {
                Err(_) => tokio::time::sleep(wait).await,
                registered => return registered,
            }
        }
        self.scheduler.register_executor(Request::new(register())).await
    }

    async fn heart_beat_from_executor(&self, request: Request<HeartBeatParams>) -> Answer<HeartBeatResult> {
        let mut heartbeat = request.into_inner();
        heartbeat.metadata = heartbeat.metadata.map(by_one_port);
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
