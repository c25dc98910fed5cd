//! An object.

use chrono::{DateTime, Utc};

use super::content::Content;

/// Headers that an object keeps, names in lower case: of its content, and of its owner (`x-amz-meta-`, `x-goog-meta-`).
#[derive(Debug, Clone, Default)]
pub(crate) struct Attributes(pub Vec<(String, String)>);

const KEPT: [&str; 5] =
    ["content-type", "cache-control", "content-disposition", "content-encoding", "content-language"];

impl Attributes {
    /// Those among the headers of a request.
    pub fn of(headers: &[(String, String)]) -> Self {
        let kept =
            |name: &str| KEPT.contains(&name) || name.starts_with("x-amz-meta-") || name.starts_with("x-goog-meta-");
        Self(headers.iter().filter(|(name, _)| kept(name)).cloned().collect())
    }
}

/// An object of a bucket.
#[derive(Debug, Clone)]
pub(crate) struct Object {
    pub content: Content,
    /// As headers have it, in quotes.
    pub etag: String,
    pub modified: DateTime<Utc>,
    /// Ascends with each write of any object, as Google's does.
    pub generation: u64,
    pub attributes: Attributes,
}
