//! Requests.

use std::io;

use bytes::Bytes;
use percent_encoding::percent_decode_str;
use url::form_urlencoded;

/// Most headers of a request.
const HEADERS: usize = 100;

/// Methods that the server knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Method {
    Get,
    Head,
    Put,
    Post,
    Delete,
    Other,
}

/// First line and headers of a request.
#[derive(Debug)]
pub(crate) struct Head {
    pub method: Method,
    /// Path and query as sent.
    pub target: String,
    /// Names in lower case.
    headers: Vec<(String, String)>,
    /// First line and headers as they were received.
    pub bytes: Bytes,
}

impl Head {
    /// Parses the start of `bytes`; `None` if more are needed.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidData`] if it is not HTTP/1.1.
    pub fn parse(bytes: &[u8]) -> io::Result<Option<Self>> {
        let mut headers = [httparse::EMPTY_HEADER; HEADERS];
        let mut parsed = httparse::Request::new(&mut headers);
        let status = parsed.parse(bytes).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        let httparse::Status::Complete(len) = status else { return Ok(None) };
        let method = match parsed.method.unwrap_or_default() {
            "GET" => Method::Get,
            "HEAD" => Method::Head,
            "PUT" => Method::Put,
            "POST" => Method::Post,
            "DELETE" => Method::Delete,
            _ => Method::Other,
        };
        let headers = parsed
            .headers
            .iter()
            .map(|header| (header.name.to_ascii_lowercase(), String::from_utf8_lossy(header.value).into_owned()));
        let headers = headers.collect();
        let target = parsed.path.unwrap_or_default().to_owned();
        Ok(Some(Self { method, target, headers, bytes: Bytes::copy_from_slice(&bytes[..len]) }))
    }

    /// A header by its name in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// All headers, names in lower case.
    pub fn headers(&self) -> &[(String, String)] {
        &self.headers
    }

    /// Whether a header has this value, in any case.
    pub fn says(&self, name: &str, value: &str) -> bool {
        self.header(name).is_some_and(|found| found.eq_ignore_ascii_case(value))
    }
}

/// A request about a bucket, or an object in it.
#[derive(Debug)]
pub(crate) struct Request {
    pub head: Head,
    pub method: Method,
    /// Name of the bucket, the first part of the path; empty if there is none.
    pub bucket: String,
    /// The rest of the path, decoded.
    pub key: Option<String>,
    query: Vec<(String, String)>,
    pub body: Bytes,
}

impl Request {
    /// The request of `head`, its body still empty.
    pub fn new(head: Head) -> Self {
        let (path, query) = head.target.split_once('?').unwrap_or((&head.target, ""));
        let (bucket, key) = place(path.trim_start_matches('/'));
        let query = form_urlencoded::parse(query.as_bytes()).into_owned().collect();
        Self { method: head.method, bucket, key, query, body: Bytes::new(), head }
    }

    /// A parameter of the query; one without `=` has an empty value.
    pub fn parameter(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Bucket and key of the object to copy.
    pub fn copy_source(&self) -> Option<(String, Option<String>)> {
        let source = self.head.header("x-amz-copy-source").or_else(|| self.head.header("x-goog-copy-source"))?;
        Some(place(source.trim_start_matches('/')))
    }

    /// Whether it is a request of Google's API: its clients have tokens, those of S3 sign.
    pub fn is_google(&self) -> bool {
        self.head.header("authorization").is_some_and(|value| value.starts_with("Bearer"))
    }
}

/// The bucket and the key of a path `bucket/key`, decoded; `None` for a path without a key.
fn place(path: &str) -> (String, Option<String>) {
    match path.split_once('/') {
        Some((bucket, "")) => (decode(bucket), None),
        Some((bucket, key)) => (decode(bucket), Some(decode(key))),
        None => (decode(path), None),
    }
}

fn decode(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(text: &str) -> Request {
        Request::new(Head::parse(text.as_bytes()).unwrap().unwrap())
    }

    #[test]
    fn bucket_key_query_and_headers_are_read() {
        let put = request("PUT /b/a%2Bb/c%20d?partNumber=2&uploadId=u%2F1 HTTP/1.1\r\nIf-None-Match: *\r\n\r\nrest");
        assert_eq!((put.bucket.as_str(), put.key.as_deref()), ("b", Some("a+b/c d")));
        assert_eq!((put.parameter("uploadId"), put.parameter("none")), (Some("u/1"), None));
        assert_eq!(put.head.header("if-none-match"), Some("*"));
        assert!(put.head.bytes.ends_with(b"\r\n\r\n"));
        let list = request("GET /b/?list-type=2&delimiter=%2F HTTP/1.1\r\n\r\n");
        assert_eq!((list.key.as_deref(), list.parameter("delimiter")), (None, Some("/")));
        assert_eq!(request("POST /b?delete HTTP/1.1\r\n\r\n").parameter("delete"), Some(""));
    }

    #[test]
    fn half_a_head_needs_more_and_nonsense_is_an_error() {
        assert!(Head::parse(b"PUT /b HTTP/1.1\r\nHost: x\r\n").unwrap().is_none());
        assert!(Head::parse(b"\x16\x03\x01nonsense\r\n\r\n").is_err());
    }
}
