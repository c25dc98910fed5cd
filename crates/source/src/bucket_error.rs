//! Requests that a bucket did not serve, in the words of an operator.
//!
//! `object_store` reports a missing bucket, a refused key and a server that is down in words of its own, with the whole reply and
//! the URL of the request, and a list that was denied as a general failure. [`BucketError`] names the bucket, the endpoint, the
//! reason and what to do.

use std::error::Error as StdError;
use std::fmt;
use std::io;
use std::sync::Arc;

use object_store::Error;
use object_store::client::{HttpError, HttpErrorKind};
use url::Url;

use crate::location::Split;

/// The address of the service that gives credentials to machines of Amazon and Google; asked where none are set.
const METADATA: [&str; 2] = ["169.254.169.254", "metadata.google.internal"];

/// The setting of the address of a service.
const SETTING: &str = "`endpoint` of `storage`";

/// Where a bucket is and which credential opens it, for messages. Holds names of settings and no secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BucketAddress {
    /// The URL of the bucket, with the prefix that is used.
    pub url: String,
    /// The address of the service; `None` for that of the provider.
    pub endpoint: Option<Endpoint>,
    /// The credential that signs requests, by the name of its setting.
    pub credential: Credential,
}

/// The address of a service that was set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// Its URL, without what may be secret in it.
    pub url: String,
    /// The setting or variable that has it, with its place.
    pub set_by: String,
}

/// The credential of requests, by the name of its setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Credential {
    /// A key that a setting or variable names: its name and place.
    Named(String),
    /// Requests are not signed, as a public bucket allows: `anonymous` is set.
    Anonymous,
    /// Nothing is set: the credential is that of the machine, if it has one.
    OfMachine,
}

impl fmt::Display for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Named(name) => write!(f, "the key of {name}"),
            Self::Anonymous => f.write_str("a request without a key (`anonymous` is set)"),
            Self::OfMachine => f.write_str("the credentials of this machine (no key is set)"),
        }
    }
}

impl BucketAddress {
    /// The address of a place whose endpoint and credential are not known.
    pub fn of_url(url: &str) -> Self {
        Self { url: url.to_owned(), endpoint: None, credential: Credential::OfMachine }
    }

    fn bucket(&self) -> &str {
        match Split::of(&self.url) {
            Ok(Split::Bucket { base, .. }) => base.split_once("://").map_or(base, |(_, bucket)| bucket),
            _ => &self.url,
        }
    }

    fn service(&self) -> &str {
        if let Some(endpoint) = &self.endpoint {
            return &endpoint.url;
        }
        match self.url.split_once(':').map_or("", |(scheme, _)| scheme) {
            "s3" | "s3a" => "Amazon S3",
            "gs" => "Google Cloud Storage",
            _ => "Azure Blob Storage",
        }
    }

    /// What has the address of the service, for advice.
    fn setting(&self) -> String {
        let set_by = self.endpoint.as_ref().map(|endpoint| endpoint.set_by.clone());
        set_by.unwrap_or_else(|| SETTING.to_owned())
    }
}

/// Why a bucket did not serve a request.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum BucketFault {
    /// The bucket does not exist, and is never made by a run.
    NoBucket,
    /// The credential may not do this, or is not accepted.
    Denied {
        /// What is wrong with the credential, where the server says so.
        reason: Option<&'static str>,
    },
    /// Neither settings nor the machine have a credential.
    NoCredentials,
    /// No server listens at the address of the endpoint.
    NothingListens,
    /// The host name of the endpoint cannot be resolved.
    UnknownHost,
    /// The bucket is in another region than the one set.
    OtherRegion,
    /// An endpoint without TLS that is not allowed.
    PlainHttp,
    /// The server could not be reached, or did not answer in time.
    Unreachable,
    /// The server failed, or is overloaded: the same request may succeed later.
    ServerFailed {
        /// Status and code of the server's last reply, such as `503 SlowDown`.
        reply: String,
    },
    /// Anything else, told in the words of `object_store`.
    Other,
}

impl BucketFault {
    /// Finds the cause of an error of `object_store`, whose type for replies is private: status and code are taken from its text.
    pub fn of(error: &Error) -> Self {
        let text = error.to_string();
        let code = between(&text, "<Code>", "</Code>").unwrap_or_default();
        let status = between(&text, "status code: ", " ").and_then(|status| status.trim_end_matches(':').parse().ok());
        let causes = Causes::of(error);

        match (code, status.unwrap_or(0_u16)) {
            _ if METADATA.iter().any(|host| text.contains(host)) => Self::NoCredentials,
            ("NoSuchBucket" | "ContainerNotFound", _) => Self::NoBucket,
            (_, 404) if text.contains("The specified bucket does not exist") => Self::NoBucket,
            ("PermanentRedirect" | "AuthorizationHeaderMalformed", _) => Self::OtherRegion,
            _ if text.contains("Received redirect without LOCATION") => Self::OtherRegion,
            ("ExpiredToken" | "TokenRefreshRequired", _) => Self::Denied { reason: Some("the session has expired") },
            (code, 401 | 403) => Self::Denied { reason: reason_of(code) },
            _ if text.contains("URL scheme is not allowed") || causes.text.contains("URL scheme is not allowed") => {
                Self::PlainHttp
            }
            (code, status @ (429 | 500..)) => {
                Self::ServerFailed { reply: format!("{status} {code}").trim_end().to_owned() }
            }
            _ if matches!(error, Error::PermissionDenied { .. } | Error::Unauthenticated { .. }) => {
                Self::Denied { reason: None }
            }
            _ if causes.is_refused => Self::NothingListens,
            _ if causes.text.contains("dns error") => Self::UnknownHost,
            _ if causes.is_of_connection => Self::Unreachable,
            _ => Self::Other,
        }
    }

    /// Whether the same request may succeed later without a change of settings or rights; `None` if it is not known.
    pub fn is_transient(&self) -> Option<bool> {
        match self {
            Self::NoBucket | Self::Denied { .. } | Self::NoCredentials | Self::OtherRegion | Self::PlainHttp => {
                Some(false)
            }
            Self::NothingListens | Self::UnknownHost | Self::Unreachable | Self::ServerFailed { .. } => Some(true),
            Self::Other => None,
        }
    }

    /// The cause in words, with what to do; `None` if it is not known.
    fn describe(&self, address: &BucketAddress) -> Option<String> {
        let (bucket, service, setting) = (address.bucket(), address.service(), address.setting());

        let text = match self {
            Self::NoBucket => {
                format!("there is no bucket {bucket} at {service}: create it there, or correct the URL")
            }
            Self::Denied { reason } => {
                let reason = reason.map(|reason| format!(" ({reason})")).unwrap_or_default();
                format!(
                    "access to bucket {bucket} denied: {service} refused {}{reason}. Use another key, or ask for the right to list, \
                     read, write and delete there",
                    address.credential
                )
            }
            Self::NoCredentials => format!(
                "no key for bucket {bucket} at {service}: neither `storage` nor the environment has one, nor this machine \
                 credentials of its own. Set one, or `anonymous = true` for a public bucket"
            ),
            Self::NothingListens => {
                format!(
                    "nothing listens at {service}, where bucket {bucket} should be: start the server, or correct {setting}"
                )
            }
            Self::UnknownHost => format!(
                "the host of {service}, where bucket {bucket} should be, is not known: check the network, or correct {setting}"
            ),
            Self::OtherRegion => format!(
                "bucket {bucket} at {service} is in another region: set `region` of `storage` (or AWS_REGION) to that of the \
                 bucket"
            ),
            Self::PlainHttp => format!(
                "the endpoint {service} of bucket {bucket} has no TLS, which is not allowed: write https://, or `allow_http = \
                 true` in `storage`"
            ),
            Self::Unreachable => {
                format!(
                    "{service}, where bucket {bucket} should be, does not answer: check the network and {setting}, and try again"
                )
            }
            Self::ServerFailed { reply } => {
                format!("{service} failed to serve bucket {bucket} ({reply}): try again later")
            }
            Self::Other => return None,
        };
        Some(text)
    }
}

/// The cause of an error of `object_store` whose bucket is known by the URL in the error alone; `None` without such a URL, as for a
/// file of this machine, and for causes that are not known.
pub fn describe_request(error: &Error) -> Option<String> {
    let text = error.to_string();
    let requested = text.split(' ').filter(|word| word.starts_with("http")).find_map(|word| Url::parse(word).ok())?;
    let bucket = requested.path().trim_start_matches('/').split('/').next().unwrap_or_default();
    let url = requested.origin().ascii_serialization();
    let address = BucketAddress {
        endpoint: Some(Endpoint { url, set_by: SETTING.to_owned() }),
        ..BucketAddress::of_url(&format!("s3://{bucket}"))
    };
    BucketFault::of(error).describe(&address)
}

/// What the codes of S3 say of a refused key.
fn reason_of(code: &str) -> Option<&'static str> {
    match code {
        "InvalidAccessKeyId" => Some("it does not know that key"),
        "SignatureDoesNotMatch" => Some("the secret does not belong to the key"),
        "InvalidToken" => Some("the session token is not valid"),
        "RequestTimeTooSkewed" => Some("the clock of this machine is wrong"),
        _ => None,
    }
}

/// What the sources of an error say.
#[derive(Debug, Default)]
struct Causes {
    text: String,
    is_refused: bool,
    is_of_connection: bool,
}

impl Causes {
    fn of(error: &Error) -> Self {
        let mut causes = Self::default();
        let mut next = error.source();
        while let Some(cause) = next {
            causes.text.push_str(&cause.to_string());
            causes.text.push('\n');
            if let Some(io) = cause.downcast_ref::<io::Error>() {
                causes.is_refused |= io.kind() == io::ErrorKind::ConnectionRefused;
            }
            if let Some(http) = cause.downcast_ref::<HttpError>() {
                causes.is_of_connection |= !matches!(http.kind(), HttpErrorKind::Decode | HttpErrorKind::Unknown);
            }
            next = cause.source();
        }
        causes
    }
}

fn between<'a>(text: &'a str, before: &str, after: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(before)?;
    rest.split_once(after).map(|(found, _)| found)
}

/// Whether the reply to a request for an object says that the object does not exist. A missing bucket is another matter: whoever
/// took its objects for missing would take it for an empty store.
pub fn is_missing_object(error: &Error) -> bool {
    matches!(error, Error::NotFound { .. }) && BucketFault::of(error) != BucketFault::NoBucket
}

/// A request that a bucket did not serve.
#[derive(Debug)]
pub struct BucketError {
    address: Arc<BucketAddress>,
    fault: BucketFault,
    /// Whether no request of this process has changed the bucket before.
    is_unchanged: bool,
    source: Error,
}

impl BucketError {
    /// The error of a request to the bucket at `address`.
    pub fn new(address: &Arc<BucketAddress>, source: Error) -> Self {
        Self { address: Arc::clone(address), fault: BucketFault::of(&source), is_unchanged: false, source }
    }

    /// The same, which says that nothing was changed in the bucket if `is_unchanged`.
    #[must_use]
    pub fn unchanged(self, is_unchanged: bool) -> Self {
        Self { is_unchanged, ..self }
    }

    /// Why the bucket did not serve the request, as far as its reply tells.
    pub fn fault(&self) -> &BucketFault {
        &self.fault
    }

    /// The URL of the bucket, with its prefix.
    pub fn url(&self) -> &str {
        &self.address.url
    }
}

impl fmt::Display for BucketError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.fault.describe(&self.address) {
            Some(text) if self.is_unchanged => write!(f, "{text}; nothing was changed there"),
            Some(text) => f.write_str(&text),
            None => write!(f, "{}", self.source),
        }
    }
}

impl StdError for BucketError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        Some(&self.source)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(status: &str, code: &str) -> Error {
        let text = format!(
            "Error performing list request: Error performing GET http://127.0.0.1:9000/b?prefix=p in 2ms - Server returned non-2xx \
             status code: {status}: <Error><Code>{code}</Code></Error>"
        );
        Error::Generic { store: "S3", source: text.into() }
    }

    fn address() -> Arc<BucketAddress> {
        Arc::new(BucketAddress {
            url: "s3://b/p".to_owned(),
            endpoint: Some(Endpoint { url: "http://h:1".to_owned(), set_by: "AWS_ENDPOINT".to_owned() }),
            credential: Credential::Named("`access_key_id` of `storage`".to_owned()),
        })
    }

    #[test]
    fn replies_are_told_in_plain_words() {
        for (status, code, says, is_transient) in [
            ("404 Not Found", "NoSuchBucket", "there is no bucket b at http://h:1", false),
            (
                "403 Forbidden",
                "AccessDenied",
                "access to bucket b denied: http://h:1 refused the key of `access_key_id` of `storage`",
                false,
            ),
            ("403 Forbidden", "SignatureDoesNotMatch", "(the secret does not belong to the key)", false),
            ("400 Bad Request", "ExpiredToken", "(the session has expired)", false),
            ("400 Bad Request", "AuthorizationHeaderMalformed", "set `region`", false),
            ("503 Service Unavailable", "SlowDown", "failed to serve bucket b (503 SlowDown)", true),
        ] {
            let error = BucketError::new(&address(), reply(status, code)).unchanged(true);
            let text = error.to_string();
            assert!(text.contains(says) && text.ends_with("; nothing was changed there"), "{text}");
            assert!(!text.contains("<Code>") && !text.contains("Generic"), "{text}");
            assert_eq!(error.fault().is_transient(), Some(is_transient), "{text}");
        }
        // A failure without a known cause keeps its words.
        let other = BucketError::new(&address(), reply("418 Teapot", "Teapot"));
        assert!(other.to_string().contains("418"), "{other}");
    }

    #[test]
    fn an_object_of_a_missing_bucket_is_not_missing() {
        let answer = |code: &str| {
            let source =
                format!("Server returned non-2xx status code: 404 Not Found: <Error><Code>{code}</Code></Error>");
            Error::NotFound { path: "x".to_owned(), source: source.into() }
        };
        assert!(is_missing_object(&answer("NoSuchKey")));
        assert!(!is_missing_object(&answer("NoSuchBucket")));
    }

    #[test]
    fn the_error_alone_tells_bucket_and_endpoint() {
        let text = describe_request(&reply("404 Not Found", "NoSuchBucket")).unwrap();
        assert!(text.contains("no bucket b at http://127.0.0.1:9000:"), "{text}");
        // A file of this machine is in no bucket.
        let local = Error::PermissionDenied { path: "x".to_owned(), source: "x".into() };
        assert_eq!(describe_request(&local), None);
    }
}
