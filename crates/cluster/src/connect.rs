//! Connections to a scheduler, in clear or by TLS, and what it says of its executors.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use ballista_core::serde::protobuf::scheduler_grpc_client::SchedulerGrpcClient;
use tonic::transport::{Channel, Endpoint};

use crate::MESSAGE;
use crate::address::Address;
use crate::error::ClusterError;
use crate::tls::config::Tls;
use crate::tls::explain::Failure;
use crate::tls::files::TlsFiles;
use crate::tls::probe::{BETWEEN, Readiness, probe};

/// How long a connection is tried before it counts as failed.
pub(crate) const CONNECT: Duration = Duration::from_secs(10);
/// Time between two signs of life on a connection without requests.
const ALIVE: Duration = Duration::from_secs(10);

/// A scheduler, and how it is reached: its address, and TLS if that is wanted.
#[derive(Debug, Clone)]
pub(crate) struct SchedulerLink {
    address: Address,
    tls: Option<Arc<Tls>>,
}

impl SchedulerLink {
    /// The scheduler at `address`, by TLS with these files if the address says so. Nothing is connected yet.
    pub(crate) fn new(address: &str, files: &TlsFiles) -> Result<Self, ClusterError> {
        let address = Address::parse(address)?;
        // Who has named certificates wants no connection in clear.
        if !address.tls && !files.is_empty() {
            return Err(ClusterError::InClear { address: address.text() });
        }
        let tls = if address.tls { Some(Arc::new(Tls::of(files)?)) } else { None };
        Ok(Self { address, tls })
    }

    pub(crate) fn host_and_port(&self) -> (&str, u16) {
        (&self.address.host, self.address.port)
    }

    /// The address as it is written, for messages.
    pub(crate) fn place(&self) -> String {
        self.address.text()
    }

    /// TLS to the scheduler and its executors; `None` for connections in clear.
    pub(crate) fn tls(&self) -> Option<&Arc<Tls>> {
        self.tls.as_ref()
    }

    /// Connects, or says why that failed and whether it would fail again.
    pub(crate) async fn connect(&self) -> Result<SchedulerGrpcClient<Channel>, Failure> {
        Ok(self.connected().await?.0)
    }

    /// The names of the executors that are connected; `None` if the scheduler does not say.
    pub(crate) async fn executors(&self) -> Option<BTreeSet<String>> {
        names(&self.connected().await.ok()?.1?)
    }

    /// A connection, and what the scheduler says of its executors.
    async fn connected(&self) -> Result<(SchedulerGrpcClient<Channel>, Option<Readiness>), Failure> {
        let (host, port) = self.host_and_port();
        let endpoint = Endpoint::from_shared(format!("http://{host}:{port}"))
            .map_err(|error| Failure::passing(error.to_string()))?
            .connect_timeout(CONNECT)
            .tcp_nodelay(true)
            .http2_keep_alive_interval(ALIVE)
            .keep_alive_timeout(CONNECT)
            .keep_alive_while_idle(true);
        let endpoint = match &self.tls {
            Some(tls) => tls.endpoint(&endpoint, None).map_err(|error| Failure::passing(error.to_string()))?,
            None => endpoint,
        };

        let channel = match endpoint.connect().await {
            Ok(channel) => channel,
            Err(error) => return Err(self.failure(&error, false).await),
        };
        let readiness = match probe(channel.clone()).await {
            Ok(readiness) => readiness,
            Err(error) => return Err(self.failure(&error, true).await),
        };

        let client = SchedulerGrpcClient::new(channel);
        Ok((client.max_encoding_message_size(MESSAGE).max_decoding_message_size(MESSAGE), readiness))
    }

    /// Why a connection failed; `was_made`: the server gave no answer then.
    async fn failure(&self, error: &tonic::transport::Error, was_made: bool) -> Failure {
        let (host, port) = self.host_and_port();
        match &self.tls {
            Some(tls) => tls.failure(error, host, port).await,
            None => {
                let mut failure = Failure::of(error, None);
                if was_made {
                    failure.reason.push_str("; a scheduler with TLS is written ballista+tls://HOST:PORT");
                }
                failure
            }
        }
    }
}

/// The executors that a scheduler names; none if it says that none is connected.
fn names(readiness: &Readiness) -> Option<BTreeSet<String>> {
    match readiness.status {
        200 => Some(String::from_utf8_lossy(&readiness.body).split(BETWEEN).map(str::to_owned).collect()),
        503 => Some(BTreeSet::new()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scheduler_names_its_executors() {
        let said = |status: u16, body: &str| names(&Readiness { status, body: body.into() });
        assert_eq!(said(200, "one\0two 2"), Some(["one", "two 2"].map(str::to_owned).into()));
        assert_eq!((said(503, ""), said(404, "one")), (Some(BTreeSet::new()), None));
    }

    #[test]
    fn certificates_are_for_addresses_with_tls() {
        let files = TlsFiles { ca: Some("ca.pem".into()), ..TlsFiles::default() };
        let error = SchedulerLink::new("ballista://a:1", &files).unwrap_err().to_string();
        assert!(error.contains("write ballista+tls://a:1"), "{error}");
        assert!(SchedulerLink::new("ballista://a:1", &TlsFiles::default()).unwrap().tls().is_none());
    }
}
