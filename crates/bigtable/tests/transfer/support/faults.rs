//! A proxy of gRPC that passes requests on, or fails them as it is told.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::{BufMut, Bytes, BytesMut};
use http_body_util::{BodyExt, Full, StreamBody, combinators::UnsyncBoxBody};
use hyper::body::{Frame, Incoming};
use hyper::header::HeaderMap;
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use prost::Message;
use tidetable_bigtable::proto::data::mutate_rows_response::Entry;
use tidetable_bigtable::proto::data::{MutateRowsRequest, MutateRowsResponse};
use tidetable_bigtable::proto::rpc;
use tokio::runtime::Runtime;
use tonic::Code;
use tonic::transport::{Channel, Endpoint};

type Error = Box<dyn std::error::Error + Send + Sync>;
type Body = UnsyncBoxBody<Bytes, Error>;

/// What becomes of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Nothing.
    None,
    /// It is not passed on, and answered with this code.
    Before(Code),
    /// It is passed on, and its answer is replaced by this code.
    After(Code),
    /// It is passed on, and the stream of its answer breaks after so many pieces.
    Reset(usize),
    /// Of a MutateRows only every second entry is passed on; the others are UNAVAILABLE. Of other methods nothing is.
    Partial,
}

/// A running proxy.
pub struct Faults {
    address: SocketAddr,
    seen: Arc<AtomicU64>,
    _runtime: Runtime,
}

impl Faults {
    /// Starts one before `target`; `decide` gets the path and the number of each request.
    pub fn start(target: &str, decide: impl Fn(&str, u64) -> Fault + Send + Sync + 'static) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let seen = Arc::new(AtomicU64::new(0));
        let (decide, number) = (Arc::new(decide), Arc::clone(&seen));
        let url = format!("http://{target}");
        let address = runtime.block_on(async move {
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = listener.local_addr().unwrap();
            let channel = Endpoint::from_shared(url).unwrap().connect_lazy();
            tokio::spawn(async move {
                loop {
                    let Ok((stream, _)) = listener.accept().await else { return };
                    let (channel, decide, number) = (channel.clone(), Arc::clone(&decide), Arc::clone(&number));
                    let service = service_fn(move |request: Request<Incoming>| {
                        let fault = decide(request.uri().path(), number.fetch_add(1, Ordering::SeqCst));
                        let channel = channel.clone();
                        async move { Ok::<_, Infallible>(answer(channel, request, fault).await) }
                    });
                    let connection = http2::Builder::new(TokioExecutor::new());
                    tokio::spawn(async move { connection.serve_connection(TokioIo::new(stream), service).await });
                }
            });
            address
        });
        Self { address, seen, _runtime: runtime }
    }

    /// Host and port.
    pub fn address(&self) -> String {
        self.address.to_string()
    }

    /// The number of requests so far.
    pub fn seen(&self) -> u64 {
        self.seen.load(Ordering::SeqCst)
    }
}

async fn answer(channel: Channel, request: Request<Incoming>, fault: Fault) -> Response<Body> {
    let path = request.uri().path().to_owned();
    let (parts, body) = request.into_parts();
    let Ok(body) = body.collect().await.map(http_body_util::Collected::to_bytes) else {
        return failed(Code::Unavailable);
    };
    let is_mutation = path.ends_with("/MutateRows");
    let (sent, left_out) = match fault {
        Fault::Before(code) => return failed(code),
        Fault::Partial if !is_mutation => return failed(Code::Unavailable),
        Fault::Partial => {
            let (sent, left_out) = half(&body);
            if MutateRowsRequest::decode(sent.slice(5..)).is_ok_and(|request| request.entries.is_empty()) {
                return failed(Code::Unavailable);
            }
            (sent, left_out)
        }
        _ => (body, Vec::new()),
    };
    let mut request = Request::from_parts(parts, tonic::body::Body::new(Full::new(sent)));
    request.headers_mut().remove(hyper::header::CONTENT_LENGTH);
    let Ok(response) = call(channel, request).await else { return failed(Code::Unavailable) };
    let (head, frames) = response;
    match fault {
        Fault::After(code) => failed(code),
        Fault::Reset(most) => {
            let frames: Vec<Result<Frame<Bytes>, Error>> =
                frames.into_iter().take(most).map(Ok).chain([Err(Error::from("reset by the proxy"))]).collect();
            Response::from_parts(head, StreamBody::new(futures::stream::iter(frames)).boxed_unsync())
        }
        Fault::Partial => joined(&frames, &left_out),
        _ => {
            let frames = frames.into_iter().map(Ok::<_, Error>);
            Response::from_parts(head, StreamBody::new(futures::stream::iter(frames)).boxed_unsync())
        }
    }
}

type Answer = (http::response::Parts, Vec<Frame<Bytes>>);

/// Passes a request on, and collects the pieces of its answer.
async fn call(mut channel: Channel, request: Request<tonic::body::Body>) -> Result<Answer, Error> {
    use tonic::codegen::Service;
    std::future::poll_fn(|context| Service::<Request<tonic::body::Body>>::poll_ready(&mut channel, context)).await?;
    let (head, mut body) = channel.call(request).await?.into_parts();
    let mut frames = Vec::new();
    while let Some(frame) = body.frame().await {
        frames.push(frame?);
    }
    Ok((head, frames))
}

/// An answer that is a code only.
fn failed(code: Code) -> Response<Body> {
    let mut response = Response::new(Full::new(Bytes::new()).map_err(|never| match never {}).boxed_unsync());
    let headers = response.headers_mut();
    headers.insert("content-type", "application/grpc".parse().unwrap());
    headers.insert("grpc-status", (code as i32).to_string().parse().unwrap());
    headers.insert("grpc-message", "injected".parse().unwrap());
    response
}

fn framed(message: &impl Message) -> Bytes {
    let mut out = BytesMut::new();
    out.put_u8(0);
    out.put_u32(u32::try_from(message.encoded_len()).unwrap());
    message.encode(&mut out).unwrap();
    out.freeze()
}

/// The request with every second entry, and the indices of the others. Indices of those that are left are halved.
fn half(body: &Bytes) -> (Bytes, Vec<i64>) {
    let mut request = MutateRowsRequest::decode(body.slice(5..)).unwrap();
    let entries = std::mem::take(&mut request.entries);
    let left_out = (0..entries.len() as i64).step_by(2).collect();
    request.entries = entries.into_iter().skip(1).step_by(2).collect();
    (framed(&request), left_out)
}

/// The answers of `frames`, whose entries were every second one, with those for the others.
fn joined(frames: &[Frame<Bytes>], left_out: &[i64]) -> Response<Body> {
    let mut bytes = BytesMut::new();
    frames.iter().filter_map(Frame::data_ref).for_each(|data| bytes.extend_from_slice(data));
    let mut rest = bytes.freeze();
    let mut all = MutateRowsResponse::default();
    while rest.len() >= 5 {
        let len = u32::from_be_bytes(rest[1..5].try_into().unwrap()) as usize;
        let message = MutateRowsResponse::decode(rest.slice(5..5 + len)).unwrap();
        all.entries.extend(message.entries.into_iter().map(|entry| Entry { index: entry.index * 2 + 1, ..entry }));
        rest = rest.slice(5 + len..);
    }
    let status = rpc::Status { code: Code::Unavailable as i32, message: "injected".to_owned(), details: Vec::new() };
    all.entries.extend(left_out.iter().map(|index| Entry { index: *index, status: Some(status.clone()) }));
    let mut trailers = HeaderMap::new();
    trailers.insert("grpc-status", "0".parse().unwrap());
    let frames = [Ok::<_, Error>(Frame::data(framed(&all))), Ok(Frame::trailers(trailers))];
    let mut response = Response::new(StreamBody::new(futures::stream::iter(frames)).boxed_unsync());
    response.headers_mut().insert("content-type", "application/grpc".parse().unwrap());
    response
}
