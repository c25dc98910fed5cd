//! Paths below `/_/`, which no bucket can be named: another process reads counts and changes faults and delay.
//!
//! ```text
//! GET    /_/counts               counts as JSON
//! DELETE /_/counts               sets them to 0
//! PUT    /_/faults 503=0.05      faults from now on; an empty body for none
//! PUT    /_/delay 30ms           delay from now on
//! GET    /_/received?find=TEXT   requests with these bytes, as JSON; needs the option `log`
//! ```

use std::sync::{Mutex, PoisonError};

use serde_json::json;

use crate::counts::Counts;
use crate::http::{Method, Request, Response};
use crate::options::{Options, duration};
use crate::received::Received;

/// Whether a path is one of these.
pub(crate) fn is_control(target: &str) -> bool {
    target.starts_with("/_/")
}

/// The reply to such a request.
pub(crate) fn answer(
    request: &Request,
    options: &Mutex<Options>,
    counts: &Mutex<Counts>,
    received: &Received,
) -> Response {
    let mut options = options.lock().unwrap_or_else(PoisonError::into_inner);
    let mut counts = counts.lock().unwrap_or_else(PoisonError::into_inner);
    let text = String::from_utf8_lossy(&request.body);

    match (request.method, request.key.as_deref().unwrap_or_default()) {
        (Method::Get, "counts") => Response::json(&counts.json()),
        (Method::Delete, "counts") => {
            *counts = Counts::default();
            Response::new(204)
        }
        (Method::Put, "faults") => match text.trim().parse() {
            Ok(faults) => {
                options.faults = faults;
                Response::new(204)
            }
            Err(error) => wrong(&error.to_string()),
        },
        (Method::Put, "delay") => match duration(text.trim()) {
            Some(delay) => {
                options.delay = delay;
                Response::new(204)
            }
            None => wrong("give a delay such as 30ms or 2s"),
        },
        (Method::Get, "received") => match request.parameter("find") {
            _ if !options.log => wrong("start the server with --log to search what it receives"),
            Some(text) if !text.is_empty() => {
                let found = received.find(text.as_bytes()).into_iter();
                let found =
                    found.map(|found| json!({"number": found.number, "line": found.line, "body": found.in_body}));
                Response::json(&json!({"bytes": received.bytes(), "found": found.collect::<Vec<_>>()}))
            }
            _ => wrong("give the text to find, ?find=TEXT"),
        },

        _ => Response::new(404)
            .bytes("GET or DELETE /_/counts, PUT /_/faults, PUT /_/delay, GET /_/received?find=TEXT\n"),
    }
}

fn wrong(message: &str) -> Response {
    Response::new(400).bytes(format!("{message}\n"))
}
