//! Kinds of requests.

use std::fmt;

use crate::http::{Method, Request};

/// What a request asks for, by the names of S3.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Kind {
    GetObject,
    HeadObject,
    PutObject,
    CopyObject,
    DeleteObject,
    DeleteObjects,
    ListObjects,
    CreateUpload,
    UploadPart,
    CompleteUpload,
    AbortUpload,
    ListUploads,
    CreateBucket,
    HeadBucket,
    /// Nothing that this server knows.
    Other,
}

impl Kind {
    /// The kind of a request.
    pub(crate) fn of(request: &Request) -> Self {
        let [begins, has_id, deletes] = ["uploads", "uploadId", "delete"].map(|name| request.parameter(name).is_some());
        match (request.method, request.key.is_some()) {
            (Method::Get, true) if !has_id => Self::GetObject,
            (Method::Head, true) => Self::HeadObject,
            (Method::Put, true) if has_id => Self::UploadPart,
            (Method::Put, true) if request.copy_source().is_some() => Self::CopyObject,
            (Method::Put, true) => Self::PutObject,
            (Method::Delete, true) if has_id => Self::AbortUpload,
            (Method::Delete, true) => Self::DeleteObject,
            (Method::Post, true) if begins => Self::CreateUpload,
            (Method::Post, true) if has_id => Self::CompleteUpload,
            (Method::Post, false) if deletes => Self::DeleteObjects,
            (Method::Get, false) if begins => Self::ListUploads,
            (Method::Get, false) if request.parameter("list-type") == Some("2") => Self::ListObjects,
            (Method::Put, false) if !request.bucket.is_empty() => Self::CreateBucket,
            (Method::Head, false) if !request.bucket.is_empty() => Self::HeadBucket,
            _ => Self::Other,
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}
