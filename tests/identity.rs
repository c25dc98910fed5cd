//! Which name of a source has which rows: files that are renamed, copied, changed, removed and put back.

use std::fs::{self, File};
use std::time::{Duration, SystemTime};

use crate::harness::{Project, json_lines};

/// A job of sums: rows by name, day by day in windows of `window`.
fn sums(files: &str, window: &str) -> Project {
    let job = format!(
        "name = \"j\"\n[sources.s]\nfiles = [{files}]\ntime = \"ts\"\n[sources.s.columns]\nd = \"text\"\nts = \"timestamp\"\n\
         v = \"int64\"\n[tables.T]\nrow_key = \"{{d}}#{{ts:%Y%m%d}}\"\nwindow = \"{window}\"\n[tables.T.families.A]\n\
         kind = \"sum\"\ncolumns = [{{ qualifier = \"v\", value = \"{{v}}\", timestamp = 0 }}]\n"
    );
    Project::new("j", &job)
}

/// Rows of `d day value` words, days of January 2020.
fn put(project: &Project, path: &str, rows: &[(&str, u32, i64)]) {
    let rows = rows.iter().map(|(d, day, v)| format!("{d},2020-01-{day:02}T00:00:00Z,{v}\n"));
    project.write(path, format!("d,ts,v\n{}", rows.collect::<String>()));
}

fn rename(project: &Project, from: &str, to: &str) {
    fs::rename(project.path(from), project.path(to)).unwrap();
}

/// All cells, as `row=value`.
fn cells(project: &Project) -> String {
    cells_in(project, "data")
}

fn cells_in(project: &Project, root: &str) -> String {
    let query = "select d || '#' || to_char(ts, '%Y%m%d') as row_key, v from T order by 1";
    let rows = json_lines(&project.ok(&["sql", "--root", root, "--output", "json", "-c", query]));
    let text = |row: &serde_json::Value| format!("{}={}", row["row_key"].as_str().unwrap_or_default(), row["v"]);
    rows.iter().map(text).collect::<Vec<_>>().join(" ")
}

/// What a run says.
fn said(project: &Project, args: &[&str]) -> String {
    let ran = project.run(args);
    assert_eq!(ran.code, Some(0), "{args:?}: {}{}", ran.stdout, ran.stderr);
    ran.stderr
}

/// Nothing is left to do, and a table of a fresh root is the same.
fn settled(project: &Project) {
    let before = project.files("data");
    project.ok(&["run", "j"]);
    assert_eq!(project.files("data"), before, "a second run changes nothing");
    project.ok(&["run", "j", "--root", "fresh"]);
    assert_eq!(cells(project), cells_in(project, "fresh"));
    fs::remove_dir_all(project.path("fresh")).unwrap();
}

#[test]
fn a_pattern_without_a_match_hides_no_other() {
    let project = sums("\"in/*.csv\", \"in/*.tsv\"", "day");
    put(&project, "in/1.csv", &[("x", 1, 1)]);
    let missing = project.fails(1, &["run", "j"]);
    assert!(missing.contains("in/*.tsv"), "a table that is not there yet needs all its patterns: {missing}");
    put(&project, "in/2.tsv", &[]);
    project.write("in/2.tsv", "d\tts\tv\n");
    let job = project.read("jobs/j/job.toml").replace("\"in/*.tsv\"", "\"in/*.txt\"");
    project.write("jobs/j/job.toml", job);
    put(&project, "in/2.txt", &[("x", 2, 2)]);
    project.ok(&["run", "j"]);
    fs::remove_file(project.path("in/2.txt")).unwrap();
    put(&project, "in/3.csv", &[("x", 3, 3)]);
    let said = said(&project, &["run", "j"]);
    assert!(said.contains("no file matches \"in/*.txt\"") && said.contains("in/2.txt is gone"), "{said}");
    assert!(!said.contains("in/1.csv is gone"), "{said}");
    assert_eq!(cells(&project), "x#20200101=1 x#20200102=2 x#20200103=3");
}

#[test]
fn a_renamed_input_goes_on_beside_a_changed_one() {
    let project = sums("\"in/*.csv\"", "month");
    put(&project, "in/a.csv", &[("x", 1, 5), ("x", 2, 5)]);
    put(&project, "in/b.csv", &[("y", 1, 1)]);
    project.ok(&["run", "j"]);
    rename(&project, "in/a.csv", "in/z.csv");
    put(&project, "in/b.csv", &[("y", 1, 1), ("y", 3, 2)]);
    let said = said(&project, &["run", "j"]);
    assert!(said.contains("in/z.csv is in/a.csv under another name"), "{said}");
    assert_eq!(cells(&project), "x#20200101=5 x#20200102=5 y#20200101=1 y#20200103=2");
    settled(&project);
    // It keeps its place in time: what is deleted of it stays deleted, whatever it is called.
    project.ok(&["delete", "T", "--row", "x#20200101", "--yes"]);
    rename(&project, "in/z.csv", "in/c.csv");
    put(&project, "in/b.csv", &[("y", 1, 7)]);
    project.ok(&["run", "j"]);
    assert_eq!(cells(&project), "x#20200102=5 y#20200101=7");
}

#[test]
fn an_input_that_is_left_out_counts_for_nothing() {
    for follow in [&["--without", "in/a.csv"][..], &[]] {
        let project = sums("\"in/*.csv\"", "day");
        put(&project, "in/a.csv", &[("x", 1, 5), ("x", 2, 5)]);
        put(&project, "in/b.csv", &[("y", 1, 1)]);
        project.ok(&["run", "j"]);
        rename(&project, "in/a.csv", "in/y.csv");
        put(&project, "in/b.csv", &[("y", 1, 2)]);
        project.ok(&[&["run", "j"], follow].concat());
        assert_eq!(cells(&project), "x#20200101=5 x#20200102=5 y#20200101=2", "{follow:?}");
        settled(&project);
    }
    // Left out as a whole, in one commit, also where no window is built anew otherwise; then its content is new again.
    let project = sums("\"in/*.csv\"", "day");
    put(&project, "in/a.csv", &[("x", 1, 5), ("x", 2, 5)]);
    put(&project, "in/b.csv", &[("y", 1, 1)]);
    project.ok(&["run", "j"]);
    rename(&project, "in/a.csv", "a.csv");
    let told = said(&project, &["run", "j", "--without", "in/a.csv"]);
    assert!(told.contains("in/a.csv is gone: its rows are removed for good"), "{told}");
    assert_eq!(cells(&project), "y#20200101=1");
    rename(&project, "a.csv", "in/new.csv");
    project.ok(&["run", "j"]);
    assert_eq!(cells(&project), "x#20200101=5 x#20200102=5 y#20200101=1");
    settled(&project);
}

#[test]
fn all_inputs_that_stand_in_the_way_are_named_at_once() {
    let project = sums("\"in/*.csv\"", "day");
    for (file, days) in [("a", [1, 2]), ("b", [2, 3]), ("c", [3, 4]), ("d", [5, 6])] {
        put(&project, &format!("in/{file}.csv"), &[(file, days[0], 1), (file, days[1], 1)]);
    }
    put(&project, "in/e.csv", &[("e", 1, 1)]);
    project.ok(&["run", "j"]);
    let before = cells(&project);
    for file in ["a", "b", "d"] {
        rename(&project, &format!("in/{file}.csv"), &format!("{file}.csv"));
    }
    put(&project, "in/e.csv", &[("e", 1, 2)]);
    let told = project.fails(1, &["run", "j"]);
    // Without a, the second of January must be built anew, which b is of.
    assert!(told.contains("--without in/a.csv --without in/b.csv") && !told.contains("in/d.csv"), "{told}");
    assert_eq!(cells(&project), before);
    project.ok(&["run", "j", "--without", "in/a.csv", "--without", "in/b.csv"]);
    assert_eq!(cells(&project), "c#20200103=1 c#20200104=1 d#20200105=1 d#20200106=1 e#20200101=2");
    let rebuilt = project.fails(1, &["run", "j", "--rebuild"]);
    assert!(rebuilt.contains("--without in/d.csv") && !rebuilt.contains("in/a.csv"), "{rebuilt}");
}

#[test]
fn a_copy_takes_over_with_the_sequence_of_its_first_sight() {
    let project = sums("\"in/*.csv\"", "day");
    put(&project, "in/k.csv", &[("x", 1, 5), ("y", 1, 5)]);
    project.ok(&["run", "j"]);
    fs::copy(project.path("in/k.csv"), project.path("in/j.csv")).unwrap();
    assert!(said(&project, &["run", "j"]).contains("in/j.csv has the same content as in/k.csv"));
    project.ok(&["delete", "T", "--row", "x#20200101", "--yes"]);
    assert_eq!(cells(&project), "y#20200101=5");
    // The copy was there before the delete.
    put(&project, "in/k.csv", &[("z", 1, 1)]);
    project.ok(&["run", "j"]);
    assert_eq!(cells(&project), "y#20200101=5 z#20200101=1");
    settled_but_for_deletes(&project);
    // One that comes later was not.
    put(&project, "in/l.csv", &[("x", 1, 5), ("y", 1, 5)]);
    project.ok(&["run", "j"]);
    fs::remove_file(project.path("in/j.csv")).unwrap();
    project.ok(&["run", "j"]);
    assert_eq!(cells(&project), "x#20200101=5 y#20200101=5 z#20200101=1");
    settled(&project);
}

fn settled_but_for_deletes(project: &Project) {
    let before = project.files("data");
    project.ok(&["run", "j"]);
    assert_eq!(project.files("data"), before, "a second run changes nothing");
}

#[test]
fn a_delete_of_nothing_holds_for_the_inputs_seen_so_far() {
    let project = sums("\"in/*.csv\"", "day");
    put(&project, "in/a.csv", &[("y", 1, 1)]);
    project.ok(&["run", "j"]);
    let told = project.ok(&["delete", "T", "--row", "x#20200101", "--yes"]);
    assert!(told.contains("0 cells") && told.contains("bring later"), "{told}");
    put(&project, "in/a.csv", &[("x", 1, 2), ("y", 1, 2)]);
    project.ok(&["run", "j"]);
    assert_eq!(cells(&project), "y#20200101=2");
    put(&project, "in/b.csv", &[("x", 1, 3)]);
    project.ok(&["run", "j"]);
    assert_eq!(cells(&project), "x#20200101=3 y#20200101=2", "what comes later is not deleted");
    project.ok(&["drop-rows", "T", "--prefix", "nothing", "--yes"]);
    let before = project.files("data");
    project.ok(&["drop-rows", "T", "--prefix", "nothing", "--yes"]);
    assert_eq!(project.files("data"), before, "once is enough");
}

#[test]
fn a_change_that_keeps_size_and_time_is_found() {
    let project = sums("\"in/*.csv\"", "day");
    let long_ago = SystemTime::UNIX_EPOCH + Duration::from_secs(1_500_000_000);
    let put_at = |path: &str, v: i64| {
        put(&project, path, &[("x", 1, v)]);
        File::options().append(true).open(project.path(path)).unwrap().set_modified(long_ago).unwrap();
    };
    put_at("in/a.csv", 1);
    project.ok(&["run", "j"]);
    assert_eq!(cells(&project), "x#20200101=1");
    // Written over, and the time put back.
    put_at("in/a.csv", 2);
    project.ok(&["run", "j"]);
    assert_eq!(cells(&project), "x#20200101=2");
    // Another file in its place.
    put_at("b.csv", 3);
    rename(&project, "b.csv", "in/a.csv");
    project.ok(&["run", "j"]);
    assert_eq!(cells(&project), "x#20200101=3");
    settled(&project);
}

#[test]
fn a_file_that_is_only_touched_is_nothing_new() {
    let project = sums("\"in/*.csv\"", "day");
    put(&project, "in/a.csv", &[("x", 1, 1)]);
    project.ok(&["run", "j"]);
    let touched = SystemTime::UNIX_EPOCH + Duration::from_secs(1_500_000_000);
    File::options().append(true).open(project.path("in/a.csv")).unwrap().set_modified(touched).unwrap();
    let record = project.run_job("j");
    let load = &record["loads"][0];
    assert_eq!(load["rows_read"], 0);
    assert_eq!(load["version"], 1, "a run that changes nothing commits nothing");
    // The next commit says how it looks now.
    put(&project, "in/b.csv", &[("x", 2, 1)]);
    project.ok(&["run", "j"]);
    let manifest = project.read("data/tables/T/manifest/00000000000000000002.json");
    assert!(manifest.contains("\"path\":\"in/a.csv\"") && manifest.contains("\"1500000000000000000 "), "{manifest}");
    settled(&project);
}

/// A job whose table a table and an export are made from.
const FOLLOWED: &str = r#"
name = "j"
[sources.s]
files = ["in/*.csv"]
time = "ts"
[sources.s.columns]
d = "text"
ts = "timestamp"
v = "int64"
[tables.T]
row_key = "{d}#{ts:%Y%m%d}"
window = "day"
[tables.T.families.A]
kind = "sum"
columns = [{ qualifier = "v", value = "{v}", timestamp = 0 }]
[tables.D]
from = { query = { sql = "SELECT ts, count(*) AS n, sum(v) AS v FROM T GROUP BY ts" } }
row_key = "{ts:%Y%m%d}"
[tables.D.families.A]
columns = [{ qualifier = "n", value = "{n}" }, { qualifier = "v", value = "{v}" }]
[exports.E]
per = "day"
name = "E_{day:%Y%m%d}"
query = { sql = "SELECT d, ts, v FROM T ORDER BY d" }
"#;

/// Numbers from a seed.
struct Random(u64);

impl Random {
    fn below(&mut self, most: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % most
    }
}

/// What tables and exports hold.
fn all_of(project: &Project, root: &str) -> String {
    let query = "select 'T' as t, d || '#' || to_char(ts, '%Y%m%d') as k, v from T union all \
         select 'D', to_char(ts, '%Y%m%d') || '#' || n, v from D union all \
         select 'E', d || '#' || to_char(ts, '%Y%m%d'), v from exports.E order by 1, 2";
    project.ok(&["sql", "--root", root, "-c", query, "--output", "csv"])
}

#[test]
fn what_follows_a_table_follows_the_names_of_its_inputs() {
    // More of them with TIDETABLE_HISTORIES=100.
    let histories = std::env::var("TIDETABLE_HISTORIES").ok().and_then(|many| many.parse().ok()).unwrap_or(1);
    for seed in 1..=histories {
        let (project, mut random) = (Project::new("j", FOLLOWED), Random(seed));
        put(&project, "in/a.csv", &[("first", 1, 1)]);
        let mut contents = 0;
        for step in 0..6 {
            let before = project.files("in");
            for _ in 0..=random.below(3) {
                let files: Vec<String> = project.files("in").into_keys().collect();
                let file = files[random.below(files.len())].clone();
                let other = format!("in/{}.csv", ["a", "b", "c", "d", "e"][random.below(5)]);
                let is_another = file != other;
                match random.below(4) {
                    0 if is_another => rename(&project, &file, &other),
                    1 if is_another => drop(fs::copy(project.path(&file), project.path(&other)).unwrap()),
                    _ => {
                        contents += 1;
                        let days = [1 + random.below(4) as u32, 1 + random.below(4) as u32];
                        let name = format!("r{contents}");
                        put(&project, &other, &[(name.as_str(), days[0], contents), ("all", days[1], contents)]);
                    }
                }
            }
            // A table that is made at once knows nothing of what is gone.
            let there = project.files("in");
            let gone: Vec<&String> = before.keys().filter(|name| !there.contains_key(*name)).collect();
            let mut run = vec!["run", "j"];
            gone.iter().for_each(|name| run.extend(["--without", name.as_str()]));
            project.ok(&run);
            let held = all_of(&project, "data");
            project.ok(&["run", "j", "--root", "fresh"]);
            assert_eq!(held, all_of(&project, "fresh"), "seed {seed}, step {step}");
            fs::remove_dir_all(project.path("fresh")).unwrap();
            let plan = project.ok(&["plan", "j", "--output", "csv"]);
            assert!(!plan.contains("publish"), "seed {seed}, step {step}: {plan}");
        }
    }
}
