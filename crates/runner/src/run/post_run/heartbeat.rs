//! The heartbeat: a URL requested after each run, so that a monitoring service notices a run that never happened.
//!
//! Follows healthchecks.io: the URL itself reports success, with `/fail` appended to its path
//! it reports failure.

use std::time::Duration;

use reqwest::Client;
use tidetable_job::{Hooks, Project};
use tokio::time::{Instant, sleep, timeout_at};

use crate::secrets::value;
use crate::web::{AGENT, reason_of};

/// Time limit for all attempts, unless `timeout` of the hooks is shorter.
const LONGEST: Duration = Duration::from_secs(15);
/// Time limit of an attempt.
const TRY: Duration = Duration::from_secs(5);
/// Attempts to send the heartbeat of a run.
const TRIES: usize = 3;
/// Wait between two attempts.
const PAUSE: Duration = Duration::from_millis(500);

/// Sends the heartbeat of the job, if it has one. Errors do not show the URL, which may be secret.
///
/// # Errors
/// Why it was not sent.
pub(crate) fn send(project: &Project, hooks: &Hooks, is_well: bool) -> Result<(), String> {
    let Some(setting) = &hooks.heartbeat else { return Ok(()) };
    let url = value(project, setting).map_err(|error| error.to_string())?;
    let url = if is_well { url } else { failing(&url) };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    let sent = runtime.block_on(ask(&url, hooks.timeout.min(LONGEST)));

    // A name that is still looked up is not waited for.
    runtime.shutdown_background();
    sent
}

/// Requests `url` until it succeeds, `limit` has passed, or all attempts are used.
async fn ask(url: &str, limit: Duration) -> Result<(), String> {
    let client = Client::builder().timeout(TRY).user_agent(AGENT).build().map_err(reason_of)?;

    let end = Instant::now() + limit;

    let mut last = format!("no answer within {} s", limit.as_secs());
    for _ in 0..TRIES {
        match timeout_at(end, client.get(url).send()).await {
            Ok(Ok(answer)) if answer.status().is_success() => return Ok(()),
            Ok(Ok(answer)) => {
                last = format!("the answer is {}", answer.status());
                // A client error is permanent.
                if answer.status().is_client_error() {
                    break;
                }
            }
            Ok(Err(error)) => last = reason_of(error),
            Err(_) => break,
        }
        sleep(PAUSE).await;
    }
    Err(last)
}

/// The URL that reports failure.
fn failing(url: &str) -> String {
    let end = url.find(['?', '#']).unwrap_or(url.len());
    let (path, rest) = url.split_at(end);
    format!("{}/fail{rest}", path.trim_end_matches('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_are_told_at_the_end_of_the_path() {
        assert_eq!(failing("https://hc-ping.com/uuid"), "https://hc-ping.com/uuid/fail");
        assert_eq!(failing("https://hc-ping.com/key/slug/?create=1"), "https://hc-ping.com/key/slug/fail?create=1");
        assert_eq!(failing("http://host"), "http://host/fail");
    }
}
