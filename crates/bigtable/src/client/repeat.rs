//! Repeats requests until they succeed, fail for good, or make no progress for too long.

use std::time::Duration;

use tokio::time::Instant;
use tonic::Status;

use crate::client::backoff::{asked_wait, is_transient, wait_before};
use crate::client::connection::Client;
use crate::error::{BigtableError, Result};

/// The repetitions of one request.
#[derive(Debug)]
pub(crate) struct Repeat<'a> {
    client: &'a Client,
    method: &'static str,
    subject: String,
    attempt: u32,
    since: Instant,
}

impl<'a> Repeat<'a> {
    /// For a request of `method` about `subject`.
    pub(crate) fn new(client: &'a Client, method: &'static str, subject: &dyn std::fmt::Display) -> Self {
        Self { client, method, subject: subject.to_string(), attempt: 0, since: Instant::now() }
    }

    /// Notes progress: the next failure is the first again.
    pub(crate) fn progressed(&mut self) {
        self.attempt = 0;
        self.since = Instant::now();
    }

    /// After a failure: waits for the next attempt.
    ///
    /// # Errors
    /// [`BigtableError::Request`] if the failure is permanent, or repeated for as long as the options allow.
    pub(crate) async fn after(&mut self, status: Status) -> Result<()> {
        if !is_transient(&status) {
            return Err(self.failed(&status));
        }
        self.attempt += 1;
        let options = self.client.options();
        let wait = wait_before(self.attempt, (options.random)(), asked_wait(&status));
        if self.since.elapsed() + wait > options.patience {
            return Err(self.failed(&status));
        }
        tracing::debug!(method = self.method, attempt = self.attempt, code = ?status.code(), ?wait, "request_repeated");
        tokio::time::sleep(wait).await;
        Ok(())
    }

    /// The error of a failure.
    pub(crate) fn failed(&self, status: &Status) -> BigtableError {
        BigtableError::request(self.method, &self.subject, status, self.since.elapsed())
    }
}

/// Ends what takes longer than `limit` with DEADLINE_EXCEEDED.
///
/// # Errors
/// Of the future.
pub(crate) async fn within<T>(limit: Duration, future: impl Future<Output = Result<T, Status>>) -> Result<T, Status> {
    tokio::time::timeout(limit, future)
        .await
        .unwrap_or_else(|_| Err(Status::deadline_exceeded(format!("no answer within {} s", limit.as_secs()))))
}
