//! Connections to a scheduler.

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
use crate::tls::probe::probe;

/// How long a connection is tried.
pub(crate) const CONNECT: Duration = Duration::from_secs(10);
/// Time between two signs of life.
const ALIVE: Duration = Duration::from_secs(10);

/// A scheduler, and how it is reached.
#[derive(Debug, Clone)]
pub(crate) struct SchedulerLink {
    address: Address,
    tls: Option<Arc<Tls>>,
}

impl SchedulerLink {
    /// The scheduler at `address`. Nothing is connected yet.
    pub(crate) fn new(address: &str, files: &TlsFiles) -> Result<Self, ClusterError> {
        let address = Address::parse(address)?;
        // Who has named certificates wants no connection in clear.
        if !address.tls && !files.is_empty() {
            return Err(ClusterError::InClear { address: address.text() });
        }
        let tls = if address.tls { Some(Arc::new(Tls::of(files)?)) } else { None };
        Ok(Self { address, tls })
    }

    /// Host and port.
    pub(crate) fn host_and_port(&self) -> (&str, u16) {
        (&self.address.host, self.address.port)
    }

    /// The address as it is written.
    pub(crate) fn place(&self) -> String {
        self.address.text()
    }

    /// TLS to the scheduler and its executors; `None` for connections in clear.
    pub(crate) fn tls(&self) -> Option<&Arc<Tls>> {
        self.tls.as_ref()
    }

    /// Connects, or says why not.
    pub(crate) async fn connect(&self) -> Result<SchedulerGrpcClient<Channel>, Failure> {
        Ok(self.connected().await?.0)
    }

    /// Whether at least one executor is connected; `None` if the scheduler does not say.
    pub(crate) async fn has_executors(&self) -> Option<bool> {
        is_ready(self.connected().await.ok()?.1?)
    }

    /// A connection, and the status of the scheduler.
    async fn connected(&self) -> Result<(SchedulerGrpcClient<Channel>, Option<u16>), Failure> {
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
        let status = match probe(channel.clone()).await {
            Ok(status) => status,
            Err(error) => return Err(self.failure(&error, true).await),
        };

        let client = SchedulerGrpcClient::new(channel);
        Ok((client.max_encoding_message_size(MESSAGE).max_decoding_message_size(MESSAGE), status))
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

/// What a status of the scheduler says of executors.
fn is_ready(status: u16) -> Option<bool> {
    match status {
        200 => Some(true),
        503 => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_status_says_whether_executors_are_there() {
        assert_eq!([200, 503, 404].map(is_ready), [Some(true), Some(false), None]);
    }

    #[test]
    fn certificates_are_for_addresses_with_tls() {
        let files = TlsFiles { ca: Some("ca.pem".into()), ..TlsFiles::default() };
        let error = SchedulerLink::new("ballista://a:1", &files).unwrap_err().to_string();
        assert!(error.contains("write ballista+tls://a:1"), "{error}");
        assert!(SchedulerLink::new("ballista://a:1", &TlsFiles::default()).unwrap().tls().is_none());
    }
}
