//! Objects: reads, lists, copies, deletes.

use futures::{StreamExt, TryStreamExt};
use object_store::path::Path;
use object_store::{CopyMode, CopyOptions, Error, GetOptions, ObjectStore, ObjectStoreExt};
use tidetable_bucket_server::{Clock, Kind, Options};

use super::{client, raw, runtime, started};

#[test]
fn bytes_and_ranges_are_read() {
    let server = started(Options { clock: Clock::Steps, ..Options::default() });
    let (store, runtime) = (client(&server, 0), runtime());
    runtime.block_on(async {
        let path = Path::parse("a/b c+d=e&f/é.bin").unwrap();
        let bytes: Vec<u8> = (0..200_000_u32).flat_map(u32::to_le_bytes).collect();
        let put = store.put(&path, bytes.clone().into()).await.unwrap();
        let head = store.head(&path).await.unwrap();
        assert_eq!((head.size, &head.e_tag), (800_000, &put.e_tag));
        assert_eq!(head.last_modified.timestamp(), 1_577_836_801, "the first write");
        assert_eq!(store.get(&path).await.unwrap().bytes().await.unwrap(), bytes);
        assert_eq!(store.get_range(&path, 10..13).await.unwrap(), bytes[10..13]);
        let ranges = store.get_ranges(&path, &[0..4, 799_990..800_000]).await.unwrap();
        assert_eq!((&ranges[0][..], &ranges[1][..]), (&bytes[..4], &bytes[799_990..]));
        let suffix = GetOptions { range: Some(object_store::GetRange::Suffix(5)), ..GetOptions::default() };
        assert_eq!(store.get_opts(&path, suffix).await.unwrap().bytes().await.unwrap(), bytes[799_995..]);
        assert!(store.get_range(&path, 800_000..800_001).await.is_err(), "beyond the end");
        let same = GetOptions { if_none_match: put.e_tag.clone(), ..GetOptions::default() };
        assert!(matches!(store.get_opts(&path, same).await, Err(Error::NotModified { .. })));
        let other = GetOptions { if_match: Some("\"other\"".to_owned()), ..GetOptions::default() };
        assert!(matches!(store.get_opts(&path, other).await, Err(Error::Precondition { .. })));
        let none = Path::from("none");
        assert!(matches!(store.get(&none).await, Err(Error::NotFound { .. })));
        assert!(matches!(store.head(&none).await, Err(Error::NotFound { .. })));
    });
    assert_eq!(server.counts().of(Kind::HeadObject), 2);
    assert_eq!(server.keys("tidetable"), ["a/b c+d=e&f/é.bin"]);
}

#[test]
fn lists_come_in_pages() {
    let server = started(Options { page: 7, ..Options::default() });
    let (store, runtime) = (client(&server, 0), runtime());
    runtime.block_on(async {
        for number in 0..50 {
            let path = Path::from(format!("t/{}/{number:02}", number % 3));
            store.put(&path, vec![0; number].into()).await.unwrap();
        }
        let all: Vec<_> = store.list(Some(&Path::from("t"))).try_collect().await.unwrap();
        assert_eq!((all.len(), all[3].location.as_ref(), all[3].size), (50, "t/0/09", 9));
        assert!(all.windows(2).all(|two| two[0].location < two[1].location));
        assert_eq!(server.reset_counts().of(Kind::ListObjects), 8, "50 in pages of 7");
        let after: Vec<_> = store.list_with_offset(None, &Path::from("t/2/41")).try_collect().await.unwrap();
        assert_eq!(after.iter().map(|found| found.location.as_ref()).collect::<Vec<_>>(), ["t/2/44", "t/2/47"]);
        let inside = store.list_with_delimiter(Some(&Path::from("t"))).await.unwrap();
        assert_eq!((inside.objects.len(), inside.common_prefixes.len()), (0, 3));
        assert!(store.list(Some(&Path::from("none"))).next().await.is_none());
    });
    let (status, reply) = raw(&server, "GET /tidetable?list-type=2&encoding-type=url&max-keys=1&prefix=t%2F1", "", "");
    assert!(status == 200 && reply.contains("<Key>t/1/01</Key>"), "{reply}");
    assert!(reply.contains("<IsTruncated>true</IsTruncated>") && reply.contains("<KeyCount>1</KeyCount>"), "{reply}");
    assert_eq!(raw(&server, "GET /none?list-type=2", "", "").0, 404);
    assert_eq!(raw(&server, "GET /tidetable?list-type=2&continuation-token=xx", "", "").0, 400);
}

#[test]
fn objects_are_copied_and_deleted() {
    let server = started(Options::default());
    let (store, runtime) = (client(&server, 0), runtime());
    runtime.block_on(async {
        let (from, to) = (Path::from("from it"), Path::from("to"));
        store.put(&from, "content".into()).await.unwrap();
        store.copy(&from, &to).await.unwrap();
        assert_eq!(store.get(&to).await.unwrap().bytes().await.unwrap(), "content");
        let create = CopyOptions { mode: CopyMode::Create, ..CopyOptions::default() };
        let taken = store.copy_opts(&from, &to, create.clone()).await;
        assert!(matches!(taken, Err(Error::AlreadyExists { .. })), "{taken:?}");
        store.copy_opts(&from, &Path::from("new"), create).await.unwrap();
        assert_eq!(server.object("tidetable", "new").unwrap(), b"content");
        assert!(server.uploads("tidetable").is_empty());
        store.delete(&to).await.unwrap();
        store.delete(&to).await.unwrap();
        for number in 0..2001 {
            store.put(&Path::from(format!("many/{number} & more")), "x".into()).await.unwrap();
        }
        server.reset_counts();
        let found: Vec<_> = store.list(Some(&Path::from("many"))).map_ok(|found| found.location).collect().await;
        let deleted: Vec<_> = store.delete_stream(futures::stream::iter(found).boxed()).collect().await;
        assert!(deleted.len() == 2001 && deleted.iter().all(Result::is_ok));
    });
    assert_eq!(server.counts().of(Kind::DeleteObjects), 3, "1000 at once");
    assert_eq!(server.keys("tidetable"), ["from it", "new"]);
    assert_eq!(raw(&server, "DELETE /tidetable/new", "If-Match: \"other\"\r\n", "").0, 412);
    assert_eq!(raw(&server, "DELETE /tidetable/new", "", "").0, 204);
    assert_eq!(server.keys("tidetable"), ["from it"]);
}

#[test]
fn a_body_may_come_in_chunks_after_a_pause() {
    let server = started(Options::default());
    let chunks = "Transfer-Encoding: chunked\r\nExpect: 100-continue\r\nContent-Type: text/x\r\n";
    let body = "4\r\nabcd\r\n3;x=y\r\nefg\r\n0\r\n\r\n";
    let (status, reply) = raw(&server, "PUT /tidetable/k", chunks, body);
    assert!(status == 100 && reply.contains("HTTP/1.1 200 OK"), "{reply}");
    let (_, reply) = raw(&server, "GET /tidetable/k", "", "");
    assert!(reply.ends_with("\r\n\r\nabcdefg") && reply.contains("content-type: text/x"), "{reply}");
    assert_eq!(raw(&server, "PATCH /tidetable/k", "", "").0, 501);
    assert_eq!(raw(&server, "PUT /tidetable/k", "x-amz-content-sha256: STREAMING-X\r\n", "").0, 501);
    assert_eq!(raw(&server, &format!("PUT /tidetable/{}", "k".repeat(1025)), "", "").0, 400);
}

#[test]
fn buckets_are_created() {
    let server = started(Options::default());
    assert_eq!((raw(&server, "HEAD /other", "", "").0, raw(&server, "PUT /other/k", "", "x").0), (404, 404));
    assert_eq!((raw(&server, "PUT /other", "", "").0, raw(&server, "HEAD /other", "", "").0), (200, 200));
    assert_eq!(raw(&server, "PUT /other/k", "", "x").0, 200);
    raw(&server, "PUT /other", "", "");
    assert_eq!(server.keys("other"), ["k"], "creating it again empties nothing");
}
