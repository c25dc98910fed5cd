//! Settings of clients and servers with TLS, made of the files of a process.

use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use ballista_core::extension::{BallistaConfigGrpcEndpoint, EndpointOverrideFn};
use rustls::ClientConfig;
use tonic::transport::{Certificate, ClientTlsConfig, Endpoint, Identity, Server, ServerTlsConfig};

use crate::error::ClusterError;
use crate::tls::explain::{Failure, lasting, with_causes};
use crate::tls::files::TlsFiles;
use crate::tls::handshake;

/// How long a connection is tried before it counts as failed.
const CONNECT: Duration = Duration::from_secs(10);
/// Time between two signs of life on a connection without requests.
pub(crate) const ALIVE: Duration = Duration::from_secs(10);
/// Bytes in flight of a stream and of a connection: those that Ballista fetches shuffled rows with.
const WINDOWS: (u32, u32) = (16 << 20, 64 << 20);

type Refusal = Box<dyn Error + Send + Sync>;

/// TLS as a process uses it: as a client, and as a server if it has a certificate.
#[derive(Clone)]
pub(crate) struct Tls {
    client: ClientTlsConfig,
    server: Option<ServerTlsConfig>,
    /// Settings of a handshake by hand, for what a failed connection does not say.
    handshake: Option<Arc<ClientConfig>>,
}

impl fmt::Debug for Tls {
    /// Shows whether there is a certificate, and never the key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls").field("has_certificate", &self.server.is_some()).finish_non_exhaustive()
    }
}

impl Tls {
    /// TLS with the files of a process, which are read and tried here.
    pub(crate) fn of(files: &TlsFiles) -> Result<Self, ClusterError> {
        let pem = files.read()?;
        let handshake = handshake::config(&pem);
        let mut client = ClientTlsConfig::new().timeout(CONNECT);
        client = match &pem.ca {
            Some(ca) => client.ca_certificate(Certificate::from_pem(ca)),
            None => client.with_native_roots(),
        };

        let server = pem.identity.map(|(cert, key)| {
            let identity = Identity::from_pem(cert, key);
            client = client.clone().identity(identity.clone());
            let server = ServerTlsConfig::new().identity(identity).timeout(CONNECT);
            match &pem.ca {
                Some(ca) => server.client_ca_root(Certificate::from_pem(ca)),
                None => server,
            }
        });

        let tls = Self { client, server, handshake };
        tls.check().map_err(|error| {
            let files = [&files.ca, &files.cert, &files.key].into_iter().flatten();
            let files: Vec<String> = files.map(|file| file.display().to_string()).collect();
            ClusterError::TlsUnusable { files: files.join(", "), reason: with_causes(error.as_ref()) }
        })?;
        Ok(tls)
    }

    /// What cannot be used is told now, with the names of the files, and not by the first connection.
    fn check(&self) -> Result<(), Refusal> {
        self.endpoint(&Endpoint::from_static("http://localhost:1"), None)?;
        if let Some(server) = &self.server {
            Server::builder().tls_config(server.clone())?;
        }
        Ok(())
    }

    /// A builder of servers; `None` without a certificate.
    pub(crate) fn server(&self) -> Option<Result<Server, tonic::transport::Error>> {
        let server = self.server.clone()?;
        Some(Server::builder().tcp_nodelay(true).http2_keepalive_interval(Some(ALIVE)).tls_config(server))
    }

    /// The endpoint by TLS, whatever its scheme; `limit` is that of a request.
    pub(crate) fn endpoint(&self, endpoint: &Endpoint, limit: Option<Duration>) -> Result<Endpoint, Refusal> {
        let authority = endpoint.uri().authority().ok_or("an endpoint without a host")?;
        // The scheme of an endpoint cannot be changed, and with `http` its TLS would be left out in silence.
        let secured = Endpoint::from_shared(format!("https://{authority}"))?
            .tls_config(self.client.clone())?
            .connect_timeout(CONNECT)
            .tcp_nodelay(true)
            .http2_keep_alive_interval(ALIVE)
            .keep_alive_timeout(CONNECT)
            .keep_alive_while_idle(true)
            .initial_stream_window_size(WINDOWS.0)
            .initial_connection_window_size(WINDOWS.1);
        Ok(match limit {
            Some(limit) => secured.timeout(limit),
            None => secured,
        })
    }

    /// Why a connection to a server failed, found by a handshake of its own if the error does not tell.
    pub(crate) async fn failure(&self, error: &tonic::transport::Error, host: &str, port: u16) -> Failure {
        let mut reason = lasting(error);
        if let (None, Some(config)) = (reason, &self.handshake) {
            let failed = handshake::error_of(Arc::clone(config), host.to_owned(), port).await;
            reason = failed.as_ref().and_then(|error| lasting(error));
        }
        Failure::of(error, reason)
    }

    /// Ballista's hook of the clients of a server.
    pub(crate) fn hook(&self, limit: Option<Duration>) -> EndpointOverrideFn {
        let tls = self.clone();
        Arc::new(move |endpoint| tls.endpoint(&endpoint, limit))
    }

    /// Ballista's hook of a client that fetches rows.
    pub(crate) fn fetches(&self) -> Arc<BallistaConfigGrpcEndpoint> {
        Arc::new(BallistaConfigGrpcEndpoint::new(self.hook(None)))
    }
}
