//! The start of a session: encryption, the first message, the password.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use pgwire::messages::response::ReadyForQuery;
use pgwire::messages::response::TransactionStatus;
use pgwire::messages::startup::{Authentication, BackendKeyData, NegotiateProtocolVersion, ParameterStatus, SecretKey};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::watch::Receiver;

use crate::access::{MECHANISM, Password, Scram};
use crate::connection::session::Session;
use crate::connection::shared::Shared;
use crate::connection::watch::{Phase, Watch, forgetting, shutdown};
use crate::error::{Refusal, code};
use crate::statement::Settings;
use crate::wire::{First, Incoming, LENGTH, Outgoing, Request, first_of, request_of};

/// How long a client may take to begin a session.
const PATIENCE: Duration = Duration::from_secs(20);
/// How long a refusal may take to be sent.
const REFUSAL: Duration = Duration::from_secs(5);
/// Bytes of a message before the session, at most.
const MOST_MESSAGE: usize = 10_000;
/// Version 3.0 of the protocol, as messages write it.
const VERSION: i32 = 3 << 16;
/// First byte of a client that begins with TLS at once.
const TLS_RECORD: u8 = 0x16;

/// Begins the session of a client; `None` if it does not come to one, or only cancels a statement.
pub(super) async fn start(shared: &Arc<Shared>, stream: TcpStream, mut phase: Receiver<Phase>) -> Option<Session> {
    let ends = phase.clone();
    let started = tokio::select! {
        started = tokio::time::timeout(PATIENCE, begin(shared, stream, ends)) => started.ok()?,
        _ = phase.wait_for(|phase| *phase != Phase::Running) => None,
    };
    started.filter(|session| !session.has_ended())
}

async fn begin(shared: &Arc<Shared>, stream: TcpStream, phase: Receiver<Phase>) -> Option<Session> {
    let (mut ends, first, is_encrypted) = encrypted(shared, stream).await.ok()??;
    let (minor, options) = match first {
        Ok(First::Startup { minor, options }) => (minor, options),
        Ok(First::Cancel { process, key }) => {
            shared.cancels.cancel(process, key);
            return None;
        }
        Ok(_) => return refuse(&mut ends.1, &Refusal::protocol("encryption was asked for twice")).await,
        Err(refusal) => return refuse(&mut ends.1, &refusal).await,
    };

    match admitted(shared, &mut ends, minor, &options, is_encrypted).await {
        Ok(()) => {}
        Err(refusal) => return refuse(&mut ends.1, &refusal).await,
    }
    let user = options.get("user").cloned().unwrap_or_default();
    match opened(shared, ends, &options, user, phase).await {
        Ok(session) => Some(session),
        Err((mut outgoing, refusal)) => refuse(&mut outgoing, &refusal).await,
    }
}

/// Sends a refusal, if the client takes it in time.
async fn refuse(outgoing: &mut Outgoing, refusal: &Refusal) -> Option<Session> {
    let refusal = Refusal { is_fatal: true, ..refusal.clone() };
    if outgoing.put(&refusal.response("")).is_ok() {
        let _ = tokio::time::timeout(REFUSAL, outgoing.flush()).await;
        outgoing.shut().await;
    }
    None
}

type Ends = (Incoming, Outgoing);

/// Both halves of a connection, encrypted if the client asks for it, with the first message that is about a session.
async fn encrypted(shared: &Shared, mut stream: TcpStream) -> io::Result<Option<(Ends, Result<First, Refusal>, bool)>> {
    let mut peeked = [0];
    let begins_with_tls = stream.peek(&mut peeked).await? == 1 && peeked == [TLS_RECORD];
    if let (true, Some(acceptor)) = (begins_with_tls, &shared.tls) {
        let mut ends = halves(acceptor.accept(stream).await?);
        return Ok(first(&mut ends.0).await?.map(|first| (ends, first, true)));
    }

    loop {
        let Some(message) = plain_first(&mut stream).await? else { return Ok(None) };
        match (message, &shared.tls) {
            (Ok(First::Gss), _) | (Ok(First::Tls), None) => stream.write_all(b"N").await?,
            (Ok(First::Tls), Some(acceptor)) => {
                stream.write_all(b"S").await?;
                let mut ends = halves(acceptor.accept(stream).await?);
                return Ok(first(&mut ends.0).await?.map(|first| (ends, first, true)));
            }
            (message, _) => {
                let (reader, writer) = stream.into_split();
                let ends = (Incoming::new(Box::new(reader)), Outgoing::new(Box::new(writer)));
                return Ok(Some((ends, message, false)));
            }
        }
    }
}

/// A first message in the clear. No byte after it is read, since what follows may be encrypted.
async fn plain_first(stream: &mut TcpStream) -> io::Result<Option<Result<First, Refusal>>> {
    let mut length = [0; LENGTH];
    match stream.read_exact(&mut length).await {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        read => read?,
    };
    let body = usize::try_from(i32::from_be_bytes(length)).ok().and_then(|length| length.checked_sub(LENGTH));
    let Some(body) = body.filter(|body| *body <= MOST_MESSAGE) else {
        return Ok(Some(Err(Refusal::protocol("the first message is none of PostgreSQL's protocol"))));
    };
    let mut bytes = vec![0; body];
    stream.read_exact(&mut bytes).await?;
    Ok(Some(first_of(bytes.into())))
}

fn halves<S: AsyncRead + AsyncWrite + Send + 'static>(stream: S) -> Ends {
    let (reader, writer) = tokio::io::split(stream);
    (Incoming::new(Box::new(reader)), Outgoing::new(Box::new(writer)))
}

async fn first(incoming: &mut Incoming) -> io::Result<Option<Result<First, Refusal>>> {
    let body = incoming.first(MOST_MESSAGE).await?;
    Ok(body.map(|body| body.and_then(first_of)))
}

/// Checks that a client may have a session.
async fn admitted(
    shared: &Shared,
    ends: &mut Ends,
    minor: i32,
    options: &BTreeMap<String, String>,
    is_encrypted: bool,
) -> Result<(), Refusal> {
    if shared.needs_tls && !is_encrypted {
        return Err(Refusal::fatal(
            code::AUTHORIZATION,
            "this server needs TLS: connect with sslmode=require or stricter",
        ));
    }
    if options.get("replication").is_some_and(|value| !matches!(value.as_str(), "false" | "off" | "no" | "0")) {
        return Err(Refusal::fatal(code::UNSUPPORTED, "replication is not served"));
    }
    let user = options.get("user").map(String::as_str).unwrap_or_default();
    if user.is_empty() {
        return Err(Refusal::fatal(code::AUTHORIZATION, "the first message names no user"));
    }

    let unknown: Vec<String> = options.keys().filter(|name| name.starts_with("_pq_.")).cloned().collect();
    if minor > 0 || !unknown.is_empty() {
        ends.1.put(&NegotiateProtocolVersion::new(VERSION, unknown))?;
    }
    match &shared.user {
        None => Ok(()),
        Some((known, password)) => authenticate(shared, ends, user, user == known, password).await,
    }
}

/// Asks for the password of a user, by SCRAM-SHA-256.
async fn authenticate(
    shared: &Shared,
    ends: &mut Ends,
    user: &str,
    is_known: bool,
    password: &Password,
) -> Result<(), Refusal> {
    let (incoming, outgoing) = ends;
    outgoing.put(&Authentication::SASL(vec![MECHANISM.to_owned()]))?;
    send(outgoing).await?;

    let first = sasl(incoming).await?;
    let message = first_message(&first)?;
    let exchange = Scram::begin(&message, password, is_known, &shared.random)?;
    outgoing.put(&Authentication::SASLContinue(Bytes::copy_from_slice(exchange.answer().as_bytes())))?;
    send(outgoing).await?;

    let last = sasl(incoming).await?;
    let answer = exchange.end(&last, user)?;
    outgoing.put(&Authentication::SASLFinal(answer.into()))
}

/// The next message of SASL.
async fn sasl(incoming: &mut Incoming) -> Result<Bytes, Refusal> {
    let message = incoming.message(MOST_MESSAGE).await.map_err(|error| Refusal::protocol(error.to_string()))?;
    let (kind, body) = message.ok_or_else(|| Refusal::protocol("the client is gone"))??;
    match request_of(kind, body)? {
        Request::Password(body) => Ok(body),
        _ => Err(Refusal::protocol("a message of SASL was expected")),
    }
}

/// The message of the mechanism in a first message of SASL: after the name of the mechanism and a length.
fn first_message(body: &Bytes) -> Result<Bytes, Refusal> {
    let mut body = crate::wire::Body(body.clone());
    if body.text()? != MECHANISM {
        return Err(Refusal::protocol(format!("the only way to authenticate is {MECHANISM}")));
    }
    body.value()?.ok_or_else(|| Refusal::protocol("the first message of SASL is empty"))
}

async fn send(outgoing: &mut Outgoing) -> Result<(), Refusal> {
    outgoing.flush().await.map_err(|error| Refusal::protocol(error.to_string()))
}

/// Opens the session, if there is a place for it.
async fn opened(
    shared: &Arc<Shared>,
    ends: Ends,
    options: &BTreeMap<String, String>,
    user: String,
    phase: Receiver<Phase>,
) -> Result<Session, (Outgoing, Refusal)> {
    let (incoming, mut outgoing) = ends;
    if *phase.borrow() != Phase::Running {
        return Err((outgoing, shutdown()));
    }
    let Ok(place) = Arc::clone(&shared.places).try_acquire_owned() else {
        let most = shared.most_clients;
        let text =
            format!("too many clients already: {most} may be connected; start the server with more --max-clients");
        return Err((outgoing, Refusal::fatal(code::CLIENTS, text)));
    };
    let settings = Settings::new(options, &user);
    let cancellable = shared.cancels.add(&shared.random, forgetting(shared, |shared| &shared.cancels));
    let (settings, cancellable) = match (settings, cancellable) {
        (Ok(settings), Ok(cancellable)) => (settings, cancellable),
        (Err(refusal), _) | (_, Err(refusal)) => return Err((outgoing, refusal)),
    };

    let greeted = greet(&mut outgoing, &settings, cancellable.process, cancellable.key).await;
    if let Err(refusal) = greeted {
        return Err((outgoing, refusal));
    }
    let watch = Watch::new(cancellable, phase);
    Ok(Session::new(Arc::clone(&shared.engine), incoming, outgoing, settings, user, watch, place))
}

/// Tells a client that its session begins.
async fn greet(outgoing: &mut Outgoing, settings: &Settings, process: i32, key: i32) -> Result<(), Refusal> {
    outgoing.put(&Authentication::Ok)?;
    for (name, value) in settings.reported() {
        outgoing.put(&ParameterStatus::new(name, value))?;
    }
    outgoing.put(&BackendKeyData::new(process, SecretKey::I32(key)))?;
    outgoing.put(&ReadyForQuery::new(TransactionStatus::Idle))?;
    send(outgoing).await
}
