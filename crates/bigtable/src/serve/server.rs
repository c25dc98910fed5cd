//! The server: binds an address, answers until it is asked to end, and lets what runs finish.

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tidetable_store::Store;
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
use crate::serve::tables::Tables;

/// For how long requests may go on when the server is asked to end.
const GRACE: Duration = Duration::from_secs(10);
/// For how long they have then to notice it.
const NOTICE: Duration = Duration::from_secs(2);
/// How often a client is asked whether it is there.
const KEEPALIVE: Duration = Duration::from_secs(60);
/// How often pins are renewed; they expire after an hour.
const RENEWAL: Duration = Duration::from_secs(1_200);
/// Bytes of the largest request of other methods than `ReadRows`, which has a bound of its own.
const MOST_REQUEST: usize = 64 << 20;

/// How a store is served.
#[derive(Debug, Clone)]
pub struct ServeOptions {
    /// Host and port to listen on; port 0 takes one that is free.
    pub bind: String,
    /// Whether each request reads the newest version, instead of the one at the start.
    pub follow: bool,
    /// The names of project and instance.
    pub address: Address,
    /// Distinguishes the pins of this server from others.
    pub name: String,
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
    /// Opens the tables of `store`, and listens.
    ///
    /// # Errors
    /// If the store cannot be read, the address is none, or its port is in use.
    pub async fn bind(store: &Store, options: ServeOptions) -> Result<Self> {
        let listener = TcpListener::bind(&options.bind).await;
        let listener = listener.map_err(|source| BigtableError::Bind { address: options.bind.clone(), source })?;

        let (store, follow, name) = (store.clone(), options.follow, options.name.clone());
        let opened = tokio::task::spawn_blocking(move || Tables::open(&store, follow, &name)).await;
        let opened =
            opened.map_err(|error| BigtableError::Bind { address: options.bind.clone(), source: error.into() })?;
        let tables = Arc::new(opened?);
        Ok(Self { listener, tables, options })
    }

    /// The address that it listens on.
    ///
    /// # Errors
    /// If the system does not tell.
    pub fn local_address(&self) -> Result<SocketAddr> {
        self.listener.local_addr().map_err(|source| BigtableError::Bind { address: self.options.bind.clone(), source })
    }

    /// Names of the tables, ascending.
    ///
    /// # Errors
    /// If the store cannot be listed.
    pub fn tables(&self) -> Result<Vec<String>> {
        self.tables.names()
    }

    /// What a person should know: tables that are left out, versions that a vacuum may remove.
    pub fn warnings(&self) -> Vec<String> {
        let mut out = self.tables.damaged();
        if !self.options.follow && !self.tables.are_pinned() {
            out.push(
                "the store is read-only, so a vacuum by others may remove the versions that are served".to_owned(),
            );
        }
        out
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
        let renewal = tokio::spawn(renew(Arc::clone(&tables)));
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
        renewal.abort();
        // Scans for clients that are gone may still hold the tables.
        if let Ok(Err(error)) = tokio::task::spawn_blocking(move || tables.release()).await {
            tracing::warn!(
                "cannot remove the pins of the versions that were served, which expire within an hour: {error}"
            );
        }
        result.map_err(|error| BigtableError::Bind { address: bind, source: std::io::Error::other(error) })
    }
}

/// Renews pins as long as the server runs.
async fn renew(tables: Arc<Tables>) {
    loop {
        tokio::time::sleep(RENEWAL).await;
        let tables = Arc::clone(&tables);
        // Without them a vacuum may remove what is served, and reads then say so.
        if let Ok(Err(error)) = tokio::task::spawn_blocking(move || tables.renew()).await {
            tracing::warn!("cannot renew the pins of the versions that are served: {error}");
        }
    }
}
