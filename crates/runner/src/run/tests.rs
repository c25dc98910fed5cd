//! Runs with concurrent commits, and the number of reads; `night` reads their log.

mod night;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use bytes::Bytes;
use tempfile::TempDir;
use tidetable_blobs::{
    BlobWriter, Blobs, Listed, Listing, LocalBlobs, OpenMode, Place, StagingDirectory, Stat, Tag, WriteMode,
};
use tidetable_sstable::ReadAt;
use tidetable_store::DeletePlan;
use tidetable_store::version::DeleteTarget;
use tidetable_store::{StoreError, Version, ulid_text};
use tidetable_upkeep::compaction::{CompactionExtent, CompactionPlan};
use tidetable_upkeep::{VerifyOptions, verify};

use super::*;
use crate::UlidIds;
use crate::compact::compact;

const NOW: i64 = 1_790_000_000_000_000;

/// Two exports, with a day in each file of the directory `in`.
const JOB: &str = r#"name = "j"
[sources.s]
files = ["in/*.csv"]
time = "ts"
columns = { id = "text", ts = "timestamp", v = "int64" }
[tables.T]
row_key = "{id}#{ts:ms}"
families.A.columns = [{ qualifier = "V", value = "{v}" }]
[exports.E]
per = "day"
name = "E_{day:%Y%m%d}"
query = { sql = "select id, ts, v from T order by id, ts" }
[exports.F]
per = "query"
name = "F"
query = { sql = "select id, sum(v) as v from T group by id order by id" }
"#;

struct World {
    folder: TempDir,
    ids: UlidIds,
}

impl World {
    fn new() -> Self {
        let folder = TempDir::new().unwrap();
        std::fs::write(folder.path().join("tidetable.toml"), "").unwrap();
        let world = Self { folder, ids: UlidIds::default() };
        world.write("jobs/j/job.toml", JOB);
        world
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.folder.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    fn write_day(&self, day: u32, v: i64) {
        let rows = ["a", "b"].map(|id| format!("{id},2020-01-{day:02}T10:00:00Z,{v}\n")).concat();
        self.write(&format!("in/{day}.csv"), &format!("id,ts,v\n{rows}"));
    }

    fn project(&self) -> Project {
        Project::find(self.folder.path()).unwrap()
    }

    fn store(&self) -> Store {
        open_store(&self.project()).unwrap()
    }

    fn options(&self) -> RunOptions {
        RunOptions {
            days: None,
            only: None,
            parts: None,
            select: Vec::new(),
            force: false,
            now: NOW,
            clock: || NOW,
            run: ulid_text(self.ids.next()),
            rebuild: false,
            adopt: false,
            new_root: false,
            without: Vec::new(),
            reread: Vec::new(),
            memory: 1 << 30,
            temp_dir: None,
            jobs: 2,
            fail_fast: false,
            if_locked: IfLocked::Fail,
            stop: Stop::default(),
            plan_only: false,
            pusher: None,
            carrier: None,
        }
    }

    fn run(&self, options: &RunOptions, observer: &dyn Observer) -> RunRecord {
        let project = self.project();
        let job = Job::load(&project, "j").unwrap();
        run(&project, &job, options, &self.ids, observer).unwrap().unwrap().record
    }

    fn commit(&self, edit: &tidetable_store::VersionEdit) -> Version {
        let snapshot = self.store().snapshot("T").unwrap();
        snapshot.table().commit(snapshot.version().clone(), edit, &self.ids, NOW).unwrap()
    }

    /// Deletes the rows that begin with `prefix`.
    fn drop_rows(&self, prefix: &str) {
        let target = DeleteTarget::Prefix { prefix: prefix.as_bytes().to_vec() };
        let plan = DeletePlan::new(&self.store().snapshot("T").unwrap(), target).unwrap();
        self.commit(&plan.edit());
    }

    fn rows(&self) -> Vec<String> {
        let runtime = runtime().unwrap();
        let session = tidetable_sql::Session::open(&self.store(), &tidetable_sql::SessionOptions::default()).unwrap();
        let sql = "select concat(id, ' ', extract(day from ts), ' ', v) as row from T order by 1";
        let found = runtime.block_on(tidetable_sql::first_rows(&session, sql, &[], 1000)).unwrap();
        let text =
            |row: String| serde_json::from_str::<serde_json::Value>(&row).unwrap()["row"].as_str().unwrap().to_owned();
        found.into_iter().map(text).collect()
    }
}

/// Calls a function once before the load is committed, when all its rows are written.
struct AtWritten<'a> {
    done: AtomicBool,
    work: &'a (dyn Fn() + Sync),
}

impl Observer for AtWritten<'_> {
    fn event(&self, event: Event) {
        if matches!(event, Event::Wrote { .. }) && !self.done.swap(true, Ordering::Relaxed) {
            (self.work)();
        }
    }
}

/// Reads the lineage of tables when a part is published, as after a kill there.
struct AtPublish<'a> {
    world: &'a World,
    /// The runs that committed what a table holds, beside its name.
    runs: Mutex<BTreeSet<(&'static str, Option<String>)>>,
}

impl Observer for AtPublish<'_> {
    fn event(&self, event: Event) {
        if !matches!(event, Event::Published { .. }) {
            return;
        }
        let lineage = crate::report::lineage::Lineage::read(&self.world.store(), Some(&self.world.project())).unwrap();
        for table in ["T", "D"] {
            let links = lineage.of(table, None).unwrap().into_iter().filter(|link| link.sequence.is_some());
            self.runs.lock().unwrap().extend(links.map(|link| (table, link.run)));
        }
    }
}

#[test]
fn what_a_run_committed_has_its_name_before_its_end() {
    let world = World::new();
    let derived = "[tables.D]\nfrom = { query = { sql = \"select id, ts, v from T\" } }\nrow_key = \"{id}#{ts:ms}\"\n\
                   families.A.columns = [{ qualifier = \"V\", value = \"{v}\" }]\n";
    world.write("jobs/j/job.toml", &JOB.replace("[exports.E]", &format!("{derived}[exports.E]")));
    // The second run commits to a derived table that has versions of the first.
    for day in [1, 2] {
        world.write_day(day, 1);
        let options = world.options();
        let observer = AtPublish { world: &world, runs: Mutex::default() };
        world.run(&options, &observer);
        let runs = observer.runs.into_inner().unwrap();
        for table in ["T", "D"] {
            assert!(runs.contains(&(table, Some(options.run.clone()))), "{table}, day {day}: {runs:?}");
        }
        assert!(runs.iter().all(|(_, run)| run.is_some()), "{runs:?}");
    }
}

#[test]
fn rows_deleted_beside_a_load_are_gone_and_the_load_goes_on() {
    for rebuild in [false, true] {
        let world = World::new();
        world.write_day(1, 1);
        world.run(&world.options(), &Silent);
        // A changed input rebuilds its window, and a new one of the same window is not hidden by the delete.
        world.write_day(1, 5);
        world.write("in/late.csv", "id,ts,v\na,2020-01-01T11:00:00Z,7\n");
        let observer = AtWritten { done: AtomicBool::default(), work: &|| world.drop_rows("b#") };
        let record = world.run(&RunOptions { rebuild, ..world.options() }, &observer);
        assert!(observer.done.load(Ordering::Relaxed), "the rows were deleted beside it");
        assert_eq!((record.outcome, record.attempts.len()), (Outcome::Ok, 1), "{:?}", record.attempts);
        assert_eq!(record.attempts[0].stage, "load");
        assert_eq!(world.rows(), ["a 1 5", "a 1 7"], "rebuild: {rebuild}");
        assert!(verify(&world.store().table("T"), VerifyOptions::default()).unwrap().is_sound());
        // A tombstone hides cells of inputs seen before it, and none of later ones.
        world.write_day(1, 6);
        world.write_day(2, 2);
        world.run(&world.options(), &Silent);
        assert_eq!(world.rows(), ["a 1 6", "a 1 7", "a 2 2", "b 2 2"]);
    }
}

/// Panics once at an event of a run, as a library might.
struct PanicsAt<'a> {
    is_it: &'a (dyn Fn(&Event) -> bool + Sync),
    done: AtomicBool,
}

impl Observer for PanicsAt<'_> {
    fn event(&self, event: Event) {
        let panics = (self.is_it)(&event) && !self.done.swap(true, Ordering::Relaxed);
        assert!(!panics, "a library gave up");
    }
}

#[test]
fn a_panic_is_the_failure_of_its_run() {
    type IsIt<'a> = &'a (dyn Fn(&Event) -> bool + Sync);
    let moments: [(&str, IsIt<'_>); 3] = [
        ("begun", &|event| matches!(event, Event::Plan(_))),
        ("on a thread of the load", &|event| matches!(event, Event::Wrote { .. })),
        ("published", &|event| matches!(event, Event::Published { .. })),
    ];
    for (moment, is_it) in moments {
        let world = World::new();
        let hook = "[hooks]\nfailure = [\"sh\", \"-c\", \"echo $TIDETABLE_EXIT_CODE $TIDETABLE_ERROR > told\"]\n";
        world.write("jobs/j/job.toml", &format!("{JOB}{hook}"));
        world.write_day(1, 1);
        let project = world.project();
        let job = Job::load(&project, "j").unwrap();
        let observer = PanicsAt { is_it, done: AtomicBool::default() };
        let options = world.options();
        let error = run(&project, &job, &options, &world.ids, &observer).unwrap_err();
        assert!(matches!(error, RunError::Panicked(_)), "{moment}: {error}");
        assert_eq!(error.exit_code(), 1);
        let store = world.store();
        let record = Runs::of(store.blobs().as_ref()).load(&options.run).unwrap().unwrap();
        assert_eq!(record.outcome, Outcome::Failed, "{moment}");
        assert!(record.error.unwrap().contains("a library gave up") && record.finished.is_some());
        let told = std::fs::read_to_string(world.folder.path().join("told")).unwrap();
        assert!(
            told.starts_with("1 ") && told.contains("a library gave up") && told.contains("please report"),
            "{told}"
        );
        // The next run does the rest.
        assert_eq!(world.run(&world.options(), &Silent).outcome, Outcome::Ok, "{moment}");
        assert_eq!(world.rows(), ["a 1 1", "b 1 1"]);
    }
}

/// Generates ids, and requests a stop after a number of them.
#[derive(Debug)]
struct StopsAfter<'a> {
    ids: &'a UlidIds,
    left: AtomicUsize,
    stop: &'a Stop,
}

impl Ids for StopsAfter<'_> {
    fn next(&self) -> u128 {
        if self.left.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.stop.signal().store(15, Ordering::Relaxed);
        }
        self.ids.next()
    }
}

#[test]
fn a_stopped_compaction_changes_nothing_and_leaves_nothing() {
    let world = World::new();
    for day in 1..=6 {
        for part in ["x", "y", "z"] {
            world.write(&format!("in/{day}{part}.csv"), &format!("id,ts,v\n{part},2020-01-{day:02}T10:00:00Z,{day}\n"));
            world.run(&world.options(), &Silent);
        }
    }
    let (store, rows) = (world.store(), world.rows());
    let files = || store.blobs().list("tables/T/sst").unwrap();
    let (before, version) = (files(), store.snapshot("T").unwrap().version().number);
    let mut stopped = 0;
    for after in 1.. {
        let stop = Stop::default();
        let ids = StopsAfter { ids: &world.ids, left: AtomicUsize::new(after), stop: &stop };
        let snapshot = store.snapshot("T").unwrap();
        let plan = CompactionPlan::of_extent(&snapshot, NOW, CompactionExtent::Full).unwrap();
        match compact(&store, plan, CompactionExtent::Full, &ids, &stop) {
            Err(error) => {
                assert!(matches!(error, StoreError::Feed { .. }), "{error}");
                assert_eq!(store.snapshot("T").unwrap().version().number, version);
                stopped += 1;
            }
            Ok(done) => {
                assert!(done.version > version && files() != before);
                break;
            }
        }
        assert_eq!(files(), before, "what was written is removed");
        assert_eq!(world.rows(), rows);
        assert!(verify(&store.table("T"), VerifyOptions::default()).unwrap().is_sound());
    }
    assert!(stopped > 0, "it was stopped on its way");
    assert_eq!(world.rows(), rows);
}

#[test]
fn hashing_an_input_ends_when_the_run_is_asked_to_stop() {
    let world = World::new();
    world.write_day(1, 1);
    let (project, runtime, options) = (world.project(), runtime().unwrap(), world.options());
    let job = Job::load(&project, "j").unwrap();
    let storage = secrets::storage(&project, &job, runtime.handle(), &options).unwrap();
    let input = storage.discover(&job.sources[0].spec).unwrap().remove(0);
    storage.hash(&input).unwrap();
    options.stop.signal().store(2, Ordering::Relaxed);
    assert!(storage.hash(&input).is_err());
}

/// Counts how often each file is read.
#[derive(Debug)]
struct Counted {
    blobs: LocalBlobs,
    reads: Mutex<BTreeMap<String, usize>>,
}

impl Blobs for Counted {
    fn create_new(&self, path: &str, bytes: &[u8]) -> tidetable_blobs::Result<bool> {
        self.blobs.create_new(path, bytes)
    }

    fn replace(&self, path: &str, bytes: &[u8]) -> tidetable_blobs::Result<()> {
        self.blobs.replace(path, bytes)
    }

    fn open_writer(&self, path: &str, mode: WriteMode<'_>) -> tidetable_blobs::Result<Box<dyn BlobWriter>> {
        self.blobs.open_writer(path, mode)
    }

    fn open_staging(
        &self,
        folder: &str,
        parked: Option<&str>,
    ) -> tidetable_blobs::Result<Option<Box<dyn StagingDirectory>>> {
        self.blobs.open_staging(folder, parked)
    }

    fn read_tagged(&self, path: &str) -> tidetable_blobs::Result<Option<(Bytes, Option<Tag>)>> {
        *self.reads.lock().unwrap().entry(path.to_owned()).or_default() += 1;
        self.blobs.read_tagged(path)
    }

    fn open_file(&self, path: &str, mode: OpenMode) -> tidetable_blobs::Result<Arc<dyn ReadAt>> {
        self.blobs.open_file(path, mode)
    }

    fn list_files(&self, folder: &str, listing: Listing<'_>) -> tidetable_blobs::Result<Vec<Listed>> {
        self.blobs.list_files(folder, listing)
    }

    fn stat_all(&self, paths: &[String]) -> tidetable_blobs::Result<Vec<Option<Stat>>> {
        for path in paths {
            *self.reads.lock().unwrap().entry(format!("stat {path}")).or_default() += 1;
        }
        self.blobs.stat_all(paths)
    }

    fn delete_all(&self, paths: &[String]) -> tidetable_blobs::Result<()> {
        self.blobs.delete_all(paths)
    }

    fn place(&self) -> Place<'_> {
        self.blobs.place()
    }
}

#[test]
fn an_idle_run_looks_at_each_export_once() {
    let world = World::new();
    world.write_day(1, 1);
    world.run(&world.options(), &Silent);
    // Of another job.
    let list = std::fs::read_to_string(world.folder.path().join("data/exports/E.json")).unwrap();
    let other = list.replace("\"E\"", "\"G\"").replace("\"j\"", "\"k\"").replace("E_2020", "G_2020");
    world.write("data/exports/G.json", &other);

    let (project, options, runtime) = (world.project(), world.options(), runtime().unwrap());
    let job = Job::load(&project, "j").unwrap();
    let blobs = Arc::new(Counted { blobs: LocalBlobs::new(project.root.clone().into()), reads: Mutex::default() });
    let store = Store::new(Arc::clone(&blobs) as Arc<dyn Blobs>);
    let storage = secrets::storage(&project, &job, runtime.handle(), &options).unwrap();
    let seen = &Seen::load(store.blobs().as_ref(), "j");
    let (observer, reads, failures) = (&Silent, Mutex::default(), Mutex::default());
    let (ids, runtime) = (&world.ids, runtime.handle());
    let idle = Run {
        project: &project,
        job: &job,
        options: &options,
        ids,
        observer,
        store: &store,
        storage: &storage,
        runtime,
        seen,
        reads,
        failures,
        root: &project.root,
        reference: None,
        tally: Tally::default(),
    };
    let mut record = RunRecord { run: options.run.clone(), job: "j".to_owned(), ..RunRecord::default() };
    idle.run(&mut record).unwrap();
    assert!(record.exports.is_empty() && record.loads.iter().all(|load| load.version == load.before));
    let reads = blobs.reads.lock().unwrap().clone();
    let of = |path: &str| reads.get(path).copied().unwrap_or_default();
    for path in ["exports/E.json", "exports/F.json", "exports/G.json"] {
        assert_eq!(of(path), 1, "{path}: {reads:?}");
    }
    assert_eq!(of("stat exports/E_20200101/part-0.parquet"), 1, "{reads:?}");
}

#[test]
fn a_run_is_named_after_those_before_it() {
    let name = |millis: u64, random: u128| Ulid::from_parts(millis, random).to_string();
    assert_eq!(name_after(&name(5, 9), &name(6, 1)), name(6, 1));
    assert_eq!(name_after(&name(900, 9), &name(6, 1)), name(901, 1), "a clock was wrong");
    assert_eq!(name_after(&name(6, 2), &name(6, 1)), name(7, 1));
    assert_eq!(name_after("no ulid", &name(6, 1)), name(6, 1));
    let last = name((1 << 48) - 1, 9);
    assert_eq!(name_after(&last, &name(6, 1)).len(), 26);
}
