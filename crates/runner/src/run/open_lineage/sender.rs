//! Sends events to a server while a run goes on.
//!
//! A server that is down or slow must not hold a run up: events wait in a bounded queue, a request has a time limit, and after one
//! without an answer the others are not tried. So the end of a run waits for one request at most.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use reqwest::Client;
use reqwest::header::CONTENT_TYPE;
use tidetable_job::several;

use crate::web::reason_of;

/// Time limit of a request.
const ANSWER: Duration = Duration::from_secs(2);
/// Most events that wait.
const QUEUE: usize = 16;

/// Where events are posted.
pub(super) struct Server {
    pub(super) url: String,
    pub(super) token: Option<String>,
}

/// A thread that posts events in their order.
pub(super) struct Sender {
    queue: SyncSender<String>,
    thread: JoinHandle<Unsent>,
    /// Events for which the queue had no room.
    dropped: usize,
}

/// Events that were not sent.
#[derive(Debug, Default)]
struct Unsent {
    events: usize,
    /// Why the first was not.
    reason: Option<String>,
}

impl Unsent {
    fn add(&mut self, reason: String) {
        self.events += 1;
        self.reason.get_or_insert(reason);
    }
}

/// Why a request failed.
enum Failure {
    /// The server said no.
    Refused(String),
    /// It did not answer.
    Silent(String),
}

impl Sender {
    /// Starts the thread.
    ///
    /// # Errors
    /// If it cannot be started.
    pub(super) fn start(server: Server) -> std::io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (queue, events) = sync_channel(QUEUE);
        let send = move || runtime.block_on(send_all(&server, &events));
        let thread = Builder::new().name("lineage".to_owned()).spawn(send)?;
        Ok(Self { queue, thread, dropped: 0 })
    }

    /// Sends an event, unless too many wait already.
    pub(super) fn send(&mut self, event: String) {
        self.dropped += usize::from(self.queue.try_send(event).is_err());
    }

    /// Waits for what is on its way.
    ///
    /// # Errors
    /// How many events were not sent, and why the first was not.
    pub(super) fn finish(self) -> Result<(), String> {
        drop(self.queue);
        let Ok(unsent) = self.thread.join() else { return Err("its thread stopped at a fault".to_owned()) };
        let events = unsent.events + self.dropped;
        if events == 0 {
            return Ok(());
        }
        let reason = unsent.reason.unwrap_or_else(|| "too many waited".to_owned());
        Err(format!("{}: {reason}", several(events as u64, "event")))
    }
}

async fn send_all(server: &Server, events: &Receiver<String>) -> Unsent {
    let mut unsent = Unsent::default();
    let agent = concat!("tidetable/", env!("CARGO_PKG_VERSION"));
    let client = Client::builder().timeout(ANSWER).user_agent(agent).build();
    let mut silence = client.as_ref().err().map(|error| error.to_string());
    for event in events {
        let failure = match (&client, &silence) {
            (Ok(client), None) => post(client, server, event).await.err(),
            (_, reason) => Some(Failure::Silent(reason.clone().unwrap_or_default())),
        };
        match failure {
            None => {}
            Some(Failure::Refused(reason)) => unsent.add(reason),
            Some(Failure::Silent(reason)) => {
                silence = Some(reason.clone());
                unsent.add(reason);
            }
        }
    }
    unsent
}

async fn post(client: &Client, server: &Server, event: String) -> Result<(), Failure> {
    let mut request = client.post(&server.url).header(CONTENT_TYPE, "application/json").body(event);
    if let Some(token) = &server.token {
        request = request.bearer_auth(token);
    }
    match request.send().await {
        Ok(answer) if answer.status().is_success() => Ok(()),
        Ok(answer) => Err(Failure::Refused(format!("the answer is {}", answer.status()))),
        Err(error) if error.is_timeout() => Err(Failure::Silent(format!("no answer within {} s", ANSWER.as_secs()))),
        Err(error) => Err(Failure::Silent(reason_of(error))),
    }
}
