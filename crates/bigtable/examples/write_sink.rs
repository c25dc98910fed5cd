//! A server that takes writes, counts them, and keeps nothing: `write_sink PORT` (0 takes a free one).
//!
//! It prints its address. Every table may be created, and every row is answered as written.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a program for measurements")]

use std::convert::Infallible;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::header::HeaderMap;
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use prost::Message;
use prost::encoding::{decode_key, decode_varint};
use tidetable_bigtable::proto::data::MutateRowsResponse;
use tidetable_bigtable::proto::data::mutate_rows_response::Entry;
use tidetable_bigtable::proto::rpc;
use tokio::net::TcpListener;

type Body = UnsyncBoxBody<Bytes, Infallible>;

/// Bytes of a request in flight.
const WINDOW: u32 = 16 << 20;

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() {
    let port = std::env::args().nth(1).and_then(|port| port.parse().ok()).unwrap_or(0);
    let listener = TcpListener::bind(("127.0.0.1", port)).await.unwrap();
    println!("export BIGTABLE_EMULATOR_HOST={}", listener.local_addr().unwrap());
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        stream.set_nodelay(true).unwrap();
        let mut server = http2::Builder::new(TokioExecutor::new());
        server.initial_stream_window_size(WINDOW).initial_connection_window_size(WINDOW * 2);
        tokio::spawn(async move { server.serve_connection(TokioIo::new(stream), service_fn(answer)).await });
    }
}

async fn answer(request: Request<Incoming>) -> Result<Response<Body>, Infallible> {
    let path = request.uri().path().to_owned();
    let body = request.into_body().collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
    let message = match path.rsplit('/').next() {
        // There is no table before it is created; nobody asks afterwards.
        Some("GetTable") => return Ok(ended(None, "5")),
        Some("MutateRows") => {
            let status = || Some(rpc::Status::default());
            let entries = (0..entries(body.slice(5.min(body.len())..))).map(|index| Entry { index, status: status() });
            MutateRowsResponse { entries: entries.collect(), rate_limit_info: None }.encode_to_vec()
        }
        _ => Vec::new(),
    };
    Ok(ended(Some(message), "0"))
}

/// The number of entries of a request; their cells are skipped.
fn entries(mut message: Bytes) -> i64 {
    let mut count = 0;
    while message.has_remaining() {
        let Ok((tag, _)) = decode_key(&mut message) else { break };
        let Ok(len) = decode_varint(&mut message) else { break };
        message.advance(usize::try_from(len).unwrap_or(usize::MAX).min(message.remaining()));
        count += i64::from(tag == 2);
    }
    count
}

fn ended(message: Option<Vec<u8>>, status: &'static str) -> Response<Body> {
    let mut trailers = HeaderMap::new();
    trailers.insert("grpc-status", status.parse().unwrap());
    let frames = message.map(|message| {
        let mut out = BytesMut::with_capacity(message.len() + 5);
        out.put_u8(0);
        out.put_u32(u32::try_from(message.len()).unwrap());
        out.put_slice(&message);
        [Ok(Frame::data(out.freeze())), Ok(Frame::trailers(trailers.clone()))]
    });
    let is_bare = frames.is_none();
    let mut response = match frames {
        Some(frames) => Response::new(StreamBody::new(futures::stream::iter(frames)).boxed_unsync()),
        None => Response::new(Full::new(Bytes::new()).boxed_unsync()),
    };
    response.headers_mut().insert("content-type", "application/grpc".parse().unwrap());
    if is_bare {
        response.headers_mut().insert("grpc-status", status.parse().unwrap());
    }
    response
}
