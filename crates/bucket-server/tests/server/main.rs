//! The server, asked by `object_store` and by hand.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod control;
mod faults;
mod google;
mod objects;
mod uploads;
mod writers;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use object_store::aws::{AmazonS3, AmazonS3Builder, S3CopyIfNotExists};
use object_store::{BackoffConfig, ClientOptions, RetryConfig};
use tidetable_bucket_server::{Options, Server};
use tokio::runtime::{Builder, Runtime};

fn runtime() -> Runtime {
    Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

fn started(options: Options) -> Server {
    Server::start(options).unwrap()
}

fn retry(times: usize) -> RetryConfig {
    let (init_backoff, max_backoff) = (Duration::from_millis(1), Duration::from_millis(10));
    RetryConfig {
        backoff: BackoffConfig { init_backoff, max_backoff, base: 2.0 },
        max_retries: times,
        retry_timeout: Duration::from_secs(60),
    }
}

/// A client that tries again up to `times` times.
fn client(server: &Server, times: usize) -> Arc<AmazonS3> {
    let builder = AmazonS3Builder::new()
        .with_endpoint(server.endpoint())
        .with_client_options(ClientOptions::new().with_allow_http(true))
        .with_bucket_name("tidetable")
        .with_region("us-east-1")
        .with_access_key_id("key")
        .with_secret_access_key("secret-of-nobody")
        .with_copy_if_not_exists(S3CopyIfNotExists::Multipart)
        .with_retry(retry(times));
    Arc::new(builder.build().unwrap())
}

/// Sends a request of its own connection; returns the status and the rest of the reply, as text.
fn raw(server: &Server, line: &str, headers: &str, body: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(server.address()).unwrap();
    let len = body.len();
    write!(stream, "{line} HTTP/1.1\r\nConnection: close\r\nContent-Length: {len}\r\n{headers}\r\n{body}").unwrap();
    let mut reply = String::new();
    stream.read_to_string(&mut reply).unwrap();
    let status = reply.split(' ').nth(1).and_then(|status| status.parse().ok());
    (status.unwrap_or_else(|| panic!("no reply but {reply:?}")), reply)
}
