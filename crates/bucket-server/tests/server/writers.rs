//! Conditional writes of many threads.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;

use object_store::path::Path;
use object_store::{Error, ObjectStore, ObjectStoreExt, PutMode, PutOptions, UpdateVersion};
use tidetable_bucket_server::Options;

use super::{client, raw, runtime, started};

const THREADS: usize = 16;

#[test]
fn one_of_sixteen_creates() {
    let server = started(Options::default());
    let (runtime, barrier) = (runtime(), Barrier::new(THREADS));
    const NAMES: usize = 50;
    let wins: Vec<AtomicU64> = (0..NAMES).map(|_| AtomicU64::new(0)).collect();
    thread::scope(|scope| {
        for writer in 0..THREADS {
            let (store, handle) = (client(&server, 0), runtime.handle().clone());
            let (wins, barrier) = (&wins, &barrier);
            scope.spawn(move || {
                for (name, won) in wins.iter().enumerate() {
                    barrier.wait();
                    let (path, body) = (Path::from(format!("{name}")), format!("{writer}"));
                    match handle.block_on(store.put_opts(&path, body.into(), PutMode::Create.into())) {
                        Ok(_) => assert_eq!(won.swap(1 + writer as u64, Ordering::SeqCst), 0, "a second one won"),
                        Err(Error::AlreadyExists { .. }) => {}
                        Err(error) => panic!("{error}"),
                    }
                }
            });
        }
    });
    for (name, won) in wins.iter().enumerate() {
        let winner = won.load(Ordering::SeqCst).checked_sub(1).expect("one won");
        assert_eq!(server.object("tidetable", &name.to_string()).unwrap(), winner.to_string().as_bytes());
    }
}

#[test]
fn no_update_of_sixteen_is_lost() {
    let server = started(Options::default());
    let runtime = runtime();
    let path = Path::from("counter");
    const EACH: usize = 20;
    runtime.block_on(client(&server, 0).put(&path, "0".into())).unwrap();
    thread::scope(|scope| {
        for _ in 0..THREADS {
            let (store, handle, path) = (client(&server, 0), runtime.handle().clone(), path.clone());
            scope.spawn(move || {
                for _ in 0..EACH {
                    handle.block_on(increment(store.as_ref(), &path));
                }
            });
        }
    });
    assert_eq!(server.object("tidetable", "counter").unwrap(), (THREADS * EACH).to_string().as_bytes());
}

async fn increment(store: &dyn ObjectStore, path: &Path) {
    loop {
        let found = store.get(path).await.unwrap();
        let version = UpdateVersion { e_tag: found.meta.e_tag.clone(), version: found.meta.version.clone() };
        let text = found.bytes().await.unwrap();
        let number: usize = std::str::from_utf8(&text).unwrap().parse().unwrap();
        let options = PutOptions { mode: PutMode::Update(version), ..PutOptions::default() };
        match store.put_opts(path, (number + 1).to_string().into(), options).await {
            Ok(_) => return,
            Err(Error::Precondition { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
fn one_of_sixteen_completes() {
    let server = Arc::new(started(Options::default()));
    let begun: Vec<(String, String)> = (0..THREADS)
        .map(|_| {
            let (_, reply) = raw(&server, "POST /tidetable/k?uploads=", "", "");
            let id = reply.split("<UploadId>").nth(1).unwrap().split('<').next().unwrap().to_owned();
            let (_, reply) = raw(&server, &format!("PUT /tidetable/k?partNumber=1&uploadId={id}"), "", "part");
            let etag = reply.split("ETag: ").nth(1).unwrap().split('\r').next().unwrap().to_owned();
            (id, etag)
        })
        .collect();
    let barrier = Barrier::new(THREADS);
    let statuses: Vec<u16> = thread::scope(|scope| {
        let complete = |(id, etag): &(String, String)| {
            let part = format!("<Part><PartNumber>1</PartNumber><ETag>{etag}</ETag></Part>");
            let body = format!("<CompleteMultipartUpload>{part}</CompleteMultipartUpload>");
            barrier.wait();
            raw(&server, &format!("POST /tidetable/k?uploadId={id}"), "If-None-Match: *\r\n", &body).0
        };
        let threads: Vec<_> = begun.iter().map(|one| scope.spawn(move || complete(one))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(statuses.iter().filter(|status| **status == 200).count(), 1, "{statuses:?}");
    assert_eq!(statuses.iter().filter(|status| **status == 412).count(), THREADS - 1, "{statuses:?}");
}
