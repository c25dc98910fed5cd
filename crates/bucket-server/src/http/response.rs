//! Replies.

use bytes::Bytes;

/// A reply: status, headers and the pieces of its body.
#[derive(Debug, Default)]
pub(crate) struct Response {
    pub status: u16,
    headers: Vec<(String, String)>,
    /// Pieces of the body.
    pub body: Vec<Bytes>,
    /// Length of the body that a HEAD request does not get.
    unsent: Option<u64>,
}

impl Response {
    /// A reply without a body.
    pub fn new(status: u16) -> Self {
        Self { status, ..Self::default() }
    }

    /// A reply with XML.
    pub fn xml(status: u16, text: &str) -> Self {
        let body = format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n{text}");
        Self::new(status).with("Content-Type", "application/xml").bytes(body)
    }

    /// A reply with JSON.
    pub fn json(text: &serde_json::Value) -> Self {
        Self::new(200).with("Content-Type", "application/json").bytes(format!("{text}\n"))
    }

    /// The reply with one more header.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<String>) -> Self {
        self.headers.push((name.to_owned(), value.into()));
        self
    }

    /// The reply with this body, in one piece.
    #[must_use]
    pub fn bytes(mut self, body: impl Into<Bytes>) -> Self {
        self.body = vec![body.into()];
        self
    }

    /// Leaves out the body, of which only the length is sent.
    #[must_use]
    pub fn without_body(mut self) -> Self {
        self.unsent = Some(self.unsent.unwrap_or_else(|| self.len()));
        self.body.clear();
        self
    }

    /// Length of the body, bytes.
    pub fn len(&self) -> u64 {
        self.body.iter().map(|piece| piece.len() as u64).sum()
    }

    /// First line and headers.
    pub fn head(&self) -> String {
        let mut head = format!("HTTP/1.1 {} {}\r\n", self.status, reason(self.status));
        for (name, value) in &self.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        // RFC 9110, 8.6: 204 has none.
        if !matches!(self.status, 204 | 304) {
            head.push_str(&format!("Content-Length: {}\r\n", self.unsent.unwrap_or_else(|| self.len())));
        }
        head.push_str("\r\n");
        head
    }
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        204 => "No Content",
        206 => "Partial Content",
        304 => "Not Modified",
        400 => "Bad Request",
        403 => "Forbidden",
        404 => "Not Found",
        409 => "Conflict",
        411 => "Length Required",
        412 => "Precondition Failed",
        416 => "Range Not Satisfiable",
        500 => "Internal Server Error",
        501 => "Not Implemented",
        503 => "Service Unavailable",
        _ => "Status",
    }
}
