//! Refused requests, by the codes of S3.

/// Why a request is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    /// The HTTP status of the reply.
    pub status: u16,
    /// S3's name of the error.
    pub code: &'static str,
    pub message: String,
}

impl Refusal {
    pub fn new(status: u16, code: &'static str, message: impl Into<String>) -> Self {
        Self { status, code, message: message.into() }
    }

    pub fn no_such_key(key: &str) -> Self {
        Self::new(404, "NoSuchKey", format!("there is no object {key}"))
    }

    pub fn no_such_upload(id: &str) -> Self {
        Self::new(404, "NoSuchUpload", format!("there is no upload {id}; it may be complete or aborted"))
    }

    pub fn precondition() -> Self {
        Self::new(412, "PreconditionFailed", "a condition of the request does not hold")
    }

    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(400, "InvalidRequest", message)
    }
}
