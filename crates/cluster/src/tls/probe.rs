//! Whether a connection is one to a server that accepts this process.
//!
//! A connection is made before the server has looked at this process's certificate, and one in clear also to a server that
//! expects TLS. Only an answer tells.

use std::time::Duration;

use tonic::body::Body;
use tonic::codegen::{Service, http};
use tonic::transport::{Channel, Error};

/// Where a scheduler says whether executors are connected. Other servers answer something else.
pub(crate) const READY: &str = "/readyz";
/// How long an answer is waited for.
const PATIENCE: Duration = Duration::from_secs(10);

/// The status that the server gives for [`READY`]; `None` if it gives none in time.
pub(crate) async fn probe(mut channel: Channel) -> Result<Option<u16>, Error> {
    let asked = async {
        std::future::poll_fn(|context| Service::<http::Request<Body>>::poll_ready(&mut channel, context)).await?;
        let mut request = http::Request::new(Body::empty());
        *request.uri_mut() = http::Uri::from_static(READY);
        Ok(channel.call(request).await?.status().as_u16())
    };
    tokio::time::timeout(PATIENCE, asked).await.ok().transpose()
}
