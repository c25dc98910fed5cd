//! Uploads in parts: begin, parts, complete, abort.

use serde::Serialize;

use super::headers::condition;
use super::object::{copied, describe, key, source};
use super::xml;
use crate::bucket::{Attributes, Content, Place, Refusal, State};
use crate::http::{Request, Response};

/// The id that a request names.
fn id(request: &Request) -> &str {
    request.parameter("uploadId").unwrap_or_default()
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Begun<'a> {
    #[serde(rename = "@xmlns")]
    xmlns: &'static str,
    bucket: &'a str,
    key: &'a str,
    upload_id: String,
}

pub(super) fn create(state: &mut State, request: &Request, stale: bool) -> Result<Response, Refusal> {
    let key = key(request)?;
    let upload_id =
        state.begin(Place { bucket: &request.bucket, key }, Attributes::of(request.head.headers()), stale)?;
    let begun = Begun { xmlns: xml::NAMESPACE, bucket: &request.bucket, key, upload_id };
    Ok(Response::xml(200, &xml::text("InitiateMultipartUploadResult", &begun)))
}

pub(super) fn part(state: &mut State, request: &Request) -> Result<Response, Refusal> {
    let number = request.parameter("partNumber").and_then(|number| number.parse().ok());
    let number = number.ok_or_else(|| Refusal::new(400, "InvalidArgument", "partNumber is no number"))?;
    let content = match request.copy_source() {
        Some(_) => source(state, request)?.content,
        None => Content::from(request.body.clone()),
    };
    let (place, now) = ((key(request)?.to_owned(), id(request).to_owned()), state.now());
    let upload = state.bucket_mut(&request.bucket)?.uploads.get_mut(&place);
    let etag = upload.ok_or_else(|| Refusal::no_such_upload(id(request)))?.put(number, content)?;
    let response = match request.copy_source() {
        Some(_) => copied("CopyPartResult", &etag, &now),
        None => Response::new(200),
    };
    Ok(response.with("ETag", etag))
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Completed<'a> {
    #[serde(rename = "@xmlns")]
    xmlns: &'static str,
    location: &'a str,
    bucket: &'a str,
    key: &'a str,
    #[serde(rename = "ETag")]
    etag: &'a str,
}

pub(super) fn complete(state: &mut State, request: &Request, least: u64) -> Result<Response, Refusal> {
    let (key, named) = (key(request)?, xml::parts(&request.body)?);
    let place = Place { bucket: &request.bucket, key };
    let object = state.complete(place, id(request), &named, least, &condition(request)?)?;
    let location = format!("/{}/{key}", request.bucket);
    let (xmlns, bucket, etag) = (xml::NAMESPACE, request.bucket.as_str(), object.etag.as_str());
    let completed = Completed { xmlns, location: &location, bucket, key, etag };
    Ok(describe(Response::xml(200, &xml::text("CompleteMultipartUploadResult", &completed)), object))
}

pub(super) fn abort(state: &mut State, request: &Request) -> Result<Response, Refusal> {
    let place = (key(request)?.to_owned(), id(request).to_owned());
    let removed = state.bucket_mut(&request.bucket)?.uploads.remove(&place);
    removed.map(|_| Response::new(204)).ok_or_else(|| Refusal::no_such_upload(id(request)))
}
