//! Connections to a scheduler.

use std::time::Duration;

use ballista_core::serde::protobuf::scheduler_grpc_client::SchedulerGrpcClient;
use tonic::transport::{Channel, Endpoint};

use crate::MESSAGE;

/// How long a connection is tried.
pub(crate) const CONNECT: Duration = Duration::from_secs(10);
/// Time between two signs of life.
const ALIVE: Duration = Duration::from_secs(10);

/// Connects to the scheduler at `host`, or says why not.
pub(crate) async fn connect(host: &str, port: u16) -> Result<SchedulerGrpcClient<Channel>, String> {
    let endpoint = Endpoint::from_shared(format!("http://{host}:{port}"))
        .map_err(|error| error.to_string())?
        .connect_timeout(CONNECT)
        .tcp_nodelay(true)
        .http2_keep_alive_interval(ALIVE)
        .keep_alive_timeout(CONNECT)
        .keep_alive_while_idle(true);
    let channel = endpoint.connect().await.map_err(|error| with_causes(&error))?;
    let client = SchedulerGrpcClient::new(channel);
    Ok(client.max_encoding_message_size(MESSAGE).max_decoding_message_size(MESSAGE))
}

/// An error with its causes, which its own words leave out.
fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        next = cause.source();
    }
    text
}
