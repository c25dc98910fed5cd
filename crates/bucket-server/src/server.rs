//! The server: connections, faults, delay.

use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use bytes::Bytes;

use crate::api::{self, Rules};
use crate::bucket::{Attributes, Condition, Content, Place, Refusal, State};
use crate::clock::TimeText;
use crate::control;
use crate::counts::Counts;
use crate::faults::{Fault, Faults};
use crate::http::{Head, Line, Request};
use crate::kind::Kind;
use crate::options::Options;
use crate::received::Received;

/// A request that has arrived.
#[derive(Debug, Clone, Copy)]
pub struct Arrival<'a> {
    /// From 0 on, in the order of arrival.
    pub number: u64,
    /// What it asks for.
    pub kind: Kind,
    /// The key of its object; empty if it is about a bucket.
    pub key: &'a str,
}

/// Sees requests come and go, and may stop the client meanwhile.
pub trait Watch: Send + Sync {
    /// A request has arrived. Returns the fault that it shall meet, if not one by the seed.
    fn before(&self, _: &Arrival<'_>) -> Option<Fault> {
        None
    }

    /// It was executed; the reply was not yet sent.
    fn after(&self, _: &Arrival<'_>) {}
}

struct Shared {
    state: Mutex<State>,
    options: Mutex<Options>,
    counts: Mutex<Counts>,
    received: Received,
    watch: Mutex<Option<Arc<dyn Watch>>>,
    requests: AtomicU64,
    begun: Instant,
    stopped: AtomicBool,
    /// Open connections by number.
    open: Mutex<BTreeMap<u64, TcpStream>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A running server; it ends when dropped.
pub struct Server {
    address: SocketAddr,
    shared: Arc<Shared>,
    accepting: Option<JoinHandle<()>>,
}

impl Server {
    /// Starts a server on loopback.
    ///
    /// # Errors
    /// If the port is taken.
    pub fn start(options: Options) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, options.port))?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            state: Mutex::new(State::new(&options.buckets, options.clock)),
            options: Mutex::new(options),
            counts: Mutex::default(),
            received: Received::default(),
            watch: Mutex::default(),
            requests: AtomicU64::new(0),
            begun: Instant::now(),
            stopped: AtomicBool::new(false),
            open: Mutex::default(),
        });
        let accepting = {
            let shared = Arc::clone(&shared);
            thread::Builder::new().name("bucket-server".to_owned()).spawn(move || accept(&listener, &shared))?
        };
        Ok(Self { address, shared, accepting: Some(accepting) })
    }

    /// The address on loopback that it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The URL for `AWS_ENDPOINT`.
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The counts so far.
    pub fn counts(&self) -> Counts {
        lock(&self.shared.counts).clone()
    }

    /// Sets the counts to 0, and returns what they were.
    pub fn reset_counts(&self) -> Counts {
        std::mem::take(&mut lock(&self.shared.counts))
    }

    /// What was received, if [`Options::log`] is set.
    pub fn received(&self) -> &Received {
        &self.shared.received
    }

    /// Empties all buckets and begins anew: counts and numbers of requests from 0, faults by this seed.
    pub fn reset(&self, seed: u64) {
        let mut options = lock(&self.shared.options);
        options.seed = seed;
        *lock(&self.shared.state) = State::new(&options.buckets, options.clock);
        *lock(&self.shared.counts) = Counts::default();
        self.shared.requests.store(0, Ordering::SeqCst);
    }

    /// Sets the faults from now on.
    pub fn set_faults(&self, faults: Faults) {
        lock(&self.shared.options).faults = faults;
    }

    /// Sets the delay from now on.
    pub fn set_delay(&self, delay: Duration) {
        lock(&self.shared.options).delay = delay;
    }

    /// Sets who watches the requests from now on.
    pub fn watch(&self, watch: Option<Arc<dyn Watch>>) {
        *lock(&self.shared.watch) = watch;
    }

    /// Keys of a bucket, ascending; none if it does not exist.
    pub fn keys(&self, bucket: &str) -> Vec<String> {
        let state = lock(&self.shared.state);
        state.bucket(bucket).map(|bucket| bucket.objects.keys().cloned().collect()).unwrap_or_default()
    }

    /// The bytes of an object, if it exists.
    pub fn object(&self, bucket: &str, key: &str) -> Option<Vec<u8>> {
        let content = lock(&self.shared.state).object(bucket, key).ok()?.content.clone();
        Some(content.slice(0..content.len()).concat())
    }

    /// Writes an object without a request, as another client would have. Returns whether the bucket exists.
    pub fn put_object(&self, bucket: &str, key: &str, bytes: Vec<u8>) -> bool {
        let content = Content::from(Bytes::from(bytes));
        let (etag, attributes) = (content.etag(), Attributes::of(&[]));
        lock(&self.shared.state).put(Place { bucket, key }, content, etag, attributes, &Condition::default()).is_ok()
    }

    /// Keys of the uploads under way in a bucket, ascending.
    pub fn uploads(&self, bucket: &str) -> Vec<String> {
        let state = lock(&self.shared.state);
        let uploads = state.bucket(bucket).map(|bucket| bucket.uploads.keys().map(|(key, _)| key.clone()).collect());
        uploads.unwrap_or_default()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.shared.stopped.store(true, Ordering::SeqCst);
        // Wakes the thread that accepts.
        let woken = TcpStream::connect(self.address).is_ok();
        if let Some(accepting) = self.accepting.take().filter(|_| woken) {
            let _ = accepting.join();
        }
        for stream in lock(&self.shared.open).values() {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    let mut number = 0;
    while !shared.stopped.load(Ordering::SeqCst) {
        // Fails for a connection that is gone already, or for want of descriptors, which others may give back.
        let Ok((stream, _)) = listener.accept() else {
            thread::sleep(Duration::from_millis(10));
            continue;
        };
        number += 1;
        let Ok(copy) = stream.try_clone() else { continue };
        lock(&shared.open).insert(number, copy);
        let (inner, this) = (Arc::clone(shared), number);
        let spawned = thread::Builder::new().spawn(move || {
            // Whatever ends a connection is the client's concern.
            let _ = serve(&inner, stream);
            lock(&inner.open).remove(&this);
        });
        if spawned.is_err() {
            lock(&shared.open).remove(&number);
        }
    }
}

/// Answers the requests of a connection until it ends.
fn serve(shared: &Shared, stream: TcpStream) -> io::Result<()> {
    let mut line = Line::new(stream)?;
    while let Some(head) = line.read_head()? {
        let closes = head.says("connection", "close");
        if control::is_control(&head.target) {
            let mut request = Request::new(head);
            request.body = line.read_body(&request.head)?;
            line.write(&control::answer(&request, &shared.options, &shared.counts, &shared.received))?;
        } else if let Some(kept) = answer(shared, line, head)? {
            line = kept;
        } else {
            return Ok(());
        }
        if closes {
            return Ok(());
        }
    }
    Ok(())
}

/// Answers a request; returns the connection if it goes on.
fn answer(shared: &Shared, mut line: Line, head: Head) -> io::Result<Option<Line>> {
    let begun = shared.begun.elapsed();
    let number = shared.requests.fetch_add(1, Ordering::SeqCst);
    let options = lock(&shared.options).clone();
    let mut request = Request::new(head);
    let kind = Kind::of(&request);
    let watch = lock(&shared.watch).clone();
    let key = request.key.clone().unwrap_or_default();
    let arrival = Arrival { number, kind, key: &key };
    let conditional = api::condition(&request).is_ok_and(|condition| condition.is_any())
        && matches!(kind, Kind::PutObject | Kind::CopyObject | Kind::CompleteUpload | Kind::DeleteObject);
    let fault = watch.as_ref().and_then(|watch| watch.before(&arrival));
    let fault = fault.or_else(|| options.faults.draw(options.seed, number, kind, conditional));
    let counted = Counted { shared, kind, is_fault: fault.is_some(), begun };
    if fault == Some(Fault::Reset) {
        counted.add(0, 0);
        return line.reset().map(|()| None);
    }

    request.body = line.read_body(&request.head)?;
    let received = request.body.len() as u64;
    if options.log {
        shared.received.add(number, request.head.bytes.clone(), request.body.clone());
    }

    let response = match refused(&request, fault, &options) {
        Some(refusal) => api::refuse(&refusal, &request.head.target),
        None => {
            let rules = Rules { page: options.page, part: options.part, stale: fault == Some(Fault::StaleUpload) };
            api::answer(&shared.state, &request, kind, rules)
        }
    };
    if let Some(watch) = watch {
        watch.after(&arrival);
    }
    let slow = if fault == Some(Fault::Slow) { options.slow } else { Duration::ZERO };
    thread::sleep(options.delay + slow);
    let response = match fault {
        Some(Fault::ErrorAfter) => api::refuse(&internal(), &request.head.target),
        _ => response,
    };
    let date = lock(&shared.state).now().header();
    let response = response.with("Date", date).with("x-amz-request-id", format!("{number:016X}"));
    let headless = matches!(kind, Kind::HeadObject | Kind::HeadBucket);
    let response = if headless { response.without_body() } else { response };
    match fault {
        Some(Fault::LostReply) => {
            counted.add(received, 0);
            // Both happen: clients take an end for a request that was not sent, a reset for one that may have been.
            if number.is_multiple_of(2) { line.close() } else { line.reset() }.map(|()| None)
        }
        Some(Fault::Truncated) if response.len() > 1 => {
            counted.add(received, response.len() / 2);
            line.write_half(&response).map(|()| None)
        }
        // Counted first: whoever has the reply finds the request in the counts.
        _ => {
            counted.add(received, response.len());
            line.write(&response).map(|()| Some(line))
        }
    }
}

/// A request as the counts will have it.
struct Counted<'a> {
    shared: &'a Shared,
    kind: Kind,
    is_fault: bool,
    /// When it came, since the server began.
    begun: Duration,
}

impl Counted<'_> {
    /// Counts the request as answered now, with the bytes of both bodies.
    fn add(&self, received: u64, sent: u64) {
        let end = self.shared.begun.elapsed();
        let mut counts = lock(&self.shared.counts);
        *counts.kinds.entry(self.kind).or_default() += 1;
        counts.faults += u64::from(self.is_fault);
        counts.received += received;
        counts.sent += sent;
        counts.spans.push((self.begun.as_micros() as u64, end.as_micros() as u64));
    }
}

fn internal() -> Refusal {
    Refusal::new(500, "InternalError", "an internal error happened; try again")
}

/// Why a request is not executed, if it is not.
fn refused(request: &Request, fault: Option<Fault>, options: &Options) -> Option<Refusal> {
    match fault {
        Some(Fault::InternalError) => return Some(internal()),
        Some(Fault::SlowDown) => return Some(Refusal::new(503, "SlowDown", "reduce your request rate")),
        Some(Fault::Conflict) => {
            return Some(Refusal::new(
                409,
                "ConditionalRequestConflict",
                "a concurrent request is in the way; try again",
            ));
        }
        Some(Fault::Precondition) => return Some(Refusal::precondition()),
        Some(Fault::Denied) => return Some(Refusal::new(403, "AccessDenied", "the key may not do this")),
        _ => {}
    }
    let signed = request.head.header("authorization").is_some_and(|value| !value.trim().is_empty())
        || request.parameter("X-Amz-Signature").is_some();
    let is_denied = options.authorization && !signed;
    is_denied.then(|| Refusal::new(403, "AccessDenied", "the request has no Authorization header"))
}
