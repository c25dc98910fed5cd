//! What the server has received.

use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use memchr::memmem;

/// A request in which a search found something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// Number of the request, from 0.
    pub number: u64,
    /// Its first line, as in `PUT /bucket/key HTTP/1.1`.
    pub line: String,
    /// Whether it is in the body, or in line and headers.
    pub in_body: bool,
}

#[derive(Debug)]
struct Entry {
    number: u64,
    head: Bytes,
    body: Bytes,
}

/// All requests received, as they came; bodies without transfer encoding.
#[derive(Debug, Default)]
pub struct Received {
    entries: Mutex<Vec<Entry>>,
}

impl Received {
    pub(crate) fn add(&self, number: u64, head: Bytes, body: Bytes) {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner).push(Entry { number, head, body });
    }

    /// The requests with the bytes `what`, in the order in which they came.
    pub fn find(&self, what: &[u8]) -> Vec<Found> {
        let entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let mut found = Vec::new();
        for entry in entries.iter() {
            for (bytes, in_body) in [(&entry.head, false), (&entry.body, true)] {
                if memmem::find(bytes, what).is_some() {
                    let end = memchr::memchr(b'\r', &entry.head).unwrap_or(entry.head.len());
                    let line = String::from_utf8_lossy(&entry.head[..end]).into_owned();
                    found.push(Found { number: entry.number, line, in_body });
                }
            }
        }
        found
    }

    /// Bytes received, of lines, headers and bodies.
    pub fn bytes(&self) -> u64 {
        let entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        entries.iter().map(|entry| (entry.head.len() + entry.body.len()) as u64).sum()
    }
}
