//! A store in a bucket: its requests are counted, and its blobs keep their promises.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

#[expect(dead_code, reason = "other tests use the rest of it")]
mod model;

use std::fmt;
use std::io::Write;
use std::ops::Range;
use std::path::Path as Folder;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use bytes::Bytes;
use futures::StreamExt;
use futures::stream::BoxStream;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore, ObjectStoreExt,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};
use tidetable_blobs::BlobError;
use tidetable_blobs::Blobs;
use tidetable_blobs::{BucketBlobs, DiskCache, OpenMode};
use tidetable_layout::Projection;
use tidetable_store::{Store, StoreError, VersionEdit};
use tokio::runtime::{Builder, Runtime};

use model::{DAY, Event, File, START, World};

/// Counts requests, and how often one begins while none is under way: the round trips that follow one another.
#[derive(Debug, Default)]
struct Counts {
    requests: Mutex<Vec<String>>,
    running: AtomicUsize,
    trips: AtomicUsize,
}

#[derive(Debug, Default)]
struct Counted {
    inner: InMemory,
    counts: Arc<Counts>,
}

/// A request under way.
struct Running(Arc<Counts>);

impl Counted {
    fn begin(&self, what: &str, path: &str) -> Running {
        self.counts.requests.lock().unwrap().push(format!("{what} {path}"));
        if self.counts.running.fetch_add(1, Ordering::SeqCst) == 0 {
            self.counts.trips.fetch_add(1, Ordering::SeqCst);
        }
        Running(Arc::clone(&self.counts))
    }

    /// The round trips and requests since the last call.
    fn take(&self) -> (usize, Vec<String>) {
        let requests = std::mem::take(&mut *self.counts.requests.lock().unwrap());
        (self.counts.trips.swap(0, Ordering::SeqCst), requests)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::SeqCst);
    }
}

impl fmt::Display for Counted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("counted")
    }
}

/// Long enough that requests sent together overlap.
async fn latency() {
    tokio::time::sleep(std::time::Duration::from_millis(20)).await;
}

/// A list that takes its time.
fn late(running: Running, list: BoxStream<'static, Result<ObjectMeta>>) -> BoxStream<'static, Result<ObjectMeta>> {
    let waited = async move {
        latency().await;
        drop(running);
    };
    futures::stream::once(waited).filter_map(|()| std::future::ready(None)).chain(list).boxed()
}

#[async_trait]
impl ObjectStore for Counted {
    async fn put_opts(&self, location: &Path, payload: PutPayload, opts: PutOptions) -> Result<PutResult> {
        let _running = self.begin("put", location.as_ref());
        self.inner.put_opts(location, payload, opts).await
    }

    async fn put_multipart_opts(&self, location: &Path, opts: PutMultipartOptions) -> Result<Box<dyn MultipartUpload>> {
        let _running = self.begin("multipart", location.as_ref());
        self.inner.put_multipart_opts(location, opts).await
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        let _running = self.begin(if options.head { "head" } else { "get" }, location.as_ref());
        latency().await;
        self.inner.get_opts(location, options).await
    }

    async fn get_ranges(&self, location: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        self.inner.get_ranges(location, ranges).await
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        let _running = self.begin("delete", "");
        self.inner.delete_stream(locations)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        late(self.begin("list", prefix.map_or("", |prefix| prefix.as_ref())), self.inner.list(prefix))
    }

    fn list_with_offset(&self, prefix: Option<&Path>, offset: &Path) -> BoxStream<'static, Result<ObjectMeta>> {
        late(self.begin("list after", offset.as_ref()), self.inner.list_with_offset(prefix, offset))
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        let _running = self.begin("list", prefix.map_or("", |prefix| prefix.as_ref()));
        latency().await;
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        let _running = self.begin("copy", to.as_ref());
        self.inner.copy_opts(from, to, options).await
    }
}

struct Place {
    runtime: Runtime,
    counted: Arc<Counted>,
}

impl Place {
    fn new() -> Self {
        let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        Self { runtime, counted: Arc::new(Counted::default()) }
    }

    /// As another process opens it: with nothing cached.
    fn blobs(&self) -> Arc<dyn Blobs> {
        let store = Arc::clone(&self.counted) as Arc<dyn ObjectStore>;
        let handle = self.runtime.handle().clone();
        Arc::new(BucketBlobs::new(store, "root".into(), handle, "memory".to_owned()))
    }

    /// Copies a directory.
    fn copy(&self, from: &Folder, to: &Path) {
        for entry in std::fs::read_dir(from).unwrap() {
            let entry = entry.unwrap();
            let to = to.clone().join(entry.file_name().to_str().unwrap());
            if entry.file_type().unwrap().is_dir() {
                self.copy(&entry.path(), &to);
            } else {
                let bytes = std::fs::read(entry.path()).unwrap();
                self.runtime.block_on(self.counted.inner.put(&to, bytes.into())).unwrap();
            }
        }
    }
}

fn event(id: u64, day: i64, v: u64) -> Event {
    Event { id, time: START + day * DAY, q: "q".to_owned(), v, w: Some(v as i64) }
}

/// A table of many versions, one window of several SSTs, in a bucket.
fn table() -> (World, Place) {
    let world = World::new(true, "");
    for load in 0..40 {
        let events: Vec<Event> = (0..50).map(|id| event(id, load % 3, id * 100 + load as u64)).collect();
        world.write(&File::of(&format!("{load:03}.csv"), &events));
        world.load(START);
    }
    let place = Place::new();
    place.copy(world.table().blobs().directory().unwrap(), &"root".into());
    (world, place)
}

#[test]
fn a_point_query_takes_four_round_trips_cold_and_none_in_a_warm_session() {
    let (world, place) = table();
    let projection = Projection::all(world.snapshot().unwrap().schema());
    let expected = world.snapshot().unwrap().row(b"07#20180102", &projection).unwrap().unwrap();
    let store = Store::new(place.blobs());
    let snapshot = store.snapshot("T").unwrap();
    assert_eq!(snapshot.version().number, 40);
    let found = snapshot.row(b"07#20180102", &projection).unwrap().unwrap();
    assert_eq!(format!("{found:?}"), format!("{expected:?}"));
    let (trips, requests) = place.counted.take();
    // Lists, manifests, and the files, which are small; large ones take one more, for the stripe.
    assert!(trips <= 3, "{trips}: {requests:#?}");
    assert!(requests.iter().all(|request| !request.starts_with("head ")), "{requests:#?}");
    snapshot.row(b"07#20180102", &projection).unwrap().unwrap();
    assert_eq!(snapshot.row(b"99#20180102", &projection).unwrap().map(|block| block.keys.len()), None);
    assert_eq!(place.counted.take(), (0, Vec::new()));
}

#[test]
fn a_scan_asks_for_each_file_once() {
    let (world, place) = table();
    let local = world.snapshot().unwrap();
    let snapshot = Store::new(place.blobs()).snapshot("T").unwrap();
    place.counted.take();
    let projection = Projection::all(snapshot.schema());
    let ranges = snapshot.scan_ranges(&[tidetable_layout::KeyRange::all()], &(i64::MIN..i64::MAX));
    snapshot.announce(&ranges);
    let read = |snapshot: &tidetable_store::Snapshot| -> Vec<String> {
        let blocks = ranges.iter().flat_map(|range| snapshot.scan(range, &projection).unwrap());
        blocks.map(|block| format!("{:?}", block.unwrap())).collect()
    };
    assert_eq!(read(&snapshot), read(&local));
    let (trips, requests) = place.counted.take();
    let files = snapshot.version().ssts().count();
    assert_eq!(requests.len(), files, "{requests:#?}");
    assert!(trips < files, "{trips} round trips for {files} files");
}

#[test]
fn another_process_reads_blocks_from_the_disk() {
    let (world, place) = table();
    let projection = Projection::all(world.snapshot().unwrap().schema());
    let folder = tempfile::tempdir().unwrap();
    let process = || {
        let (store, handle) = (Arc::clone(&place.counted) as Arc<dyn ObjectStore>, place.runtime.handle().clone());
        let cache = DiskCache::new(folder.path().to_owned(), 1 << 30);
        let blobs = BucketBlobs::with_cache(store, "root".into(), handle, "memory".to_owned(), cache);
        let snapshot = Store::new(Arc::new(blobs)).snapshot("T").unwrap();
        format!("{:?}", snapshot.row(b"07#20180102", &projection).unwrap().unwrap())
    };
    let first = process();
    // They are written while the query goes on.
    let usage = || DiskCache::new(folder.path().to_owned(), 0).usage().unwrap();
    while usage().files < 1 {
        std::thread::yield_now();
    }
    place.counted.take();
    assert_eq!(process(), first);
    let (trips, requests) = place.counted.take();
    let ssts = requests.iter().filter(|request| request.ends_with(".sst")).count();
    let files =
        world.snapshot().unwrap().whole(&tidetable_layout::KeyRange::of_key(b"07#20180102")).unwrap().ssts.len();
    assert!(ssts < files, "{requests:#?}");
    assert!(requests.iter().all(|request| request.starts_with("list ") || request.ends_with(".sst")), "{requests:#?}");
    // The list of versions, and blocks that the first process had not written yet.
    assert!(trips <= 1 + ssts, "{trips}: {requests:#?}");
}

#[test]
fn a_manifest_that_was_written_again_is_not_taken_from_the_disk() {
    let (world, place) = table();
    let folder = tempfile::tempdir().unwrap();
    let latest = || {
        let (store, handle) = (Arc::clone(&place.counted) as Arc<dyn ObjectStore>, place.runtime.handle().clone());
        let cache = DiskCache::new(folder.path().to_owned(), 1 << 30);
        let blobs = BucketBlobs::with_cache(store, "root".into(), handle, "memory".to_owned(), cache);
        Store::new(Arc::new(blobs)).table("T").latest()
    };
    let expected = world.table().latest().unwrap().unwrap();
    assert_eq!(latest().unwrap().unwrap(), expected);
    place.counted.take();
    assert_eq!(latest().unwrap().unwrap(), expected);
    assert_eq!(place.counted.take().1.len(), 2, "lists of checkpoints and manifests");
    // As a writer that takes its manifest back, and another that is given the name.
    let path = Path::from(format!("root/tables/T/manifest/{:020}.json", 40));
    let bytes = place.runtime.block_on(async { place.counted.inner.get(&path).await.unwrap().bytes().await }).unwrap();
    place.runtime.block_on(place.counted.inner.put(&path, Bytes::from_static(b"{}").into())).unwrap();
    assert!(latest().is_err(), "what is there now is read");
    place.runtime.block_on(place.counted.inner.put(&path, bytes.into())).unwrap();
    assert_eq!(latest().unwrap().unwrap(), expected);
}

#[test]
fn a_store_that_follows_its_own_commits_asks_for_versions_once() {
    let (world, place) = table();
    let store = Store::new(place.blobs());
    let asked = |store: &Store| {
        let number = store.snapshot("T").unwrap().version().number;
        (number, place.counted.take().1.len())
    };
    place.counted.take();
    assert!(asked(&store).1 > 2);
    // Only a list, by which the manifest is known to be the same.
    assert_eq!(asked(&store), (40, 2));
    let following = store.clone().following_own_commits();
    assert_eq!(following.tables().unwrap(), ["T"]);
    place.counted.take();
    assert_eq!(asked(&following), (40, 0), "the list of tables told it");
    assert_eq!((following.tables().unwrap().len(), place.counted.take().1.len()), (1, 0));
    // Another writer commits: who follows does not see it before its work has failed.
    let table = store.table("T");
    let base = table.latest().unwrap().unwrap();
    let edit = VersionEdit { base: base.number, ..VersionEdit::default() };
    assert_eq!(table.commit(base, &edit, &world.ids, START).unwrap().number, 41);
    assert_eq!(asked(&following).0, 40);
    following.read_anew();
    assert_eq!(asked(&following).0, 41);
    // Its own commit is the newest, and the base of a commit that is too old is found.
    let base = following.table("T").version(40).unwrap();
    let edit = VersionEdit { base: 40, ..VersionEdit::default() };
    let own = following.table("T").commit(base, &edit, &world.ids, START);
    place.counted.take();
    match own {
        Ok(version) => assert_eq!(asked(&following), (version.number, 0)),
        Err(StoreError::Conflict { .. }) => assert_eq!(asked(&following).0, 41),
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn a_damaged_missing_or_short_object_is_an_error() {
    let (_world, place) = table();
    let sst = Store::new(place.blobs()).snapshot("T").unwrap().version().ssts().next().unwrap().clone();
    let key = Path::from(format!("root/tables/T/sst/{}.sst", sst.id));
    let bytes = place.runtime.block_on(async { place.counted.inner.get(&key).await.unwrap().bytes().await }).unwrap();
    let read = || {
        let snapshot = Store::new(place.blobs()).snapshot("T")?;
        let projection = Projection::all(snapshot.schema());
        let ranges = snapshot.scan_ranges(&[tidetable_layout::KeyRange::all()], &(i64::MIN..i64::MAX));
        for range in &ranges {
            snapshot.scan(range, &projection)?.try_for_each(|block| block.map(drop))?;
        }
        Ok::<(), StoreError>(())
    };
    read().unwrap();
    let put = |bytes: Bytes| place.runtime.block_on(place.counted.inner.put(&key, bytes.into())).unwrap();
    let mut flipped = bytes.to_vec();
    // Of the first stripe, which follows a header of 64 bytes.
    flipped[80] ^= 1;
    put(flipped.into());
    assert!(matches!(read(), Err(StoreError::Sst { .. })));
    put(bytes.slice(..bytes.len() - 1));
    assert!(matches!(read(), Err(StoreError::Sst { .. })));
    place.runtime.block_on(place.counted.inner.delete(&key)).unwrap();
    assert!(read().is_err());
    put(bytes);
    read().unwrap();
}

#[test]
fn of_two_that_replace_one_content_one_succeeds() {
    let place = Place::new();
    let blobs = place.blobs();
    assert!(blobs.create_new("lock", b"0").unwrap());
    let (_, tag) = blobs.read_tagged("lock").unwrap().unwrap();
    let tag = tag.unwrap();
    let first = blobs.replace_if("lock", b"1", &tag).unwrap().unwrap();
    assert_eq!(blobs.replace_if("lock", b"2", &tag).unwrap(), None);
    assert_eq!(blobs.read("lock").unwrap().unwrap().as_ref(), b"1");
    // A retry after a lost reply is ours.
    assert!(blobs.replace_if("lock", b"1", &tag).unwrap().is_some());
    assert!(blobs.replace_if("lock", b"3", &first).unwrap().is_some());
    blobs.delete("lock").unwrap();
    assert_eq!(blobs.replace_if("lock", b"4", &first).unwrap(), None);
    assert!(blobs.read("lock").unwrap().is_none());
}

#[test]
fn a_large_file_is_sent_in_parts_and_put_under_its_last_name() {
    let place = Place::new();
    let blobs = place.blobs();
    let bytes: Vec<u8> = (0..5_000_000_u32).flat_map(u32::to_le_bytes).collect();
    let write = |writer: &mut Box<dyn tidetable_blobs::BlobWriter>| {
        bytes.chunks(1 << 20).for_each(|chunk| writer.write_all(chunk).unwrap());
    };
    let mut writer = blobs.overwrite_writer("exports/.tmp-1").unwrap();
    write(&mut writer);
    assert!(blobs.list("exports").unwrap().is_empty());
    writer.finish_as("exports/E/part-0.parquet").unwrap();
    assert_eq!(blobs.read("exports/E/part-0.parquet").unwrap().unwrap().as_ref(), bytes);
    assert_eq!(blobs.list("exports").unwrap(), ["E"]);
    assert!(blobs.leftovers("exports").unwrap().is_empty());
    // A name is given once, also to a file in parts.
    let mut writer = blobs.writer("exports/E/part-0.parquet").unwrap();
    write(&mut writer);
    assert!(matches!(writer.finish(), Err(BlobError::Exists { .. })));
    let opened = blobs.open_file("exports/E/part-0.parquet", OpenMode::Sized(bytes.len() as u64)).unwrap();
    for (at, len) in [(0, 1), (5, 300_000), (7_999_999, 9_000_001), (19_999_990, 10)] {
        assert_eq!(opened.read_at(at, len).unwrap(), bytes[at as usize..at as usize + len], "{at}");
    }
    assert!(opened.read_at(19_999_990, 11).is_err());
    // One that is given up leaves nothing.
    let mut writer = blobs.writer("exports/F").unwrap();
    write(&mut writer);
    drop(writer);
    let left = place.runtime.block_on(place.counted.inner.list(None).collect::<Vec<_>>());
    assert_eq!(left.len(), 1);
}

#[test]
fn names_after_another_and_many_files_at_once() {
    let place = Place::new();
    let blobs = place.blobs();
    let paths: Vec<String> = (0..40).map(|number| format!("d/{number:02}")).collect();
    paths.iter().for_each(|path| assert!(blobs.create_new(path, path.as_bytes()).unwrap()));
    blobs.replace("d/deep/x", b"x").unwrap();
    let after = blobs.list_after("d", "37").unwrap();
    assert_eq!(after.iter().map(|file| file.name.as_str()).collect::<Vec<_>>(), ["38", "39", "deep"]);
    assert_eq!(after.iter().map(|file| file.e_tag.is_some()).collect::<Vec<_>>(), [true, true, false]);
    assert_eq!(blobs.list("").unwrap(), ["d"]);
    place.counted.take();
    let read = blobs.read_all(&[paths.clone(), vec!["d/none".to_owned()]].concat()).unwrap();
    assert!(read.iter().zip(&paths).all(|(read, path)| read.as_deref() == Some(path.as_bytes())));
    assert_eq!((read.len(), read.last()), (41, Some(&None)));
    assert!(place.counted.take().0 < 10);
    for some in [&paths[..3], &paths[..]] {
        place.counted.take();
        let found = blobs.stat_all(&[some, &["d/none".to_owned(), "d/deep/x".to_owned()]].concat()).unwrap();
        assert!(found[..some.len()].iter().all(|found| found.is_some_and(|found| found.bytes == 4)));
        assert_eq!((found[some.len()], found[some.len() + 1].map(|found| found.bytes)), (None, Some(1)));
        assert_eq!(place.counted.take().0, 1);
    }
    blobs.delete_all(&paths).unwrap();
    blobs.delete("d/none").unwrap();
    assert_eq!(blobs.list("d").unwrap(), ["deep"]);
}
