//! Bodies in XML.

use quick_xml::de::from_reader;
use quick_xml::se::to_string_with_root;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::bucket::{NamedPart, Refusal};

/// S3's namespace of XML.
pub(super) const NAMESPACE: &str = "http://s3.amazonaws.com/doc/2006-03-01/";

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Error<'a> {
    code: &'a str,
    message: &'a str,
    resource: &'a str,
}

/// The body of a refusal.
pub(super) fn error(refusal: &Refusal, resource: &str) -> String {
    text("Error", &Error { code: refusal.code, message: &refusal.message, resource })
}

/// XML of a value with this root.
pub(super) fn text(root: &str, value: &impl Serialize) -> String {
    // Structs of text and numbers always have an XML form.
    to_string_with_root(root, value).unwrap_or_else(|error| format!("<Error><Message>{error}</Message></Error>"))
}

fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T, Refusal> {
    from_reader(body).map_err(|error| Refusal::new(400, "MalformedXML", error.to_string()))
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Delete {
    #[serde(default)]
    object: Vec<DeletedKey>,
    #[serde(default)]
    quiet: bool,
}

/// A key in a request or reply of `DeleteObjects`.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct DeletedKey {
    pub key: String,
}

/// The keys of a `DeleteObjects` request, and whether the reply leaves them out.
///
/// # Errors
/// Bad XML; more than 1000 keys.
pub(super) fn deleted(body: &[u8]) -> Result<(Vec<String>, bool), Refusal> {
    let delete: Delete = parse(body)?;
    if delete.object.len() > 1000 {
        return Err(Refusal::new(400, "MalformedXML", "a request deletes at most 1000 objects"));
    }
    Ok((delete.object.into_iter().map(|object| object.key).collect(), delete.quiet))
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Complete {
    #[serde(default)]
    part: Vec<CompletePart>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct CompletePart {
    part_number: u32,
    #[serde(rename = "ETag")]
    etag: String,
}

/// The parts of a request that completes an upload.
///
/// # Errors
/// Bad XML.
pub(super) fn parts(body: &[u8]) -> Result<Vec<NamedPart>, Refusal> {
    let complete: Complete = parse(body)?;
    Ok(complete.part.into_iter().map(|part| NamedPart { number: part.part_number, etag: part.etag }).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_parts_are_read() {
        let body = b"<Delete xmlns=\"x\"><Object><Key>a/b &amp; c</Key></Object><Object><Key>d</Key></Object></Delete>";
        assert_eq!(deleted(body).unwrap(), (vec!["a/b & c".to_owned(), "d".to_owned()], false));
        assert!(deleted(b"<Delete><Quiet>true</Quiet><Object><Key>d</Key></Object></Delete>").unwrap().1);
        let body = b"<CompleteMultipartUpload><Part><ETag>\"e\"</ETag><PartNumber>1</PartNumber></Part>\
            <Part><PartNumber>2</PartNumber><ETag>&quot;f&quot;</ETag></Part></CompleteMultipartUpload>";
        let found = parts(body).unwrap();
        assert_eq!(found[1], NamedPart { number: 2, etag: "\"f\"".to_owned() });
        assert_eq!(deleted(b"nonsense").unwrap_err().code, "MalformedXML");
    }
}
