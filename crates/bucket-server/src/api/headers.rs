//! Conditions in headers.

use chrono::{DateTime, NaiveDateTime, Utc};

use crate::bucket::{Condition, Refusal};
use crate::http::Request;

/// The conditions of a request.
///
/// # Errors
/// A generation that is no number.
pub(crate) fn condition(request: &Request) -> Result<Condition, Refusal> {
    let text = |name: &str| request.head.header(name).map(str::to_owned);
    let time = |name: &str| request.head.header(name).and_then(http_time);
    let generation = request.head.header("x-goog-if-generation-match").map(str::parse).transpose();
    Ok(Condition {
        matches: text("if-match"),
        none_matches: text("if-none-match"),
        generation: generation.map_err(|_| Refusal::invalid("x-goog-if-generation-match is no number"))?,
        modified_since: time("if-modified-since"),
        unmodified_since: time("if-unmodified-since"),
    })
}

/// A time of an HTTP header; others are ignored, as RFC 9110 wants.
fn http_time(text: &str) -> Option<DateTime<Utc>> {
    NaiveDateTime::parse_from_str(text, "%a, %d %b %Y %H:%M:%S GMT").ok().map(|time| time.and_utc())
}
