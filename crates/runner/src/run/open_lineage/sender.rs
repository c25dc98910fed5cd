//! Sends events to a server while a run goes on.
//!
//! A server that is down or slow must not hold a run up: a thread sends the events, each within a time limit, and the end of the
//! run waits for it no longer than for one event.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender as Queue, channel};
use std::thread::Builder;
use std::time::{Duration, Instant};

use reqwest::Client;
use reqwest::header::CONTENT_TYPE;
use reqwest::redirect::Policy;
use tidetable_job::several;

use crate::web::{AGENT, reason_of};

/// Time limit of a request, and of what is waited for at the end of a run.
const ANSWER: Duration = Duration::from_secs(2);

/// Where events are posted.
pub(super) struct Server {
    pub(super) url: String,
    pub(super) token: Option<String>,
}

/// A thread that posts the events of a run, which are two, in their order.
pub(super) struct Sender {
    queue: Queue<String>,
    /// For each event, why it was not sent.
    outcomes: Receiver<Result<(), String>>,
    events: usize,
}

impl Sender {
    /// Starts the thread.
    ///
    /// # Errors
    /// If it cannot be started.
    pub(super) fn start(server: Server) -> std::io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (queue, events) = channel();
        let (told, outcomes) = channel();
        let thread = Builder::new().name("lineage".to_owned());
        thread.spawn(move || {
            for event in events {
                // Without a receiver the run has ended.
                if told.send(runtime.block_on(post(&server, event))).is_err() {
                    break;
                }
            }
            // A name that is still looked up is not waited for.
            runtime.shutdown_background();
        })?;
        Ok(Self { queue, outcomes, events: 0 })
    }

    /// Hands an event to the thread, which sends it.
    pub(super) fn send(&mut self, event: String) {
        self.events += 1;
        // Without a thread there is no outcome.
        let _ = self.queue.send(event);
    }

    /// Waits for what is on its way.
    ///
    /// # Errors
    /// How many events were not sent, and why the first was not.
    pub(super) fn finish(self) -> Result<(), String> {
        drop(self.queue);
        let end = Instant::now() + ANSWER;
        let (mut sent, mut reason) = (0, None);
        for _ in 0..self.events {
            match self.outcomes.recv_timeout(end.saturating_duration_since(Instant::now())) {
                Ok(Ok(())) => sent += 1,
                Ok(Err(failure)) => reason = reason.or(Some(failure)),
                Err(RecvTimeoutError::Timeout) => reason = reason.or_else(|| Some(silence())),
                Err(RecvTimeoutError::Disconnected) => {
                    reason = reason.or(Some("its thread stopped at a fault".to_owned()))
                }
            }
        }

        match reason {
            None => Ok(()),
            Some(reason) => Err(format!("{}: {reason}", several((self.events - sent) as u64, "event"))),
        }
    }
}

fn silence() -> String {
    format!("no answer within {} s", ANSWER.as_secs())
}

/// Posts an event. A redirection is an error: the event would be left out of the request that follows it.
async fn post(server: &Server, event: String) -> Result<(), String> {
    let client =
        Client::builder().timeout(ANSWER).redirect(Policy::none()).user_agent(AGENT).build().map_err(reason_of)?;

    let mut request = client.post(&server.url).header(CONTENT_TYPE, "application/json").body(event);
    if let Some(token) = &server.token {
        request = request.bearer_auth(token);
    }
    match request.send().await {
        Ok(answer) if answer.status().is_success() => Ok(()),
        Ok(answer) => Err(format!("the answer is {}", answer.status())),
        Err(error) if error.is_timeout() => Err(silence()),
        Err(error) => Err(reason_of(error)),
    }
}
