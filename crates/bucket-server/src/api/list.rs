//! Lists of objects and of uploads.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Serialize;

use super::xml;
use crate::bucket::{ListQuery, Refusal, State};
use crate::clock::TimeText;
use crate::http::{Request, Response};

/// What `encoding-type=url` leaves as it is.
const PLAIN: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~').remove(b'/');

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Objects<'a> {
    #[serde(rename = "@xmlns")]
    xmlns: &'static str,
    name: &'a str,
    prefix: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    delimiter: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    encoding_type: Option<&'a str>,
    max_keys: usize,
    key_count: usize,
    is_truncated: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_continuation_token: Option<String>,
    contents: Vec<Contents>,
    common_prefixes: Vec<CommonPrefix>,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Contents {
    key: String,
    last_modified: String,
    #[serde(rename = "ETag")]
    etag: String,
    size: u64,
    storage_class: &'static str,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct CommonPrefix {
    prefix: String,
}

/// The entries of one page: those that the request wants, and at most `page`.
fn most(request: &Request, name: &str, page: usize) -> Result<usize, Refusal> {
    let wanted = request.parameter(name).map(str::parse).transpose();
    let wanted = wanted.map_err(|_| Refusal::invalid(format!("{name} is no number")))?;
    Ok(wanted.unwrap_or(1000).min(page))
}

/// `ListObjectsV2`. A continuation token is the last entry before it, in hexadecimal: clients must not read it.
pub(super) fn objects(state: &State, request: &Request, page: usize) -> Result<Response, Refusal> {
    let encoding = request.parameter("encoding-type").filter(|wanted| *wanted == "url");
    let after = match request.parameter("continuation-token") {
        Some(token) => Some(unsealed(token)?),
        None => request.parameter("start-after").map(str::to_owned),
    };
    let query = ListQuery {
        prefix: request.parameter("prefix").unwrap_or_default().to_owned(),
        delimiter: request.parameter("delimiter").map(str::to_owned),
        after,
        most: most(request, "max-keys", page)?,
    };

    let found = query.page(&state.bucket(&request.bucket)?.objects);
    let contents = found.objects.iter().map(|(key, object)| Contents {
        key: encoded(key, encoding),
        last_modified: object.modified.xml(),
        etag: object.etag.clone(),
        size: object.content.len(),
        storage_class: "STANDARD",
    });
    let prefixes = found.prefixes.iter().map(|prefix| CommonPrefix { prefix: encoded(prefix, encoding) });

    let reply = Objects {
        xmlns: xml::NAMESPACE,
        name: &request.bucket,
        prefix: encoded(&query.prefix, encoding),
        delimiter: query.delimiter.as_deref().map(|delimiter| encoded(delimiter, encoding)),
        encoding_type: encoding,
        max_keys: query.most,
        key_count: found.objects.len() + found.prefixes.len(),
        is_truncated: found.next.is_some(),
        next_continuation_token: found.next.as_deref().map(sealed),
        contents: contents.collect(),
        common_prefixes: prefixes.collect(),
    };
    Ok(Response::xml(200, &xml::text("ListBucketResult", &reply)))
}

/// A text as a list has it: percent-encoded if the request asks for an encoding.
fn encoded(text: &str, encoding: Option<&str>) -> String {
    match encoding {
        Some(_) => utf8_percent_encode(text, PLAIN).to_string(),
        None => text.to_owned(),
    }
}

fn sealed(text: &str) -> String {
    hex::encode(text)
}

fn unsealed(token: &str) -> Result<String, Refusal> {
    let digits = token.as_bytes().chunks(2).map(|two| std::str::from_utf8(two).ok());
    let bytes = digits.map(|two| two.and_then(|two| u8::from_str_radix(two, 16).ok()));
    let text = bytes.collect::<Option<Vec<u8>>>().and_then(|bytes| String::from_utf8(bytes).ok());
    text.ok_or_else(|| Refusal::new(400, "InvalidArgument", "the continuation token is not of this server"))
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Uploads<'a> {
    #[serde(rename = "@xmlns")]
    xmlns: &'static str,
    bucket: &'a str,
    max_uploads: usize,
    is_truncated: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_key_marker: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_upload_id_marker: Option<String>,
    upload: Vec<UploadEntry>,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct UploadEntry {
    key: String,
    upload_id: String,
    initiated: String,
    storage_class: &'static str,
}

/// `ListMultipartUploads`. A delimiter is not looked at: no client of ours sends one.
pub(super) fn uploads(state: &State, request: &Request, page: usize) -> Result<Response, Refusal> {
    let most = most(request, "max-uploads", page)?;
    let [prefix, marker] = ["prefix", "key-marker"].map(|name| request.parameter(name).unwrap_or_default());
    let id_marker = request.parameter("upload-id-marker");

    let uploads = &state.bucket(&request.bucket)?.uploads;
    let mut found = uploads.iter().filter(|((key, id), upload)| {
        let is_after = match id_marker {
            Some(id_marker) => (key.as_str(), id.as_str()) > (marker, id_marker),
            None => key.as_str() > marker,
        };
        is_after && upload.key.starts_with(prefix)
    });
    let taken: Vec<_> = found.by_ref().take(most).collect();
    let more = found.next().is_some();
    let last = taken.last().filter(|_| more);

    let reply = Uploads {
        xmlns: xml::NAMESPACE,
        bucket: &request.bucket,
        max_uploads: most,
        is_truncated: more,
        next_key_marker: last.map(|((key, _), _)| key.clone()),
        next_upload_id_marker: last.map(|((_, id), _)| id.clone()),
        upload: taken
            .iter()
            .map(|((key, id), upload)| UploadEntry {
                key: key.clone(),
                upload_id: id.clone(),
                initiated: upload.initiated.xml(),
                storage_class: "STANDARD",
            })
            .collect(),
    };
    Ok(Response::xml(200, &xml::text("ListMultipartUploadsResult", &reply)))
}
