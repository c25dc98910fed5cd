//! Conditions in headers.

use chrono::{DateTime, NaiveDateTime, Utc};

use crate::bucket::{Condition, Refusal};
use crate::http::Request;

/// The conditions of a request.
///
/// # Errors
/// A generation that is not a number.
pub(crate) fn condition(request: &Request) -> Result<Condition, Refusal> {
    let head = &request.head;
    let generation = head.header("x-goog-if-generation-match").map(str::parse).transpose();
    Ok(Condition {
        matches: head.header("if-match").map(str::to_owned),
        none_matches: head.header("if-none-match").map(str::to_owned),
        generation: generation.map_err(|_| Refusal::invalid("x-goog-if-generation-match is no number"))?,
        modified_since: head.header("if-modified-since").and_then(http_time),
        unmodified_since: head.header("if-unmodified-since").and_then(http_time),
    })
}

/// A time of an HTTP header; others are ignored, as RFC 9110 wants.
fn http_time(text: &str) -> Option<DateTime<Utc>> {
    NaiveDateTime::parse_from_str(text, "%a, %d %b %Y %H:%M:%S GMT").ok().map(|time| time.and_utc())
}
