//! Each fault, as a client meets it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Barrier};

use object_store::path::Path;
use object_store::{Error, ObjectStore, ObjectStoreExt, PutMode};
use tidetable_bucket_server::{Arrival, Fault, Kind, Options, Server, Watch};

use super::{client, runtime, started};

/// Gives the next requests of a kind a fault.
struct Next {
    fault: Fault,
    kind: Kind,
    left: AtomicU64,
}

impl Watch for Next {
    fn before(&self, arrival: &Arrival<'_>) -> Option<Fault> {
        let take = |left: u64| left.checked_sub(1);
        let met = arrival.kind == self.kind && self.left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, take).is_ok();
        met.then_some(self.fault)
    }
}

fn next(server: &Server, kind: Kind, fault: Fault, times: u64) {
    server.watch(Some(Arc::new(Next { fault, kind, left: AtomicU64::new(times) })));
}

#[test]
fn a_creation_meets_each_fault() {
    let server = started(Options { slow: std::time::Duration::from_millis(1), ..Options::default() });
    let (store, runtime) = (client(&server, 0), runtime());
    // The fault, whether the object is there afterwards, and what the client is told.
    for (number, (fault, done, error)) in [
        (Fault::Reset, false, "HTTP error"),
        (Fault::InternalError, false, "InternalError"),
        (Fault::SlowDown, false, "SlowDown"),
        (Fault::Conflict, false, "already exists"),
        (Fault::Precondition, false, "already exists"),
        (Fault::ErrorAfter, true, "InternalError"),
        (Fault::LostReply, true, "HTTP error"),
        (Fault::Slow, true, ""),
    ]
    .into_iter()
    .enumerate()
    {
        next(&server, Kind::PutObject, fault, 1);
        let path = Path::from(format!("{number}"));
        let put = runtime.block_on(store.put_opts(&path, "x".into(), PutMode::Create.into()));
        let said = put.err().map(|error| error.to_string()).unwrap_or_default();
        assert!(said.contains(error) && said.is_empty() == error.is_empty(), "{fault:?}: {said}");
        assert_eq!(server.object("tidetable", path.as_ref()).is_some(), done, "{fault:?}");
    }
    assert_eq!(server.counts().faults, 8);
}

#[test]
fn a_client_that_tries_again_is_refused_by_its_own_object() {
    let server = started(Options::default());
    let (store, runtime) = (client(&server, 3), runtime());
    next(&server, Kind::PutObject, Fault::ErrorAfter, 1);
    let path = Path::from("k");
    let put = runtime.block_on(store.put_opts(&path, "mine".into(), PutMode::Create.into()));
    assert!(matches!(put, Err(Error::AlreadyExists { .. })), "{put:?}");
    assert_eq!(server.object("tidetable", "k").unwrap(), b"mine");
    assert_eq!(server.counts().of(Kind::PutObject), 2);
}

#[test]
fn half_a_body_is_no_body() {
    let server = started(Options::default());
    let runtime = runtime();
    let (path, bytes) = (Path::from("k"), vec![7; 300_000]);
    let read = |times| {
        let store = client(&server, times);
        next(&server, Kind::GetObject, Fault::Truncated, 1);
        let path = path.clone();
        runtime.block_on(async move { store.get(&path).await?.bytes().await })
    };
    runtime.block_on(client(&server, 0).put(&path, bytes.clone().into())).unwrap();
    assert!(read(0).is_err());
    assert_eq!(read(1).unwrap(), bytes);
    let read = server.counts().of(Kind::GetObject);
    assert_eq!(read, 3, "the second half alone was read again");
}

#[test]
fn a_stale_upload_is_left_behind() {
    let server = started(Options::default());
    let (store, runtime) = (client(&server, 0), runtime());
    next(&server, Kind::CreateUpload, Fault::StaleUpload, 1);
    runtime.block_on(async {
        let mut upload = store.put_multipart(&Path::from("k")).await.unwrap();
        upload.put_part("content".into()).await.unwrap();
        upload.complete().await.unwrap();
    });
    assert_eq!(server.object("tidetable", "k").unwrap(), b"content");
    assert_eq!(server.uploads("tidetable"), ["k"]);
}

#[test]
fn a_seed_gives_faults_that_retries_get_over() {
    let faults = "503=0.1,500=0.1,slow=0.05".parse().unwrap();
    let slow = std::time::Duration::from_millis(1);
    let server = started(Options { faults, slow, seed: 3, ..Options::default() });
    let (store, runtime) = (client(&server, 50), runtime());
    runtime.block_on(async {
        for number in 0..100 {
            store.put(&Path::from(format!("{number}")), "x".into()).await.unwrap();
        }
    });
    let counts = server.counts();
    assert_eq!(server.keys("tidetable").len(), 100);
    assert!(counts.faults > 10 && counts.total() > 110, "{counts:?}");
}

/// Lets no request through before all are there.
struct Together(Barrier);

impl Watch for Together {
    fn before(&self, arrival: &Arrival<'_>) -> Option<Fault> {
        if arrival.kind == Kind::GetObject {
            self.0.wait();
        }
        None
    }
}

#[test]
fn requests_are_answered_at_once_and_counted_in_sequence() {
    let server = started(Options::default());
    let (store, runtime) = (client(&server, 0), runtime());
    runtime.block_on(async {
        let path = Path::from("k");
        for _ in 0..3 {
            store.put(&path, "content".into()).await.unwrap();
        }
        assert_eq!(server.reset_counts().sequential(), 3);
        server.watch(Some(Arc::new(Together(Barrier::new(8)))));
        let reads = (0..8).map(|_| async { store.get(&path).await.unwrap().bytes().await.unwrap() });
        assert!(futures::future::join_all(reads).await.iter().all(|read| *read == "content"));
    });
    let counts = server.counts();
    assert_eq!((counts.sequential(), counts.total(), counts.sent), (1, 8, 56));
}
