//! The log of a night: what commits, compactions, scans, vacuums, leases and retries decide can be read from the events of
//! level `debug`, which the guide to operations lists.

use std::fmt::Debug;
use std::sync::OnceLock;
use std::time::Duration;

use object_store::memory::InMemory;
use tidetable_blobs::BucketBlobs;
use tidetable_store::{Snapshot, VersionEdit};
use tidetable_upkeep::compaction::Compaction;
use tidetable_upkeep::{VacuumOptions, VacuumPlan};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event as LogEvent, Level, Metadata, Subscriber};

use super::*;

/// Not the name of a table or a job of another test, whose events are not looked at.
const TABLE: &str = "NIGHT";

/// The fields of an event by name, its message among them.
type Fields = BTreeMap<&'static str, String>;

/// The events of this process that are about [`TABLE`].
#[derive(Debug, Default)]
struct Log {
    events: Mutex<Vec<Fields>>,
}

impl Log {
    /// The log of this process, which gets every event from now on.
    fn of_process() -> Arc<Self> {
        static LOG: OnceLock<Arc<Log>> = OnceLock::new();
        let log = LOG.get_or_init(|| {
            let log = Arc::new(Self::default());
            tracing::subscriber::set_global_default(Writer(Arc::clone(&log))).unwrap();
            log
        });
        Arc::clone(log)
    }

    /// Takes the events since the last call.
    fn take(&self) -> Vec<Fields> {
        std::mem::take(&mut self.events.lock().unwrap())
    }
}

struct Writer(Arc<Log>);

impl Subscriber for Writer {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("tidetable") && *metadata.level() <= Level::DEBUG
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &LogEvent<'_>) {
        let mut reader = FieldReader::default();
        event.record(&mut reader);
        let is_ours = |name: &str| reader.0.get(name).is_some_and(|value| value == TABLE);
        if is_ours("table") || is_ours("job") {
            self.0.events.lock().unwrap().push(reader.0);
        }
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

#[derive(Default)]
struct FieldReader(Fields);

impl Visit for FieldReader {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.insert(field.name(), format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name(), value.to_owned());
    }
}

/// Fails unless one of `events` has this name, window, and a reason with these words.
#[track_caller]
fn assert_told(events: &[Fields], name: &str, window: &str, reason: &str) {
    let has = |event: &Fields, field: &str, value: &str| event.get(field).is_some_and(|found| found == value);
    let is_told = |event: &Fields| {
        has(event, "message", name)
            && (window.is_empty() || has(event, "window", window))
            && event.get("reason").is_some_and(|found| found.contains(reason))
    };
    assert!(events.iter().any(is_told), "{name} of {window}: {reason}: {events:#?}");
}

fn night() -> World {
    let world = World::new();
    world.write("jobs/j/job.toml", &JOB.replace("tables.T", "tables.NIGHT").replace("from T ", "from NIGHT "));
    world
}

fn snapshot(world: &World) -> Snapshot {
    world.store().snapshot(TABLE).unwrap()
}

fn commit(snapshot: &Snapshot, edit: &VersionEdit, world: &World) -> tidetable_store::Result<Version> {
    snapshot.table().commit(snapshot.version().clone(), edit, &world.ids, NOW)
}

/// Deletes the rows that begin with `prefix`.
fn delete_rows(world: &World, prefix: &str) {
    let target = DeleteTarget::Prefix { prefix: prefix.as_bytes().to_vec() };
    let snapshot = snapshot(world);
    let plan = DeletePlan::new(&snapshot, target).unwrap();
    commit(&snapshot, &plan.edit(), world).unwrap();
}

/// Runs the compaction that is needed, and leaves its edit to be committed.
fn compaction(world: &World) -> VersionEdit {
    let plan = CompactionPlan::of_extent(&snapshot(world), NOW, CompactionExtent::Needed).unwrap();
    Compaction::run(&plan, &world.ids).unwrap().edit
}

fn vacuum(world: &World) {
    let options = VacuumOptions { before: i64::MAX, half_written_before: 0, keep_versions: 1 };
    VacuumPlan::new(snapshot(world).table(), options).unwrap().run(&world.ids).unwrap();
}

#[test]
fn the_log_of_a_night_says_what_was_decided_and_why() {
    let log = Log::of_process();
    let world = night();

    // A run loads two days; beside the second run rows are deleted, so that its commit conflicts and is tried again.
    world.write_day(1, 1);
    world.write_day(2, 1);
    world.run(&world.options(), &Silent);
    assert_told(&log.take(), "commit", "2020-01-01..2020-01-02", "load");

    world.write("in/late.csv", "id,ts,v\nc,2020-01-01T11:00:00Z,7\n");
    world.write_day(2, 2);
    let observer = AtWritten { done: AtomicBool::default(), work: &|| delete_rows(&world, "b#") };
    world.run(&world.options(), &observer);
    let told = log.take();
    assert_told(&told, "commit", "2020-01-01..2020-01-02", "delete");
    assert_told(&told, "commit_conflict", "2020-01-01..2020-01-02", "");
    assert_told(&told, "retry", "", "");

    // A compaction is written, its files are vacuumed before it is committed, and it is done again by two at once.
    let begun = snapshot(&world);
    let late = compaction(&world);
    assert_told(&log.take(), "compaction_picked", "2020-01-01", "several SSTs");
    vacuum(&world);
    let told = log.take();
    assert_told(&told, "vacuum_planned", "", "newest");
    assert_told(&told, "commit", "", "vacuum");
    assert_told(&told, "vacuum_removed", "", "no kept version names");
    assert!(matches!(commit(&begun, &late, &world), Err(StoreError::Fenced { .. })));
    assert_told(&log.take(), "commit_fenced", "2020-01-01", "a vacuum may have removed");

    // That vacuum fences whatever is written later, too: the night goes on over another store.
    let world = night();
    world.write_day(1, 1);
    world.write_day(2, 1);
    world.run(&world.options(), &Silent);
    world.write("in/late.csv", "id,ts,v\nc,2020-01-01T11:00:00Z,7\n");
    world.write_day(2, 2);
    world.run(&world.options(), &Silent);
    delete_rows(&world, "b#");
    log.take();

    let begun = snapshot(&world);
    let [first, second] = [compaction(&world), compaction(&world)];
    commit(&begun, &first, &world).unwrap();
    assert!(matches!(commit(&begun, &second, &world), Err(StoreError::Conflict { .. })));
    let told = log.take();
    assert_told(&told, "commit", "2020-01-01..2020-01-02", "compaction");
    assert_told(&told, "commit_overtaken", "2020-01-01..2020-01-02", "another commit was first");
    assert_told(&told, "commit_conflict", "2020-01-01..2020-01-02", "");

    // Nothing is left to do.
    assert!(CompactionPlan::of_extent(&snapshot(&world), NOW, CompactionExtent::Due).unwrap().is_empty());
    assert_told(&log.take(), "compaction_not_picked", "2020-01-01..2020-01-02", "one sorted run");

    // A run holds its lease until another takes it.
    let runtime = runtime().unwrap();
    let bucket = BucketBlobs::new(Arc::new(InMemory::new()), "root".into(), runtime.handle().clone(), String::new());
    let blobs: Arc<dyn Blobs> = Arc::new(bucket);
    // So long that no thread renews it during the test.
    let times = LeaseTimes { holds: Duration::from_secs(3600) };
    let request = LockRequest { job: TABLE, run: "01A", if_locked: IfLocked::Fail, times };
    let mut lock = take(&blobs, request, &Stop::default()).unwrap().unwrap();
    assert_told(&log.take(), "lease_taken", "", "no run has held it");
    blobs.replace("locks/NIGHT.lock", br#"{"run":"01B","process":1,"renewal":"other-0"}"#).unwrap();
    lock.tell("01C");
    assert_told(&log.take(), "lease_lost", "", "another run has taken it");
}
