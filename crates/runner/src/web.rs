//! Requests of HTTP: files of the web, taken for a first look, and the words for what fails.

use std::error::Error;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use reqwest::{Client, Response};
use tidetable_source::{Foreign, Format, redacted};

use crate::fault::stop::{Stop, Stopped};

/// Time limit for the connection, and for each part of the answer.
const PATIENCE: Duration = Duration::from_secs(30);

/// How this program names itself in requests.
pub(crate) const AGENT: &str = concat!("tidetable/", env!("CARGO_PKG_VERSION"));

/// Why a file of the web could not be taken.
#[derive(Debug, thiserror::Error)]
pub enum DownloadError {
    /// The name of the file does not say its format.
    #[error("{url} does not end in a name of a data file, such as readings.csv: download it, and give the file")]
    NoName {
        /// The address, without what may be secret.
        url: String,
    },
    /// The server refused the request.
    #[error("{url} cannot be read: the answer is {status}")]
    Refused {
        /// The address, without what may be secret.
        url: String,
        /// The status of the answer.
        status: String,
    },
    /// The request failed without an answer.
    #[error("{url} cannot be read: {reason}")]
    Request {
        /// The address, without what may be secret.
        url: String,
        /// The error with its causes.
        reason: String,
    },
    /// The file is larger than it may be.
    #[error("{url} is larger than {limit} bytes: raise --limit, or download it and propose a job with `tidetable new`")]
    TooLarge {
        /// The address, without what may be secret.
        url: String,
        /// The most bytes that it may have.
        limit: u64,
    },
    /// The copy could not be written.
    #[error("cannot write {path}: {source}")]
    Write {
        /// Path of the copy.
        path: String,
        /// The error of the disk.
        source: io::Error,
    },
    /// A signal ended it.
    #[error(transparent)]
    Stopped(#[from] Stopped),
}

/// Copies the file at `url`, `http://` or `https://`, into `folder`, where it keeps its name. Takes at most `limit` bytes.
///
/// # Errors
/// [`DownloadError`]; a part of the file may be in `folder`.
pub fn download(url: &str, folder: &Path, limit: u64, stop: &Stop) -> Result<PathBuf, DownloadError> {
    let shown = redacted(url);
    let path = url.split(['?', '#']).next().unwrap_or(url);
    let name = path.rsplit('/').next().unwrap_or_default();
    if Format::of_name(name).is_none() && !Foreign::has_ending(name) {
        return Err(DownloadError::NoName { url: shown });
    }

    let copy = folder.join(name);
    let failed = |source| DownloadError::Write { path: copy.display().to_string(), source };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
    runtime.block_on(async {
        let mut answer = ask(url, &shown).await?;
        let mut file = File::create(&copy).map_err(failed)?;
        let mut written = 0_u64;

        while let Some(part) = answer.chunk().await.map_err(|error| failed_request(&shown, error))? {
            if let Some(stopped) = stop.asked() {
                return Err(stopped.into());
            }
            written += part.len() as u64;
            if written > limit {
                return Err(DownloadError::TooLarge { url: shown.clone(), limit });
            }
            file.write_all(&part).map_err(failed)?;
        }
        Ok(())
    })?;
    Ok(copy)
}

/// Requests `url`, which errors show as `shown`.
async fn ask(url: &str, shown: &str) -> Result<Response, DownloadError> {
    let client = Client::builder().connect_timeout(PATIENCE).read_timeout(PATIENCE).user_agent(AGENT).build();
    let client = client.map_err(|error| failed_request(shown, error))?;
    let answer = client.get(url).send().await.map_err(|error| failed_request(shown, error))?;

    let status = answer.status();
    match status.is_success() {
        true => Ok(answer),
        false => Err(DownloadError::Refused { url: shown.to_owned(), status: status.to_string() }),
    }
}

fn failed_request(shown: &str, error: reqwest::Error) -> DownloadError {
    DownloadError::Request { url: shown.to_owned(), reason: reason_of(error) }
}

/// The error with its causes, without the URL, which may be secret.
pub(crate) fn reason_of(error: reqwest::Error) -> String {
    let error = error.without_url();
    let mut reason = error.to_string();
    let mut cause = error.source();
    while let Some(next) = cause {
        reason.push_str(&format!(": {next}"));
        cause = next.source();
    }
    reason
}
