//! Whether a connection is one to a server that accepts this process.
//!
//! A connection is made before the server has looked at this process's certificate, and one in clear also to a server that
//! expects TLS. Only an answer tells.

use std::pin::Pin;
use std::time::Duration;

use tonic::body::Body;
use tonic::codegen::{Body as _, Service, http};
use tonic::transport::{Channel, Error};

/// Where a scheduler says whether executors are connected. Other servers answer something else.
pub(crate) const READY: &str = "/readyz";
/// How long an answer is waited for; a server that gives none counts as connected.
const PATIENCE: Duration = Duration::from_secs(10);

/// Bytes of an answer that are read, at most: another server may send anything.
const LONGEST: usize = 1 << 20;

/// What a server answers to [`READY`], whatever server it is.
#[derive(Debug)]
pub(crate) struct Readiness {
    pub(crate) status: u16,
    /// Of a scheduler: the names of the executors that it knows, with [`BETWEEN`] between them.
    pub(crate) body: Vec<u8>,
}

/// What stands between the names of executors: no argument of a process holds it.
pub(crate) const BETWEEN: &str = "\0";

/// What the server answers to [`READY`]; `None` if it gives no answer in time.
pub(crate) async fn probe(mut channel: Channel) -> Result<Option<Readiness>, Error> {
    let readiness = async {
        std::future::poll_fn(|context| Service::<http::Request<Body>>::poll_ready(&mut channel, context)).await?;
        let mut request = http::Request::new(Body::empty());
        *request.uri_mut() = http::Uri::from_static(READY);
        let response = channel.call(request).await?;
        let status = response.status().as_u16();
        Ok(Readiness { status, body: read(response.into_body()).await })
    };
    tokio::time::timeout(PATIENCE, readiness).await.ok().transpose()
}

/// The bytes of an answer, as far as they come.
async fn read(mut body: Body) -> Vec<u8> {
    let mut bytes = Vec::new();
    while bytes.len() < LONGEST {
        let frame = std::future::poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await;
        let Some(Ok(frame)) = frame else { break };
        if let Ok(data) = frame.into_data() {
            bytes.extend_from_slice(&data);
        }
    }
    bytes
}
