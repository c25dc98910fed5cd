//! A whole run, under faults that Ballista injects.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use tidetable_cluster::{Ballista, Chaos, TlsFiles};
use tidetable_job::{Job, Project};
use tidetable_runner::run::IfLocked;
use tidetable_runner::units::UnitCarrier;
use tidetable_runner::{Location, RunOptions, Stop, UlidIds, run};
use tidetable_store::{Ids, ulid_text};

use crate::{clock, start};

const JOB: &str = r#"name = "j"
[sources.readings]
files = ["in/*.csv"]
time = "ts"
[sources.readings.columns]
meter = "uint64"
ts = "timestamp"
kwh = "float64"
[tables.T]
row_key = "{meter:03}#{ts:%Y%m%d}"
[tables.T.families.M]
columns = [{ qualifier = "{ts:%H%M}", value = "{kwh}" }]
[exports.E]
per = "day"
name = "E_{day:%Y%m%d}"
query = { sql = "select meter, ts, kwh from T order by meter, ts" }
"#;

/// Runs under faults: `TIDETABLE_SEEDS` names another number.
fn seeds() -> u64 {
    std::env::var("TIDETABLE_SEEDS").ok().and_then(|seeds| seeds.parse().ok()).unwrap_or(3)
}

/// Runs the job in `root`; the bytes of its published files.
fn published(dir: &Path, root: &str, carrier: Option<Arc<dyn UnitCarrier>>) -> BTreeMap<String, Vec<u8>> {
    let ids = UlidIds::default();
    let project = Project::find(dir).unwrap().with_root(Some(&Location::parse(root).unwrap()));
    let job = Job::load(&project, "j").unwrap();
    let options = RunOptions {
        days: None,
        only: None,
        parts: None,
        select: Vec::new(),
        force: true,
        now: clock(),
        clock,
        run: ulid_text(ids.next()),
        rebuild: carrier.is_some(),
        adopt: false,
        new_root: false,
        without: Vec::new(),
        reread: Vec::new(),
        memory: 64 << 20,
        temp_dir: None,
        jobs: 2,
        fail_fast: true,
        if_locked: IfLocked::Fail,
        stop: Stop::default(),
        plan_only: false,
        pusher: None,
        carrier,
    };
    let report = run(&project, &job, &options, &ids, &tidetable_runner::observe::Silent).unwrap().unwrap();
    assert_eq!(report.record.loads[0].stats.rows_accepted, 6 * 300);
    let mut files = BTreeMap::new();
    for part in std::fs::read_dir(dir.join(root).join("exports")).unwrap() {
        let part = part.unwrap().path();
        if part.is_dir() {
            for file in std::fs::read_dir(&part).unwrap() {
                let file = file.unwrap().path();
                files.insert(
                    file.strip_prefix(dir.join(root)).unwrap().display().to_string(),
                    std::fs::read(&file).unwrap(),
                );
            }
        }
    }
    files
}

#[test]
fn published_bytes_are_those_of_one_process_whatever_fails() {
    let dir = tempfile::tempdir().unwrap();
    let write = |path: &str, text: &str| {
        let path = dir.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    write("tidetable.toml", "root = \"far\"\n");
    write("jobs/j/job.toml", JOB);
    for file in 0..6u64 {
        let mut text = "meter,ts,kwh\n".to_owned();
        for row in 0..300u64 {
            let (meter, day, hour, minute) = ((row * 7 + file) % 10, row % 9 + 1, row % 24, (row / 24 + file * 9) % 60);
            text.push_str(&format!("{meter},2020-01-{day:02}T{hour:02}:{minute:02}:00Z,{row}.{file}\n"));
        }
        write(&format!("in/{file}.csv"), &text);
    }
    let local = published(dir.path(), "local", None);
    assert_eq!(local.len(), 9);
    let cluster = start(dir.path());
    for seed in 0..seeds() {
        let ballista = Ballista::new(&cluster.address, &TlsFiles::default(), &format!("chaos-{seed}")).unwrap();
        let ballista = ballista.with_chaos(Chaos { probability: 0.35, seed });
        let far = published(dir.path(), "far", Some(Arc::new(ballista)));
        assert!(far == local, "seed {seed}");
    }
}
