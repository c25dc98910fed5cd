//! Uploads in parts.

use object_store::path::Path;
use object_store::{Error, MultipartUpload, ObjectStoreExt};
use tidetable_bucket_server::{Kind, Options, Server};

use super::{client, raw, runtime, started};

const MIB: usize = 1 << 20;

#[test]
fn an_upload_is_seen_when_it_is_complete() {
    let server = started(Options::default());
    let (store, runtime) = (client(&server, 0), runtime());
    runtime.block_on(async {
        let path = Path::from("large");
        let mut upload = store.put_multipart(&path).await.unwrap();
        let parts: Vec<_> = (0..3).map(|part| upload.put_part(vec![part; 5 * MIB].into())).collect();
        // Their order of arrival does not count.
        for part in parts.into_iter().rev() {
            part.await.unwrap();
        }
        assert!(matches!(store.head(&path).await, Err(Error::NotFound { .. })));
        assert_eq!(server.uploads("tidetable"), ["large"]);
        let put = upload.complete().await.unwrap();
        assert!(put.e_tag.as_ref().unwrap().ends_with("-3\""), "{put:?}");
        assert_eq!(store.head(&path).await.unwrap().e_tag, put.e_tag);
        let middle = store.get_range(&path, (5 * MIB - 1) as u64..(5 * MIB + 1) as u64).await.unwrap();
        assert_eq!(&middle[..], [0, 1]);
        let mut given_up = store.put_multipart(&path).await.unwrap();
        given_up.put_part("x".into()).await.unwrap();
        given_up.abort().await.unwrap();
    });
    assert!(server.uploads("tidetable").is_empty());
    assert_eq!(server.counts().of(Kind::UploadPart), 4);
}

#[test]
fn a_small_part_is_the_last() {
    let server = started(Options::default());
    let (store, runtime) = (client(&server, 0), runtime());
    runtime.block_on(async {
        let mut upload = store.put_multipart(&Path::from("k")).await.unwrap();
        upload.put_part("small".into()).await.unwrap();
        upload.put_part("last".into()).await.unwrap();
        let error = upload.complete().await.unwrap_err().to_string();
        assert!(error.contains("EntityTooSmall"), "{error}");
    });
    assert_eq!((server.keys("tidetable").len(), server.uploads("tidetable").len()), (0, 1));
}

/// Begins an upload with one part; returns its id and the body that completes it.
fn begun(server: &Server, key: &str) -> (String, String) {
    let (_, reply) = raw(server, &format!("POST /tidetable/{key}?uploads="), "", "");
    let id = reply.split("<UploadId>").nth(1).unwrap().split('<').next().unwrap().to_owned();
    let (_, reply) = raw(server, &format!("PUT /tidetable/{key}?partNumber=1&uploadId={id}"), "", "part");
    let etag = reply.split("ETag: ").nth(1).unwrap().split('\r').next().unwrap();
    let part = format!("<Part><PartNumber>1</PartNumber><ETag>{etag}</ETag></Part>");
    (id, format!("<CompleteMultipartUpload>{part}</CompleteMultipartUpload>"))
}

#[test]
fn a_completion_may_be_conditional_and_happens_once() {
    let server = started(Options::default());
    let (first, body) = begun(&server, "k");
    let (second, _) = begun(&server, "k");
    let complete =
        |id: &str, headers: &str, body: &str| raw(&server, &format!("POST /tidetable/k?uploadId={id}"), headers, body);
    assert_eq!(complete(&first, "If-None-Match: *\r\n", &body.replace("<PartNumber>1", "<PartNumber>2")).0, 400);
    assert_eq!(complete(&first, "If-None-Match: *\r\n", &body).0, 200);
    assert_eq!(server.object("tidetable", "k").unwrap(), b"part");
    let (status, reply) = complete(&first, "", &body);
    assert!(status == 404 && reply.contains("NoSuchUpload"), "{reply}");
    assert_eq!(complete(&second, "If-None-Match: *\r\n", &body).0, 412);
    assert_eq!(server.uploads("tidetable"), ["k"], "it can still be completed or aborted");
    assert_eq!(complete(&second, "", &body).0, 200);
    assert_eq!(raw(&server, &format!("DELETE /tidetable/k?uploadId={second}"), "", "").0, 404);
}

#[test]
fn uploads_are_listed_in_pages() {
    let server = started(Options::default());
    for key in ["a/1", "a/1", "a/2", "b/1"] {
        begun(&server, key);
    }
    let between = |reply: &str, tag: &str| -> Vec<String> {
        let open = format!("<{tag}>");
        reply.split(&open).skip(1).map(|part| part.split('<').next().unwrap().to_owned()).collect()
    };
    let (mut keys, mut marker) = (Vec::new(), String::new());
    for _ in 0..3 {
        let (_, reply) = raw(&server, &format!("GET /tidetable?uploads&prefix=a/&max-uploads=1{marker}"), "", "");
        keys.extend(between(&reply, "Key"));
        let next = (between(&reply, "NextKeyMarker"), between(&reply, "NextUploadIdMarker"));
        let (Some(key), Some(id)) = (next.0.first(), next.1.first()) else { break };
        marker = format!("&key-marker={key}&upload-id-marker={id}");
    }
    assert_eq!(keys, ["a/1", "a/1", "a/2"]);
}
