//! Authorization, the log, and the paths below `/_/`.

use object_store::ObjectStoreExt;
use object_store::path::Path;
use tidetable_bucket_server::{Kind, Options};

use super::{client, raw, runtime, started};

#[test]
fn requests_without_authorization_are_refused_on_demand() {
    let server = started(Options { authorization: true, ..Options::default() });
    let (status, reply) = raw(&server, "PUT /tidetable/k", "", "x");
    assert!(status == 403 && reply.contains("AccessDenied"), "{reply}");
    runtime().block_on(client(&server, 0).put(&Path::from("k"), "x".into())).unwrap();
    assert_eq!(server.keys("tidetable"), ["k"]);
}

#[test]
fn what_was_received_is_searched() {
    let server = started(Options { log: true, ..Options::default() });
    runtime().block_on(client(&server, 0).put(&Path::from("k"), "a needle in it".into())).unwrap();
    let found = server.received().find(b"needle");
    assert!(found.len() == 1 && found[0].in_body && found[0].line == "PUT /tidetable/k HTTP/1.1", "{found:?}");
    assert!(!server.received().find(b"Credential=key/")[0].in_body);
    assert!(server.received().find(b"secret-of-nobody").is_empty(), "a signature does not show its key");
    assert!(server.received().bytes() > 100);
    let (_, reply) = raw(&server, "GET /_/received?find=needle", "", "");
    assert!(reply.contains(r#""body":true"#) && reply.contains("PUT /tidetable/k"), "{reply}");
}

#[test]
fn another_process_reads_counts_and_sets_faults() {
    let server = started(Options::default());
    assert_eq!(raw(&server, "PUT /_/faults", "", "503=1").0, 204);
    assert_eq!(raw(&server, "PUT /tidetable/k", "", "x").0, 503);
    assert_eq!(raw(&server, "PUT /_/faults", "", "").0, 204);
    assert_eq!(raw(&server, "PUT /tidetable/k", "", "x").0, 200);
    let (_, reply) = raw(&server, "GET /_/counts", "", "");
    assert!(reply.contains(r#""PutObject":2"#) && reply.contains(r#""faults":1"#), "{reply}");
    assert_eq!(raw(&server, "DELETE /_/counts", "", "").0, 204);
    assert_eq!(server.counts().of(Kind::PutObject), 0);
    assert_eq!(raw(&server, "PUT /_/delay", "", "1ms").0, 204);
    for (line, body) in [("PUT /_/delay", "soon"), ("PUT /_/faults", "503"), ("GET /_/received?find=x", "")] {
        assert_eq!(raw(&server, line, "", body).0, 400, "{line}");
    }
    assert_eq!(raw(&server, "GET /_/none", "", "").0, 404);
}

#[test]
fn a_server_ends_with_its_connections() {
    let server = started(Options::default());
    let (store, runtime) = (client(&server, 0), runtime());
    runtime.block_on(store.put(&Path::from("k"), "x".into())).unwrap();
    let address = server.address();
    drop(server);
    assert!(runtime.block_on(store.head(&Path::from("k"))).is_err());
    assert!(std::net::TcpStream::connect(address).is_err());
}
