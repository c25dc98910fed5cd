//! A run on two executors publishes the same bytes and holds the same rows as one in a single process.

use std::fs;

use super::servers::Cluster;
pub use crate::export::sample_bytes::NOW;
use crate::export::sample_bytes::{assert_pinned, published, samples};
use crate::harness::Project;
use crate::load::spills;

/// The cells of a table, sorted.
pub fn cells(project: &Project, root: &str, table: &str) -> Vec<String> {
    let query = format!("SELECT * FROM cells.\"{table}\"");
    let text = project.ok(&["sql", "--root", root, "--output", "csv", "-c", &query]);
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    lines.sort_unstable();
    lines
}

/// The names of the tables in a root.
pub fn tables(project: &Project, root: &str) -> Vec<String> {
    let listed = project.json(&["tables", "--root", root]);
    let tables = listed.iter().filter(|object| object["kind"] == "table");
    tables.map(|table| table["name"].as_str().unwrap().to_owned()).collect()
}

/// Compares two roots.
pub fn assert_same(project: &Project, one: &str, other: &str) {
    let (one_files, other_files) = (published(project, one), published(project, other));
    assert_eq!(one_files.keys().collect::<Vec<_>>(), other_files.keys().collect::<Vec<_>>());
    for (part, files) in &one_files {
        assert!(files == &other_files[part], "{part} has other bytes");
    }
    let names = tables(project, one);
    assert_eq!(names, tables(project, other));
    assert!(!names.is_empty() && !one_files.is_empty());
    for table in names {
        assert!(cells(project, one, &table) == cells(project, other, &table), "{table} has other cells");
    }
}

#[test]
fn all_sample_jobs_give_the_same_bytes() {
    let project = samples();
    project.ok(&["run", "--all", "--root", "local", "--now", NOW]);
    // Those of a build without this feature, too.
    assert_pinned(&project, "local");
    let cluster = Cluster::of(&project, "far");
    project.ok(&["run", "--all", "--root", "far", "--now", NOW, "--on", &cluster.address]);
    assert_same(&project, "local", "far");
    // Nothing is new: nothing is written.
    let before = project.files("far");
    project.ok(&["run", "--all", "--root", "far", "--now", NOW, "--on", &cluster.address]);
    assert!(before == project.files("far"));
    // A rebuild, by units again.
    project.ok(&["run", "--all", "--rebuild", "--root", "far", "--now", NOW, "--on", &cluster.address]);
    assert_same(&project, "local", "far");
    let records = project.json(&["history", "--root", "far"]);
    assert!(!records.is_empty());
    let run =
        project.json(&["run", "smart-meters", "--force", "--root", "far", "--now", NOW, "--on", &cluster.address]);
    let executors = run[0]["executors"].as_array().unwrap();
    assert!(executors.iter().all(|executor| ["one", "two"].contains(&executor["executor"].as_str().unwrap())));
    let units: u64 = executors.iter().map(|executor| executor["units"]["publish"].as_u64().unwrap_or(0)).sum();
    assert!(units > 0, "{run:?}");
    project.ok(&["verify", "--root", "far"]);
}

#[test]
fn units_beyond_their_memory_hold_the_same_cells() {
    let project = spills::project(&spills::readings());
    project.ok(&["run", "j", "--root", "local", "--memory", "2GiB"]);
    fs::create_dir(project.path("scratch")).unwrap();
    let more = ["--memory", "16MiB", "--temp-dir", "scratch"];
    let cluster = Cluster::by(&|args| project.command(args), "far", &[], &more);

    let record = &project.json(&["run", "j", "--root", "far", "--on", &cluster.address])[0];
    for table in spills::TABLES {
        let load = spills::load(record, table);
        assert!(load["bytes_spilled"].as_u64() > Some(1 << 20), "{table}: {load}");
        assert!(cells(&project, "local", table) == cells(&project, "far", table), "{table} has other cells");
    }
    assert!(project.files("scratch").is_empty());
}

/// A job with most that a job may have: rejected rows, a derived table, checks, a Delta log, parts of several files, a table
/// of rows that span windows.
pub const JOB: &str = r#"name = "j"
[sources.readings]
files = ["in/*.csv"]
time = "ts"
max_rejected = "50%"
[sources.readings.columns]
meter = "uint64"
ts = "timestamp"
kwh = "float64"
[tables.T]
row_key = "{meter:03}#{ts:%Y%m%d}"
[tables.T.families.M]
columns = [{ qualifier = "{ts:%H%M}", value = "{kwh}" }]
[tables.WIDE]
row_key = "{meter:03}"
[tables.WIDE.families.M]
columns = [{ qualifier = "{ts:%Y%m%d%H%M}", value = "{kwh}" }]
[tables.DAYS]
from = { query = { sql = "select meter, date_trunc('day', ts) as day, count(*) as n, max(kwh) as top from T group by 1, 2" } }
row_key = "{meter:03}#{day:%Y%m%d}"
[tables.DAYS.families.D]
columns = [{ qualifier = "n", value = "{n}" }, { qualifier = "top", value = "{top}" }]
[exports.E]
per = "day"
name = "E_{day:%Y%m%d}"
query = { sql = "select meter, ts, kwh from T order by meter, ts" }
[exports.LOG]
per = "day"
name = "LOG/dt={day:%Y-%m-%d}"
delta = true
query = { sql = "select cast(meter as bigint) as meter, ts, kwh from T order by meter, ts" }
[exports.SMALL]
per = "day"
name = "SMALL_{day:%Y%m%d}"
file_size = "4KiB"
query = { sql = "select meter, ts, kwh from T order by meter, ts" }
[exports.TOTAL]
per = "query"
name = "TOTAL"
query = { sql = "select meter, sum(n) as n, max(top) as top from DAYS group by meter order by meter" }
[checks.enough]
on = "T"
rows = { min = 1 }
[checks.low]
on = "E"
severity = "warn"
range = { kwh = { max = 390 } }
"#;

/// A file of readings; every 50th row has no number.
pub fn readings(file: u64, days: u64) -> String {
    let mut text = "meter,ts,kwh\n".to_owned();
    for row in 0..400u64 {
        let (meter, day, hour) = ((row * 7 + file) % 20, (row + file) % days + 1, row % 24);
        let minute = (row / 24 + file * 5) % 60;
        let kwh = if row % 50 == 49 { "none".to_owned() } else { format!("{}.{}", row, file) };
        text.push_str(&format!("{meter},2020-01-{day:02}T{hour:02}:{minute:02}:00Z,{kwh}\n"));
    }
    text
}

#[test]
fn changed_grown_and_missing_inputs_give_the_same_results() {
    let project = Project::new("j", JOB);
    (0..12).for_each(|file| project.write(&format!("in/{file:02}.csv"), readings(file, 9)));
    let cluster = Cluster::of(&project, "far");
    let both = |more: &[&str]| {
        let local = project.json(&[&["run", "j", "--root", "local", "--now", NOW], more].concat()).remove(0);
        let on = ["run", "j", "--root", "far", "--now", NOW, "--on", &cluster.address];
        let far = project.json(&[&on, more].concat()).remove(0);
        assert_same(&project, "local", "far");
        for key in ["outcome", "rows_rejected", "notes", "checks"] {
            assert_eq!(local[key], far[key], "{key}");
        }
        let rejected = |run: &serde_json::Value, root: &str| {
            let path = run["rejected"].as_str().map(|path| project.read(&format!("{root}/{path}")));
            let mut lines: Vec<String> = path.unwrap_or_default().lines().map(str::to_owned).collect();
            lines.sort_unstable();
            lines
        };
        assert_eq!(rejected(&local, "local"), rejected(&far, "far"));
        let broken = |root: &str| {
            let query = "select check_name, label, count(*) as n from runs.failing_rows group by 1, 2 order by 1, 2";
            project.ok(&["sql", "--root", root, "--output", "csv", "-c", query])
        };
        assert_eq!(broken("local"), broken("far"));
    };
    both(&[]);
    project.write("in/03.csv", readings(40, 5));
    let grown = project.read("in/05.csv") + "3,2020-01-04T05:06:07Z,12.5\n";
    project.write("in/05.csv", grown);
    project.write("in/90.csv", readings(90, 12));
    both(&[]);
    fs::remove_file(project.path("in/07.csv")).unwrap();
    both(&["--without", "in/07.csv"]);
    both(&["--rebuild"]);
    both(&["--force"]);
    // A compaction by units leaves the same cells.
    project.ok(&["compact", "WIDE", "--full", "--root", "local", "--now", NOW]);
    project.ok(&["compact", "WIDE", "--full", "--root", "far", "--now", NOW, "--on", &cluster.address]);
    assert_same(&project, "local", "far");
}
