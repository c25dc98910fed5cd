//! Where something lies: the one reading of a place that an argument, a variable or a key names.
//!
//! What begins with `scheme:/` is a URL, everything else is a path of this machine: `10:00.csv` and `a:b` are paths. A URL
//! that is not understood is refused, because as a path it would make a directory called `s3:`.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::fmt;
use std::path::{Path, PathBuf};

use object_store::path::Path as Key;
use url::Url;

/// Schemes of buckets: Amazon S3, Google Cloud Storage, Azure Blob Storage.
const BUCKETS: [&str; 8] = ["s3", "s3a", "gs", "az", "adl", "azure", "abfs", "abfss"];
/// Those schemes that name their account behind an `@`.
const WITH_ACCOUNT: [&str; 2] = ["abfs", "abfss"];
/// What stands for the parts of a URL that may be secret.
const HIDDEN: &str = "***";

/// A place that an argument, a variable or a key names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Location {
    /// A path of this machine, absolute or relative to where it is used.
    Path(PathBuf),
    /// A bucket of an object store, with a key or prefix in it.
    Bucket(BucketUrl),
}

/// A bucket with a key or a prefix, such as `s3://bucket/prefix`: it can be opened as far as its spelling tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BucketUrl(String);

/// A place taken apart, whose key may be a pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Split<'a> {
    /// A path of this machine, or a pattern of paths.
    Path(&'a str),
    /// A bucket, and a key or pattern of keys in it.
    Bucket {
        /// Scheme and bucket as written, such as `s3://bucket`.
        base: &'a str,
        /// What follows the slash after the bucket; empty if nothing does.
        key: &'a str,
    },
}

/// Why a text names no place, with what to write instead.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{shown} {fault}")]
pub struct LocationError {
    /// The place without what may be secret in it.
    shown: String,
    fault: LocationFault,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
enum LocationFault {
    #[error("has one slash after its scheme: write {right}")]
    OneSlash { right: String },
    #[error("is a URL of a storage that is not supported: use a path, file://, s3://, gs:// or az://{as_path}")]
    Scheme { as_path: String },
    #[error("names no bucket: write {scheme}://BUCKET/PREFIX")]
    NoBucket { scheme: String },
    #[error("names a bucket and no file in it: write s3://BUCKET/KEY, or a pattern such as s3://BUCKET/in/*.csv")]
    NoKey,
    #[error("names another machine: write file:///PATH, or the path alone")]
    Machine,
    #[error(
        "holds credentials, which lists and messages would show: leave them to `storage` of the job file or of \
         tidetable.toml, or to the environment"
    )]
    Credentials,
    #[error("has a query or a fragment, which no place in a bucket has: leave out what follows its ? or #")]
    Query,
    #[error("is not a URL of a bucket: {reason}")]
    Key { reason: String },
    #[error("is not UTF-8, as URLs are")]
    NotText,
    #[error("is a URL, and {use_of} is on this machine: write a path")]
    NotHere { use_of: &'static str },
}

impl LocationError {
    /// The error for a bucket where a file in it, or a pattern of them, is wanted.
    pub fn without_key(written: &str) -> Self {
        Self { shown: redacted(written), fault: LocationFault::NoKey }
    }
}

impl Location {
    /// Reads a place.
    ///
    /// # Errors
    /// [`LocationError`] for what begins with `scheme:/` and is not a place that can be used.
    pub fn parse(written: &str) -> Result<Self, LocationError> {
        match Split::of(written)? {
            Split::Path(path) => Ok(Self::Path(PathBuf::from(path))),
            Split::Bucket { base, key } => match check_bucket(written, base, key) {
                Ok(()) => Ok(Self::Bucket(BucketUrl(written.to_owned()))),
                Err(fault) => Err(LocationError { shown: redacted(written), fault }),
            },
        }
    }

    /// As [`Self::parse`], for an argument, which may be a path that is not UTF-8.
    ///
    /// # Errors
    /// As [`Self::parse`].
    pub fn of(written: &OsStr) -> Result<Self, LocationError> {
        match written.to_str() {
            Some(text) => Self::parse(text),
            None => {
                let text = written.to_string_lossy();
                match scheme(&text) {
                    Some(_) => Err(LocationError { shown: redacted(&text), fault: LocationFault::NotText }),
                    None => Ok(Self::Path(PathBuf::from(written))),
                }
            }
        }
    }

    /// As [`Self::of`], for `use_of` that is possible on this machine only.
    ///
    /// # Errors
    /// As [`Self::of`], and for a bucket.
    pub fn path_of(written: &OsStr, use_of: &'static str) -> Result<PathBuf, LocationError> {
        match Self::of(written)? {
            Self::Path(path) => Ok(path),
            Self::Bucket(url) => Err(LocationError { shown: url.0, fault: LocationFault::NotHere { use_of } }),
        }
    }

    /// The path of this machine; `None` for a place in a bucket.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::Path(path) => Some(path),
            Self::Bucket(_) => None,
        }
    }

    /// Whether the place is an empty path: nothing was written for it.
    pub fn is_empty(&self) -> bool {
        self.path().is_some_and(|path| path.as_os_str().is_empty())
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path(path) => path.display().fmt(f),
            Self::Bucket(url) => f.write_str(&url.0),
        }
    }
}

impl BucketUrl {
    /// The URL as it was written, which holds no credentials.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The prefix in which an object lies, and its name there. `None` for a bucket without a key, and for what ends with a
    /// slash: a prefix is no object.
    pub fn object(&self) -> Option<(Self, &str)> {
        let (prefix, name) = self.0.rsplit_once('/').filter(|(_, name)| !name.is_empty())?;
        let is_bucket = prefix.ends_with('/');
        (!is_bucket).then(|| (Self(prefix.to_owned()), name))
    }

    /// Whether `other` is this place or lies below it.
    pub fn holds(&self, other: &Self) -> bool {
        let prefix = self.0.trim_end_matches('/');
        other.0.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }
}

impl<'a> Split<'a> {
    /// Takes a place apart, whose key may be a pattern: `?` and `*` have their meaning there.
    ///
    /// # Errors
    /// [`LocationError`] for what begins with `scheme:/` and names neither a bucket nor a path of this machine.
    pub fn of(written: &'a str) -> Result<Self, LocationError> {
        Self::take_apart(written).map_err(|fault| LocationError { shown: redacted(written), fault })
    }

    fn take_apart(written: &'a str) -> Result<Self, LocationFault> {
        let Some((scheme, rest)) = scheme(written) else { return Ok(Self::Path(written)) };
        let is_bucket = BUCKETS.iter().any(|known| scheme.eq_ignore_ascii_case(known));
        let is_file = scheme.eq_ignore_ascii_case("file");
        if !is_bucket && !is_file {
            let as_path = if rest.starts_with("//") { String::new() } else { format!("; ./{written} is a path") };
            return Err(LocationFault::Scheme { as_path });
        }
        let Some(rest) = rest.strip_prefix("//") else {
            let slashes = if is_file { "//" } else { "/" };
            return Err(LocationFault::OneSlash { right: redacted(&format!("{scheme}:{slashes}{rest}")) });
        };
        if is_file {
            let path = rest.strip_prefix("localhost").unwrap_or(rest);
            return if path.starts_with('/') { Ok(Self::Path(path)) } else { Err(LocationFault::Machine) };
        }

        let (bucket, key) = rest.split_once('/').unwrap_or((rest, ""));
        if bucket.is_empty() {
            return Err(LocationFault::NoBucket { scheme: scheme.to_owned() });
        }
        let has_account = WITH_ACCOUNT.iter().any(|known| scheme.eq_ignore_ascii_case(known));
        if bucket.split_once('@').is_some_and(|(user, _)| !has_account || user.contains(':')) {
            return Err(LocationFault::Credentials);
        }
        let base = &written[..scheme.len() + "://".len() + bucket.len()];
        Ok(Self::Bucket { base, key })
    }
}

/// Checks what a bucket's URL that was taken apart must not have.
fn check_bucket(written: &str, base: &str, key: &str) -> Result<(), LocationFault> {
    if key.contains(['?', '#']) {
        return Err(LocationFault::Query);
    }
    let key = key.strip_suffix('/').unwrap_or(key);
    if key.split('/').any(|name| matches!(name, "." | "..")) {
        return Err(LocationFault::Key { reason: "its path has a name `.` or `..`".to_owned() });
    }
    if !key.is_empty() && key.split('/').any(str::is_empty) {
        return Err(LocationFault::Key { reason: "its path has an empty name".to_owned() });
    }

    let url = Url::parse(written).map_err(|error| LocationFault::Key { reason: error.to_string() })?;
    if url.host_str().is_none_or(str::is_empty) {
        let (scheme, _) = base.split_once(':').unwrap_or_default();
        return Err(LocationFault::NoBucket { scheme: scheme.to_owned() });
    }
    Key::from_url_path(url.path()).map(drop).map_err(|error| LocationFault::Key { reason: error.to_string() })
}

/// Whether a place is written as a URL, usable or not.
pub fn is_url(written: &str) -> bool {
    scheme(written).is_some()
}

/// The scheme of what begins with `scheme:/`, and what follows its colon.
fn scheme(written: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = written.split_once(':')?;
    let is_scheme = scheme.starts_with(|first: char| first.is_ascii_alphabetic())
        && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.'));
    (is_scheme && rest.starts_with('/')).then_some((scheme, rest))
}

/// A URL for messages: without the user and password, the query and the fragment it may have.
pub fn redacted(url: &str) -> String {
    let Some((scheme, rest)) = scheme(url) else { return url.to_owned() };
    let inside = rest.trim_start_matches('/');
    let slashes = &rest[..rest.len() - inside.len()];
    let (inside, query) = match inside.find(['?', '#']) {
        Some(at) => (&inside[..at], &inside[at..=at]),
        None => (inside, ""),
    };
    let (authority, path) = match inside.find('/') {
        Some(at) => inside.split_at(at),
        None => (inside, ""),
    };
    let is_account = WITH_ACCOUNT.iter().any(|known| scheme.eq_ignore_ascii_case(known));
    let authority = match authority.rsplit_once('@') {
        Some((user, host)) if !is_account || user.contains(':') => format!("{HIDDEN}@{host}"),
        _ => authority.to_owned(),
    };
    let hidden = if query.is_empty() { "" } else { HIDDEN };
    format!("{scheme}:{slashes}{authority}{path}{query}{hidden}")
}

/// A text that may quote what a person gave, with `***` in place of the user and password of each URL in it.
pub fn without_passwords(text: &str) -> Cow<'_, str> {
    let mut shown = Cow::Borrowed("");
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("://") {
        let end = after.find(|c: char| c.is_whitespace() || matches!(c, '/' | '"' | '\'' | '`' | '?' | '#'));
        let authority = end.map_or(after, |end| &after[..end]);
        shown += before;
        shown += "://";
        rest = after;

        let user = authority.rsplit_once('@').map(|(user, _)| user).filter(|user| user.contains(':'));
        if let Some(user) = user {
            shown += HIDDEN;
            rest = after.get(user.len()..).unwrap_or_default();
        }
    }
    shown += rest;
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bucket(written: &str) -> BucketUrl {
        match Location::parse(written) {
            Ok(Location::Bucket(url)) => url,
            other => panic!("{written}: {other:?}"),
        }
    }

    #[test]
    fn passwords_in_a_text_are_hidden() {
        let text = "no input https://u:s3cret@h/x?y, nor \"s3://b/c@d:e\" and a://b:c@d";
        let shown = "no input https://***@h/x?y, nor \"s3://b/c@d:e\" and a://***@d";
        assert_eq!(without_passwords(text), shown);
        for text in ["", "abfss://container@account/x", "12:30 a@b ://", "https://host:80/a@b"] {
            assert_eq!(without_passwords(text), text);
        }
    }

    #[test]
    fn what_begins_with_a_scheme_and_a_slash_is_a_url() {
        for path in ["10:00.csv", "C", "C:x", "a:b/c", "./s3:/x", "/s3:/x", "1:/x", "", "-", "in/s3://x", "é:/x"] {
            assert_eq!(Location::parse(path), Ok(Location::Path(path.into())), "{path}");
        }
        for (url, path) in [("file:///a/b", "/a/b"), ("file://localhost/a", "/a"), ("FILE:///a%20b", "/a%20b")] {
            assert_eq!(Location::parse(url), Ok(Location::Path(path.into())), "{url}");
        }
        for url in [
            "s3://b",
            "s3://b/",
            "s3a://b/p/",
            "S3://b/p",
            "gs://b/p/q",
            "az://c/p",
            "abfss://c@account.dfs.core.windows.net/p",
        ] {
            assert_eq!(bucket(url).as_str(), url);
        }
    }

    #[test]
    fn a_url_that_cannot_be_used_is_refused_with_what_to_write() {
        for (url, says) in [
            ("s3:/x", "write s3://x"),
            ("gs:/b/p", "write gs://b/p"),
            ("file:/x", "write file:///x"),
            ("s3:///x", "names no bucket: write s3://BUCKET/PREFIX"),
            ("s3://", "names no bucket"),
            ("http://h/x", "use a path, file://, s3://, gs:// or az://"),
            ("C:/x", "./C:/x is a path"),
            ("foo.bar+1:/x", "not supported"),
            ("file://host/x", "another machine"),
            ("file://x", "another machine"),
            ("s3://key:hush@b/p", "holds credentials"),
            ("s3://user@b/p", "holds credentials"),
            ("abfss://c:hush@a.dfs.core.windows.net/p", "holds credentials"),
            ("s3://b/p?sig=hush", "leave out what follows its ? or #"),
            ("s3://b/p#hush", "leave out what follows its ? or #"),
            ("s3://b/a/../c", "`.` or `..`"),
            ("s3://b/a//c", "an empty name"),
            ("s3://b b/c", "is not a URL of a bucket"),
        ] {
            let error = Location::parse(url).unwrap_err().to_string();
            assert!(error.contains(says) && !error.contains("hush"), "{url}: {error}");
        }
    }

    #[test]
    fn a_pattern_keeps_its_key() {
        let parts = |base, key| Ok(Split::Bucket { base, key });
        assert_eq!(Split::of("s3://b/in/?/{day:%F}.csv"), parts("s3://b", "in/?/{day:%F}.csv"));
        assert_eq!(Split::of("gs://b"), parts("gs://b", ""));
        assert_eq!(Split::of("in/*.csv"), Ok(Split::Path("in/*.csv")));
        assert_eq!(Split::of("file:///a/*.csv"), Ok(Split::Path("/a/*.csv")));
        assert!(Split::of("s3:/b/*.csv").is_err());
    }

    #[test]
    fn an_object_lies_in_a_prefix() {
        let object = |url| bucket(url).object().map(|(prefix, name)| (prefix.0, name.to_owned()));
        let some = |prefix: &str, name: &str| Some((prefix.to_owned(), name.to_owned()));
        assert_eq!(object("s3://b/x.csv"), some("s3://b", "x.csv"));
        assert_eq!(object("s3://b/a/b/x.csv"), some("s3://b/a/b", "x.csv"));
        assert_eq!((object("s3://b"), object("s3://b/"), object("s3://b/a/")), (None, None, None));
        assert!(bucket("s3://b/a").holds(&bucket("s3://b/a/")) && bucket("s3://b").holds(&bucket("s3://b/a")));
        assert!(!bucket("s3://b/a").holds(&bucket("s3://b/ab")) && !bucket("s3://b/a").holds(&bucket("s3://b")));
    }

    #[test]
    fn a_use_of_this_machine_takes_no_bucket() {
        let of = |written: &str| Location::path_of(OsStr::new(written), "a file of SQL");
        assert_eq!(of("x.sql"), Ok("x.sql".into()));
        let error = of("s3://b/x.sql").unwrap_err().to_string();
        assert_eq!(error, "s3://b/x.sql is a URL, and a file of SQL is on this machine: write a path");
    }

    #[cfg(unix)]
    #[test]
    fn a_path_need_not_be_text() {
        use std::os::unix::ffi::OsStrExt;

        let path = OsStr::from_bytes(b"a\xff");
        assert_eq!(Location::of(path), Ok(Location::Path(path.into())));
        assert!(Location::of(OsStr::from_bytes(b"s3://b/\xff")).is_err());
    }
}
