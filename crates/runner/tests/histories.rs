//! Random histories of a job with exports: inputs that grow, change and lose rows, deleted rows, changing queries and
//! settings, compactions, damaged and lost published files. After each run the published files equal, to the
//! byte, what a fresh store with the same tables publishes; and without deletes, what the existing inputs
//! give. Accumulating exports equal a model.
//!
//! `TIDETABLE_HISTORIES` sets their number; a failure names its history, and `TIDETABLE_HISTORY` repeats it.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tempfile::TempDir;
use tidetable_job::{Job, Project};
use tidetable_runner::observe::Silent;
use tidetable_runner::record::Outcome;
use tidetable_runner::run::IfLocked;
use tidetable_runner::{RunOptions, Stop, UlidIds, compact, open_store, plan_job, run};
use tidetable_sql::{Session, SessionOptions, first_rows};
use tidetable_store::DeletePlan;
use tidetable_store::version::DeleteTarget;
use tidetable_store::{Ids, ulid_text};
use tidetable_upkeep::compaction::{CompactionExtent, CompactionPlan};

/// Default number of histories.
const USUAL: u64 = 1;
const STEPS: usize = 4;
/// Of the usual ones.
const FEW: usize = 1;
const FILES: usize = 3;
const ZONES: [&str; 3] = ["UTC", "Europe/Paris", "America/Sao_Paulo"];
const NOW: i64 = 1_790_000_000_000_000;

/// Deterministic random numbers (splitmix64).
struct Random(u64);

impl Random {
    fn below(&mut self, most: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % most.max(1) as u64) as usize
    }
}

/// A row of an input: id, hour since the first day, value. An id occurs in one file only.
type Reading = (String, usize, usize);

struct World {
    folder: TempDir,
    zone: &'static str,
    least: usize,
    files: Vec<Vec<Reading>>,
    dropped: bool,
    /// Rows of the upserted export with `per = "query"`, by id.
    kept: BTreeMap<String, String>,
    ids: UlidIds,
}

fn job(zone: &str, least: usize) -> String {
    let readings = format!("select \\\"Id\\\", ts, v from T where v >= {least} order by \\\"Id\\\", ts");
    let peaks =
        format!("select \\\"Id\\\", max(v) as v from T where v >= {least} group by \\\"Id\\\" order by \\\"Id\\\"");
    let counts = "select count(*) as n, sum(v) as v from T".to_owned();
    let mut text = format!(
        "name = \"j\"\ntimezone = \"{zone}\"\n[sources.readings]\nfiles = [\"in/*.csv\"]\ntime = \"ts\"\n\
         [sources.readings.columns]\nId = \"text\"\nts = \"timestamp\"\nv = \"int64\"\n\
         [tables.T]\nrow_key = \"{{Id}}#{{ts:ms}}\"\n[tables.T.families.A]\n\
         columns = [{{ qualifier = \"v\", value = \"{{v}}\" }}]\n"
    );
    for (name, per, template, more, sql) in [
        ("E", "day", "E_{day:%Y%m%d}", "", &readings),
        ("F", "day", "F_{day:%Y%m%d}", "mode = \"upsert\"\nkeys = [\"Id\", \"ts\"]", &readings),
        ("G", "day", "G/dt={day}", "format = \"csv\"", &readings),
        ("C", "day", "C_{day:%Y%m%d}", "", &counts),
        ("H", "hour", "H_{hour:%Y%m%d%H}", "format = \"arrow\"", &readings),
        ("M", "month", "M_{month:%Y%m}", "", &peaks),
        ("Q", "query", "Q", "", &peaks),
        ("U", "query", "U", "mode = \"upsert\"\nkeys = [\"Id\"]", &peaks),
    ] {
        text.push_str(&format!(
            "[exports.{name}]\nper = \"{per}\"\nname = \"{template}\"\n{more}\nquery = {{ sql = \"{sql}\" }}\n"
        ));
    }
    text
}

fn options(ids: &UlidIds) -> RunOptions {
    RunOptions {
        days: None,
        only: None,
        parts: None,
        select: Vec::new(),
        force: false,
        now: NOW,
        clock: || NOW,
        run: ulid_text(ids.next()),
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

/// Parts and their bytes, of all exports except the accumulating one.
fn published(root: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![root.join("data/exports")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten() {
            let path = entry.unwrap().path();
            let inside = path.strip_prefix(root.join("data/exports")).unwrap().to_owned();
            if path.is_dir() {
                folders.push(path);
            } else if inside.components().count() > 1 && !inside.starts_with("U") {
                found.insert(inside, fs::read(path).unwrap());
            }
        }
    }
    found
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        match entry.path().is_dir() {
            true => copy(&entry.path(), &to.join(entry.file_name())),
            false => drop(fs::copy(entry.path(), to.join(entry.file_name())).unwrap()),
        }
    }
}

impl World {
    fn new(random: &mut Random) -> Self {
        let world = Self {
            folder: TempDir::new().unwrap(),
            zone: ZONES[random.below(ZONES.len())],
            least: 0,
            files: vec![Vec::new(); FILES],
            dropped: false,
            kept: BTreeMap::new(),
            ids: UlidIds::default(),
        };
        fs::create_dir_all(world.root().join("in")).unwrap();
        fs::write(world.root().join("tidetable.toml"), "root = \"data\"\n").unwrap();
        world
    }

    fn root(&self) -> PathBuf {
        self.folder.path().to_owned()
    }

    fn write(&self, root: &Path) {
        fs::create_dir_all(root.join("jobs/j")).unwrap();
        fs::create_dir_all(root.join("in")).unwrap();
        fs::write(root.join("jobs/j/job.toml"), job(self.zone, self.least)).unwrap();
        fs::write(root.join("tidetable.toml"), "root = \"data\"\n").unwrap();
        for (at, rows) in self.files.iter().enumerate().filter(|(_, rows)| !rows.is_empty()) {
            let line = |(id, hour, v): &Reading| {
                format!("{id},2026-04-{:02}T{:02}:10:00Z,{v}\n", 29 + hour / 24, hour % 24)
                    .replace("2026-04-31", "2026-05-01")
                    .replace("2026-04-32", "2026-05-02")
            };
            // A unique row, so that no two files have the same content and none is empty.
            let own = format!("own{at},2026-06-{:02}T12:00:00Z,7\n", at + 1);
            let text = format!("Id,ts,v\n{own}{}", rows.iter().map(line).collect::<String>());
            let path = root.join(format!("in/{at}.csv"));
            if fs::read_to_string(&path).ok().as_deref() != Some(&text) {
                fs::write(path, text).unwrap();
            }
        }
    }

    fn reading(&self, random: &mut Random, file: usize) -> Reading {
        let hours = [0, 1, 12, 21, 22, 23, 24, 26, 36, 46, 47, 70, 71, 80];
        (format!("{file}{}", ["a", "b", "c"][random.below(3)]), hours[random.below(hours.len())], random.below(10))
    }

    fn change(&mut self, random: &mut Random) -> String {
        let file = random.below(FILES);
        match random.below(9) {
            0..=2 => {
                for _ in 0..=random.below(4) {
                    let reading = self.reading(random, file);
                    self.files[file].push(reading);
                }
                format!("{file} grows")
            }
            3 => {
                let keep = random.below(3);
                self.files[file].retain(|(_, hour, _)| hour % 3 == keep);
                self.files[file].push(("gone".to_owned() + &file.to_string(), 12, 1));
                format!("{file} loses rows")
            }
            4 => {
                self.files[file].iter_mut().for_each(|(_, _, v)| *v = (*v + 3) % 10);
                format!("{file} has other values")
            }
            5 => {
                self.least = 5 - self.least;
                format!("rows from {}", self.least)
            }
            6 => self.drop_rows(random).unwrap_or_default(),
            7 => self.compact().unwrap_or_default(),
            _ => self.harm(random),
        }
    }

    fn project(&self) -> Project {
        Project::find(&self.root()).unwrap()
    }

    fn drop_rows(&mut self, random: &mut Random) -> Option<String> {
        let store = open_store(&self.project()).unwrap();
        let snapshot = store.snapshot("T").ok()?;
        let prefix = format!("{}{}", random.below(FILES), ["a", "b", "c"][random.below(3)]);
        let plan = DeletePlan::new(&snapshot, DeleteTarget::Prefix { prefix: prefix.clone().into_bytes() }).unwrap();
        let edit = plan.edit();
        if !edit.is_empty() {
            snapshot.table().commit(snapshot.version().clone(), &edit, &self.ids, NOW).unwrap();
        }
        self.dropped = true;
        Some(format!("rows {prefix} are dropped"))
    }

    fn compact(&self) -> Option<String> {
        let store = open_store(&self.project()).unwrap();
        let snapshot = store.snapshot("T").ok()?;
        let plan = CompactionPlan::of_extent(&snapshot, NOW, CompactionExtent::Full).unwrap();
        compact(&store, plan, CompactionExtent::Full, &self.ids, &Stop::default()).unwrap();
        Some("compacted".to_owned())
    }

    /// Damages, truncates or removes a published file that can be made again.
    fn harm(&self, random: &mut Random) -> String {
        let files: Vec<PathBuf> = published(&self.root()).into_keys().collect();
        if files.is_empty() {
            return String::new();
        }
        let file = &files[random.below(files.len())];
        let path = self.root().join("data/exports").join(file);
        let mut bytes = fs::read(&path).unwrap();
        // Clocks of file systems may be no finer than this.
        std::thread::sleep(Duration::from_millis(20));
        match random.below(3) {
            0 => fs::remove_file(path).unwrap(),
            1 => fs::write(path, &bytes[..bytes.len() / 2]).unwrap(),
            _ => {
                let middle = bytes.len() / 2;
                bytes[middle] ^= 0x55;
                fs::write(path, bytes).unwrap();
            }
        }
        format!("{} is harmed", file.display())
    }

    fn run(&self, root: &Path) -> Vec<(String, String)> {
        let project = Project::find(root).unwrap();
        let job = Job::load(&project, "j").unwrap();
        let report = run(&project, &job, &options(&self.ids), &self.ids, &Silent).unwrap().unwrap();
        assert_eq!(report.record.outcome, Outcome::Ok, "{:?}", report.record.exports);
        report.record.exports.into_iter().map(|part| (part.export, part.label)).collect()
    }

    fn rows(&self, query: &str) -> Vec<String> {
        let store = open_store(&self.project()).unwrap();
        let session = Session::open(&store, &SessionOptions::default()).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(first_rows(&session, query, &[], 10_000)).unwrap()
    }

    /// Runs the job and compares.
    fn check(&mut self, said: &str) {
        self.write(&self.root());
        let done = self.run(&self.root());
        let mine = published(&self.root());
        let compare = |fresh: &Path, what: &str| {
            let theirs = published(fresh);
            assert_eq!(mine.keys().collect::<Vec<_>>(), theirs.keys().collect::<Vec<_>>(), "{what}: {said}");
            let differs = mine.iter().find(|(path, bytes)| theirs[*path] != **bytes);
            assert!(differs.is_none(), "{what}: {:?}: {said}", differs.map(|(path, _)| path));
        };
        let fresh = TempDir::new().unwrap();
        self.write(fresh.path());
        copy(&self.root().join("data/tables"), &fresh.path().join("data/tables"));
        self.run(fresh.path());
        compare(fresh.path(), "the same tables");
        if !self.dropped {
            let fresh = TempDir::new().unwrap();
            self.write(fresh.path());
            self.run(fresh.path());
            compare(fresh.path(), "the same inputs");
        }
        // Accumulation: rows of the query replace those with their keys.
        if done.iter().any(|(export, _)| export == "U") {
            for row in self.rows("SELECT * FROM exports.\"Q\" ORDER BY \"Id\"") {
                self.kept.insert(row.split("\"v\"").next().unwrap().to_owned(), row);
            }
        }
        let kept: Vec<String> = self.kept.values().cloned().collect();
        assert_eq!(self.rows("SELECT * FROM exports.\"U\" ORDER BY \"Id\""), kept, "accumulated: {said}");
        let project = self.project();
        let job = Job::load(&project, "j").unwrap();
        let plan = plan_job(&project, &job, &options(&self.ids), &self.ids).unwrap();
        assert!(plan.is_empty(), "{:?}: {said}", plan.lines());
        assert_eq!(self.run(&self.root()), [], "nothing is left to do: {said}");
    }
}

fn history(seed: u64, steps: usize) {
    let mut random = Random(seed);
    let mut world = World::new(&mut random);
    let mut said = format!("TIDETABLE_HISTORY={seed}, {}", world.zone);
    for file in 0..FILES {
        let reading = world.reading(&mut random, file);
        world.files[file].push(reading);
    }
    world.check(&said);
    for _ in 0..steps {
        for _ in 0..=random.below(2) {
            said = format!("{said}; {}", world.change(&mut random));
        }
        world.check(&format!("{said}; run"));
        said.push_str("; run");
    }
}

#[test]
fn what_is_published_is_what_a_fresh_build_publishes() {
    let number = |name: &str| std::env::var(name).ok().and_then(|value| value.parse::<u64>().ok());
    match number("TIDETABLE_HISTORY") {
        Some(seed) => history(seed, STEPS),
        None => match number("TIDETABLE_HISTORIES") {
            Some(histories) => (0..histories).for_each(|seed| history(seed, STEPS)),
            None => (0..USUAL).for_each(|seed| history(seed, FEW)),
        },
    }
}
