//! Why a statement must stop before it ends.

use std::collections::HashMap;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ring::rand::SecureRandom;
use tokio::sync::watch::{self, Receiver, Sender};
use tokio::time::Instant;

use crate::error::{Refusal, code};
use crate::wire::Incoming;

/// What the server does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// It takes clients.
    Running,
    /// It was asked to end: statements that run may finish.
    Draining,
    /// It ends now.
    Ended,
}

/// The sessions that can be cancelled.
#[derive(Debug, Default)]
pub(crate) struct Cancels {
    sessions: Mutex<HashMap<i32, (i32, Sender<u64>)>>,
    last: AtomicI32,
}

/// A session by which clients can cancel its statement; forgotten when dropped.
pub(crate) struct Cancellable {
    /// A number that no other session has.
    pub(crate) process: i32,
    /// What proves that a request to cancel is from the client of the session.
    pub(crate) key: i32,
    requests: Receiver<u64>,
    forget: Box<dyn Fn(i32) + Send + Sync>,
}

impl Drop for Cancellable {
    fn drop(&mut self) {
        (self.forget)(self.process);
    }
}

impl Cancels {
    /// Adds a session. `forget` removes it again.
    ///
    /// # Errors
    /// If the system has no random numbers.
    pub(crate) fn add(
        &self,
        random: &dyn SecureRandom,
        forget: Box<dyn Fn(i32) + Send + Sync>,
    ) -> Result<Cancellable, Refusal> {
        let mut key = [0; size_of::<i32>()];
        random.fill(&mut key).map_err(|_| Refusal::fatal(code::INTERNAL, "the system has no random numbers"))?;
        let key = i32::from_be_bytes(key);
        let process = self.last.fetch_add(1, Ordering::Relaxed).wrapping_add(1) & i32::MAX;
        let (sender, requests) = watch::channel(0);
        self.sessions().insert(process, (key, sender));
        Ok(Cancellable { process, key, requests, forget })
    }

    /// Removes a session.
    pub(crate) fn remove(&self, process: i32) {
        self.sessions().remove(&process);
    }

    /// Cancels the statement that a session runs now, if the key is right.
    pub(crate) fn cancel(&self, process: i32, key: i32) {
        if let Some((known, sender)) = self.sessions().get(&process)
            && *known == key
        {
            sender.send_modify(|requests| *requests += 1);
        }
    }

    fn sessions(&self) -> std::sync::MutexGuard<'_, HashMap<i32, (i32, Sender<u64>)>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Watches a statement.
pub(crate) struct Watch {
    cancellable: Cancellable,
    phase: Receiver<Phase>,
    deadline: Option<(Instant, Duration)>,
}

impl Watch {
    pub(crate) fn new(cancellable: Cancellable, phase: Receiver<Phase>) -> Self {
        Self { cancellable, phase, deadline: None }
    }

    /// The number of the session.
    pub(crate) fn process(&self) -> i32 {
        self.cancellable.process
    }

    /// Begins a statement, which may run for `limit`. Requests to cancel that came before are of another one.
    pub(crate) fn begin(&mut self, limit: Option<Duration>) {
        self.cancellable.requests.borrow_and_update();
        self.deadline = limit.and_then(|limit| Some((Instant::now().checked_add(limit)?, limit)));
    }

    /// Whether the server was asked to end.
    pub(crate) fn is_draining(&self) -> bool {
        *self.phase.borrow() != Phase::Running
    }

    /// Waits until the server is asked to end.
    pub(crate) async fn draining(&mut self) {
        // The sender lives as long as the server.
        let _ = self.phase.wait_for(|phase| *phase != Phase::Running).await;
    }

    /// Waits until the statement must stop.
    async fn stopped(&mut self, incoming: &mut Incoming) -> Refusal {
        let deadline = self.deadline;
        let late = async {
            match deadline {
                Some((at, _)) => tokio::time::sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            cancelled = self.cancellable.requests.changed() => match cancelled {
                Ok(()) => Refusal::new(code::CANCELLED, "canceling statement due to user request"),
                Err(_) => Refusal::fatal(code::SHUTDOWN, "the session has ended"),
            },
            () = late => {
                let limit = deadline.map(|(_, limit)| limit).unwrap_or_default();
                Refusal::new(
                    code::CANCELLED,
                    format!(
                        "canceling statement due to statement timeout: it ran for {limit:?}; ask for less, or start the server \
                         with a longer --statement-timeout"
                    ),
                )
            }
            _ = self.phase.wait_for(|phase| *phase == Phase::Ended) => shutdown(),
            () = incoming.client_gone() => Refusal::fatal(code::PROTOCOL, "the client is gone"),
        }
    }
}

/// The refusal of a server that ends.
pub(crate) fn shutdown() -> Refusal {
    Refusal::fatal(code::SHUTDOWN, "terminating connection due to administrator command: the server ends")
}

/// Does `work` unless it must stop.
///
/// # Errors
/// Those of `work`, and why it was stopped.
pub(crate) async fn watched<T>(
    watch: &mut Watch,
    incoming: &mut Incoming,
    work: impl Future<Output = Result<T, Refusal>>,
) -> Result<T, Refusal> {
    tokio::select! {
        biased;
        refusal = watch.stopped(incoming) => Err(refusal),
        done = work => done,
    }
}

/// The registry of a shared value, to forget a session by.
pub(crate) fn forgetting<S: Send + Sync + 'static>(
    shared: &Arc<S>,
    cancels: fn(&S) -> &Cancels,
) -> Box<dyn Fn(i32) + Send + Sync> {
    let shared = Arc::clone(shared);
    Box::new(move |process| cancels(&shared).remove(process))
}

#[cfg(test)]
mod tests {
    use ring::rand::SystemRandom;

    use super::*;

    #[test]
    fn only_the_key_of_a_session_cancels_it() {
        let cancels = Arc::new(Cancels::default());
        let forget = forgetting(&cancels, |cancels| cancels);
        let mut session = cancels.add(&SystemRandom::new(), forget).unwrap();
        cancels.cancel(session.process, session.key.wrapping_add(1));
        cancels.cancel(session.process + 1, session.key);
        assert!(!session.requests.has_changed().unwrap());
        cancels.cancel(session.process, session.key);
        assert!(session.requests.has_changed().unwrap());
        session.requests.borrow_and_update();
        drop(session);
        assert!(cancels.sessions().is_empty());
    }
}
