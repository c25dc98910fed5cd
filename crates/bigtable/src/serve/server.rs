//! The server: binds an address, answers until it is asked to end, and lets what runs finish.

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tidetable_serving::{GRACE, NOTICE, Tables, listen};
use tokio::net::TcpListener;
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tonic::transport::server::TcpIncoming;

use crate::error::{BigtableError, Result};
use crate::proto::admin_server::BigtableTableAdminServer;
use crate::proto::data_server::BigtableServer;
use crate::serve::admin::AdminService;
use crate::serve::data::DataService;
pub use crate::serve::names::Address;
use crate::serve::query::Queries;

/// The port that `--bind` has by default, that of the emulator.
const PORT: u16 = 8086;
/// How often a client is asked whether it is there.
const KEEPALIVE: Duration = Duration::from_secs(60);
/// Bytes of the largest request of other methods than `ReadRows`, which has a bound of its own.
const MOST_REQUEST: usize = 64 << 20;

/// How a store is served.
#[derive(Debug, Clone)]
pub struct ServeOptions {
    /// Host and port to listen on; port 0 takes one that is free.
    pub bind: String,
    /// The names of project and instance.
    pub address: Address,
    /// Bytes that a request may hold: one for rows, of which a longer row is refused, or the sorts, groups and joins of a query.
    pub request_memory: u64,
    /// Whether queries that Bigtable refuses, such as joins, are refused.
    pub strict: bool,
    /// The runtime that queries run in: they take a core for long, and requests should not wait for them.
    pub queries: Handle,
}

/// A server that listens.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    tables: Arc<Tables>,
    options: ServeOptions,
}

impl Server {
    /// Listens, to answer requests from `tables`.
    ///
    /// # Errors
    /// If the address is not one of this machine, or its port is in use.
    pub async fn bind(tables: &Arc<Tables>, options: ServeOptions) -> Result<Self> {
        let listener = listen(&options.bind, "--bind", PORT).await?;
        Ok(Self { listener, tables: Arc::clone(tables), options })
    }

    /// The address that it listens on.
    ///
    /// # Errors
    /// If the system does not tell.
    pub fn local_address(&self) -> Result<SocketAddr> {
        let address = self.listener.local_addr();
        address.map_err(|source| BigtableError::Listener { address: self.options.bind.clone(), source })
    }

    /// Answers requests until `end` is ready, then lets those that run finish for ten seconds.
    ///
    /// # Errors
    /// If the listener fails.
    pub async fn run(self, end: impl Future<Output = ()> + Send + 'static) -> Result<()> {
        let Self { listener, tables, options } = self;
        let bind = options.bind.clone();
        let ends = Arc::new(AtomicBool::new(false));
        let memory = options.request_memory;
        let queries = Queries::new(Arc::clone(&tables), options.queries.clone(), memory, Arc::clone(&ends))
            .with_strict(options.strict);
        let address = options.address;
        let data = DataService {
            tables: Arc::clone(&tables),
            address: address.clone(),
            queries,
            request_memory: usize::try_from(options.request_memory).unwrap_or(usize::MAX),
            ends: Arc::clone(&ends),
        };
        let admin = AdminService { tables: Arc::clone(&tables), address };
        let asked = Arc::new(Notify::new());
        let notice = Arc::clone(&asked);
        let shutdown = async move {
            end.await;
            notice.notify_one();
        };
        let server = tonic::transport::Server::builder()
            .http2_keepalive_interval(Some(KEEPALIVE))
            .add_service(BigtableServer::new(data).max_decoding_message_size(MOST_REQUEST))
            .add_service(BigtableTableAdminServer::new(admin))
            .serve_with_incoming_shutdown(TcpIncoming::from(listener).with_nodelay(Some(true)), shutdown);
        tokio::pin!(server);
        let result = tokio::select! {
            served = &mut server => served,
            () = async {
                asked.notified().await;
                tokio::time::sleep(GRACE).await;
            } => {
                ends.store(true, Ordering::Relaxed);
                // What does not end now is cut off.
                tokio::time::timeout(NOTICE, &mut server).await.unwrap_or(Ok(()))
            }
        };
        ends.store(true, Ordering::Relaxed);
        result.map_err(|error| BigtableError::Listener { address: bind, source: std::io::Error::other(error) })
    }
}
