//! The executor's server with TLS: rows and work by one port.
//!
//! Ballista's hook replaces its server of rows. That of work has no hook: it listens on a port of loopback, in clear, and
//! requests for it come from here.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};

use arrow_flight::flight_service_server::FlightServiceServer;
use ballista_core::error::BallistaError;
use ballista_core::serde::protobuf::executor_grpc_client::ExecutorGrpcClient;
use ballista_core::serde::protobuf::executor_grpc_server::{ExecutorGrpc, ExecutorGrpcServer};
use ballista_core::serde::protobuf::{
    CancelTasksParams, CancelTasksResult, LaunchMultiTaskParams, LaunchMultiTaskResult, LaunchTaskParams,
    LaunchTaskResult, RemoveJobDataParams, RemoveJobDataResult, StopExecutorParams, StopExecutorResult,
};
use ballista_executor::ArrowFlightServerProvider;
use ballista_executor::flight_service::BallistaFlightService;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::{AbortHandle, JoinHandle};
use tonic::transport::server::TcpIncoming;
use tonic::transport::{Channel, Endpoint};
use tonic::{Request, Response, Status};

use crate::MESSAGE;
use crate::error::ClusterError;
use crate::tls::config::Tls;

/// Whose server this is, for messages.
const ROLE: &str = "the executor";

/// A server that runs, and ends at the latest when it is dropped.
pub(crate) struct SecureServer {
    running: Arc<Mutex<Option<Running>>>,
    abort: AbortHandle,
}

struct Running {
    stop: oneshot::Sender<()>,
    ended: JoinHandle<Result<(), tonic::transport::Error>>,
}

impl SecureServer {
    /// Serves the rows in `work_dir`, and passes work to Ballista's server at `inner` of loopback.
    pub(crate) fn start(
        listener: std::net::TcpListener,
        inner: u16,
        work_dir: String,
        tls: &Tls,
    ) -> Result<Self, ClusterError> {
        let address = listener.local_addr().map_or_else(|_| ROLE.to_owned(), |address| address.to_string());
        let listen = |source| ClusterError::Listen { address: address.clone(), source };

        listener.set_nonblocking(true).map_err(listen)?;
        let incoming = TcpIncoming::from(TcpListener::from_std(listener).map_err(listen)?).with_nodelay(Some(true));

        let mut server = tls.server().ok_or(ClusterError::NoCertificate { role: "an executor" })?.map_err(unserved)?;
        let rows = FlightServiceServer::new(BallistaFlightService::new(work_dir))
            .max_decoding_message_size(MESSAGE)
            .max_encoding_message_size(MESSAGE);
        let work = ExecutorGrpcServer::new(ToLoopback::new(inner).map_err(unserved)?)
            .max_decoding_message_size(MESSAGE)
            .max_encoding_message_size(MESSAGE);

        let (stop, stopped) = oneshot::channel::<()>();
        let services = server.add_service(rows).add_service(work);
        let ended = tokio::spawn(services.serve_with_incoming_shutdown(incoming, async {
            let _ = stopped.await;
        }));
        let abort = ended.abort_handle();
        Ok(Self { running: Arc::new(Mutex::new(Some(Running { stop, ended }))), abort })
    }

    /// Ballista's hook, in place of its own server of rows: this one is part of the executor, and ends with it.
    pub(crate) fn hook(&self) -> Arc<ArrowFlightServerProvider> {
        let running = Arc::clone(&self.running);
        Arc::new(move |_, _, mut shutdown, _| {
            let running = running.lock().unwrap_or_else(PoisonError::into_inner).take();
            tokio::spawn(async move {
                let Some(Running { stop, mut ended }) = running else { return Ok(()) };
                let ended = tokio::select! {
                    ended = &mut ended => ended,
                    () = shutdown.recv() => {
                        let _ = stop.send(());
                        ended.await
                    }
                };
                ended.map_err(BallistaError::TokioError)?.map_err(BallistaError::TonicError)
            })
        })
    }
}

fn unserved(source: tonic::transport::Error) -> ClusterError {
    ClusterError::Serve { role: ROLE, source }
}

impl Drop for SecureServer {
    fn drop(&mut self) {
        self.abort.abort();
    }
}

/// Passes the scheduler's requests to Ballista's server on loopback.
struct ToLoopback {
    inner: ExecutorGrpcClient<Channel>,
}

impl ToLoopback {
    fn new(port: u16) -> Result<Self, tonic::transport::Error> {
        let address = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), port);
        // That server starts later.
        let channel = Endpoint::from_shared(format!("http://{address}"))?.tcp_nodelay(true).connect_lazy();
        let inner = ExecutorGrpcClient::new(channel);
        Ok(Self { inner: inner.max_decoding_message_size(MESSAGE).max_encoding_message_size(MESSAGE) })
    }
}

type Answer<T> = Result<Response<T>, Status>;

#[tonic::async_trait]
impl ExecutorGrpc for ToLoopback {
    async fn launch_task(&self, request: Request<LaunchTaskParams>) -> Answer<LaunchTaskResult> {
        self.inner.clone().launch_task(request.into_inner()).await
    }

    async fn launch_multi_task(&self, request: Request<LaunchMultiTaskParams>) -> Answer<LaunchMultiTaskResult> {
        self.inner.clone().launch_multi_task(request.into_inner()).await
    }

    async fn stop_executor(&self, request: Request<StopExecutorParams>) -> Answer<StopExecutorResult> {
        self.inner.clone().stop_executor(request.into_inner()).await
    }

    async fn cancel_tasks(&self, request: Request<CancelTasksParams>) -> Answer<CancelTasksResult> {
        self.inner.clone().cancel_tasks(request.into_inner()).await
    }

    async fn remove_job_data(&self, request: Request<RemoveJobDataParams>) -> Answer<RemoveJobDataResult> {
        self.inner.clone().remove_job_data(request.into_inner()).await
    }
}
