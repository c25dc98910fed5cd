//! The heartbeat: a URL that is asked for after each run, so that a service which waits for it tells when it stays away.
//!
//! The convention is that of healthchecks.io: the URL itself says that all is well, with `/fail` at the end of its path
//! it says that the run failed.

use std::error::Error;
use std::time::Duration;

use reqwest::Client;
use tokio::time::{Instant, sleep, timeout_at};

use crate::job::Hooks;
use crate::project::Project;
use crate::run::secrets::value;

/// How long it may take in all, if `timeout` of the hooks is not less.
const LONGEST: Duration = Duration::from_secs(15);
/// How long one try may take.
const TRY: Duration = Duration::from_secs(5);
/// How often it is tried: a network that stumbles is no run that failed.
const TRIES: usize = 3;
/// Between two tries.
const PAUSE: Duration = Duration::from_millis(500);

/// Sends the heartbeat of the job, if it has one. What goes wrong is told without the URL, which may be secret.
///
/// # Errors
/// Why nobody knows of it, in words.
pub(crate) fn send(project: &Project, hooks: &Hooks, is_well: bool) -> Result<(), String> {
    let Some(setting) = &hooks.heartbeat else { return Ok(()) };
    let url = value(project, setting).map_err(|error| error.to_string())?;
    let url = if is_well { url } else { failing(&url) };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| error.to_string())?.block_on(ask(&url, hooks.timeout.min(LONGEST)))
}

/// Asks for `url` until the answer is a good one, `limit` is over, or it was asked for often enough.
async fn ask(url: &str, limit: Duration) -> Result<(), String> {
    let agent = concat!("tidetable/", env!("CARGO_PKG_VERSION"));
    let client = Client::builder().timeout(TRY).user_agent(agent).build().map_err(told)?;
    let end = Instant::now() + limit;
    let mut last = format!("no answer within {} s", limit.as_secs());
    for _ in 0..TRIES {
        match timeout_at(end, client.get(url).send()).await {
            Ok(Ok(answer)) if answer.status().is_success() => return Ok(()),
            Ok(Ok(answer)) => {
                last = format!("the answer is {}", answer.status());
                // It will not change its mind.
                if answer.status().is_client_error() {
                    break;
                }
            }
            Ok(Err(error)) => last = told(error),
            Err(_) => break,
        }
        sleep(PAUSE).await;
    }
    Err(last)
}

/// The error with its causes, without the URL.
fn told(error: reqwest::Error) -> String {
    let error = error.without_url();
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(next) = cause {
        text.push_str(&format!(": {next}"));
        cause = next.source();
    }
    text
}

/// The URL that says that a run failed.
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
