//! Objects: read, write, copy, delete.

use std::ops::Range;

use serde::Serialize;

use super::headers::condition;
use super::xml;
use crate::bucket::{Attributes, Content, Object, Place, Refusal, State};
use crate::clock::TimeText;
use crate::http::{Request, Response};

/// The key of a request, which its kind says it has.
pub(super) fn key(request: &Request) -> Result<&str, Refusal> {
    request.key.as_deref().ok_or_else(|| Refusal::invalid("a key is missing"))
}

/// Adds the headers of an object that is read or was written. Clients of S3 do not look at the generation.
pub(super) fn describe(response: Response, object: &Object) -> Response {
    response.with("ETag", object.etag.clone()).with("x-goog-generation", object.generation.to_string())
}

pub(super) fn get(state: &State, request: &Request) -> Result<Response, Refusal> {
    let object = state.object(&request.bucket, key(request)?)?;
    if request.parameter("generation").is_some_and(|wanted| wanted != object.generation.to_string()) {
        return Err(Refusal::no_such_key(key(request)?));
    }
    condition(request)?.read(object)?;

    let len = object.content.len();
    let (range, mut response) = match request.head.header("range").and_then(|text| asked_range(text, len)) {
        None => (0..len, Response::new(200)),
        Some(range) if range.is_empty() => {
            return Err(Refusal::new(416, "InvalidRange", format!("the object has {len} bytes")));
        }
        Some(range) => {
            let of = format!("bytes {}-{}/{len}", range.start, range.end - 1);
            (range, Response::new(206).with("Content-Range", of))
        }
    };

    for (name, value) in &object.attributes.0 {
        response = response.with(name, value);
    }
    response = response.with("Last-Modified", object.modified.header()).with("Accept-Ranges", "bytes");
    response = describe(response, object);
    response.body = object.content.slice(range);
    Ok(response)
}

/// The bytes that `Range` asks for; empty if there are none. `None` for a header that is ignored: several ranges, or
/// no range (RFC 9110, 14.2).
fn asked_range(text: &str, len: u64) -> Option<Range<u64>> {
    let (from, to) = text.trim().strip_prefix("bytes=")?.split_once('-')?;
    match (from.parse::<u64>(), to.parse::<u64>()) {
        (Ok(from), Ok(to)) if from <= to => Some(from.min(len)..to.saturating_add(1).min(len)),
        (Ok(from), Err(_)) if to.is_empty() => Some(from.min(len)..len),
        (Err(_), Ok(last)) if from.is_empty() => Some(len - last.min(len)..len),
        _ => None,
    }
}

pub(super) fn put(state: &mut State, request: &Request) -> Result<Response, Refusal> {
    let sent = request.head.header("x-amz-content-sha256").unwrap_or_default();
    if sent.starts_with("STREAMING-") {
        return Err(Refusal::new(501, "NotImplemented", "bodies in signed chunks are not read"));
    }
    let content = Content::from(request.body.clone());
    let (etag, attributes) = (content.etag(), Attributes::of(request.head.headers()));
    let place = Place { bucket: &request.bucket, key: key(request)? };
    let object = state.put(place, content, etag, attributes, &condition(request)?)?;
    Ok(describe(Response::new(200), object))
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Copied {
    last_modified: String,
    #[serde(rename = "ETag")]
    etag: String,
}

/// The reply to a copy.
pub(super) fn copied(root: &str, etag: &str, modified: &impl TimeText) -> Response {
    Response::xml(200, &xml::text(root, &Copied { last_modified: modified.xml(), etag: etag.to_owned() }))
}

/// The object that a request copies.
pub(super) fn source(state: &State, request: &Request) -> Result<Object, Refusal> {
    let (bucket, key) = request.copy_source().ok_or_else(|| Refusal::invalid("no object to copy"))?;
    let key = key.ok_or_else(|| Refusal::invalid("the object to copy has no key"))?;
    state.object(&bucket, &key).cloned()
}

pub(super) fn copy(state: &mut State, request: &Request) -> Result<Response, Refusal> {
    let Object { content, etag, attributes, .. } = source(state, request)?;
    let place = Place { bucket: &request.bucket, key: key(request)? };
    let object = state.put(place, content, etag, attributes, &condition(request)?)?;
    Ok(describe(copied("CopyObjectResult", &object.etag, &object.modified), object))
}

pub(super) fn delete(state: &mut State, request: &Request) -> Result<Response, Refusal> {
    let (key, condition) = (key(request)?, condition(request)?);
    let objects = &mut state.bucket_mut(&request.bucket)?.objects;
    if condition.is_any() {
        condition.write(key, objects.get(key))?;
    }
    // S3 does not say whether there was one; Google does.
    if objects.remove(key).is_none() && request.is_google() {
        return Err(Refusal::no_such_key(key));
    }
    Ok(Response::new(204))
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct DeleteResult {
    #[serde(rename = "@xmlns")]
    xmlns: &'static str,
    deleted: Vec<xml::DeletedKey>,
}

pub(super) fn delete_all(state: &mut State, request: &Request) -> Result<Response, Refusal> {
    let (keys, quiet) = xml::deleted(&request.body)?;
    let objects = &mut state.bucket_mut(&request.bucket)?.objects;
    keys.iter().for_each(|key| drop(objects.remove(key)));
    let told = if quiet { Vec::new() } else { keys };
    let deleted = told.into_iter().map(|key| xml::DeletedKey { key }).collect();
    Ok(Response::xml(200, &xml::text("DeleteResult", &DeleteResult { xmlns: xml::NAMESPACE, deleted })))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges() {
        for (text, range) in [
            ("bytes=0-3", Some(0..4)),
            ("bytes=8-100", Some(8..10)),
            ("bytes=4-", Some(4..10)),
            ("bytes=-3", Some(7..10)),
            ("bytes=-30", Some(0..10)),
            ("bytes=10-", Some(10..10)),
            ("bytes=12-14", Some(10..10)),
            ("bytes=0-1,3-4", None),
            ("bytes=3-1", None),
            ("rows=0-1", None),
            ("bytes=-", None),
        ] {
            assert_eq!(asked_range(text, 10), range, "{text}");
        }
    }
}
