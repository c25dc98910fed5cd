//! Identity of inputs: files that are renamed, copied, changed, removed and restored.

use std::fs::{self, File};
use std::time::{Duration, SystemTime};

use crate::harness::inputs::{append, assert_same_as_fresh, assert_up_to_date, contents, lines, put, rename};
use crate::harness::{Project, gz, zip, zst};

/// A job of sums: rows by name, day by day in windows of `window`.
fn sums(files: &str, window: &str) -> Project {
    let job = format!(
        "name = \"j\"\n[sources.s]\nfiles = [{files}]\ntime = \"ts\"\n[sources.s.columns]\nd = \"text\"\nts = \"timestamp\"\n\
         v = \"int64\"\n[tables.T]\nrow_key = \"{{d}}#{{ts:%Y%m%d}}\"\nwindow = \"{window}\"\n[tables.T.families.A]\n\
         kind = \"sum\"\ncolumns = [{{ qualifier = \"v\", value = \"{{v}}\", timestamp = 0 }}]\n"
    );
    Project::new("j", &job)
}

#[test]
fn pattern_without_a_match_does_not_hide_other_patterns() {
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
    let said = project.messages(&["run", "j"]);
    assert!(said.contains("no file matches \"in/*.txt\"") && said.contains("in/2.txt is gone"), "{said}");
    assert!(!said.contains("in/1.csv is gone"), "{said}");
    assert_eq!(contents(&project), "x#01=1 x#02=2 x#03=3");
}

#[test]
fn inputs_that_lose_rows_and_patterns_without_a_file_are_warnings() {
    let project = sums("\"in/*.csv\"", "month");
    put(&project, "in/1.csv", &[("x", 1, 1), ("x", 2, 2), ("x", 3, 3)]);
    project.ok(&["run", "j"]);

    put(&project, "in/1.csv", &[("x", 1, 1), ("x", 2, 5), ("x", 3, 3)]);
    let told = project.succeeds(&["run", "j", "--quiet"]).stderr;
    assert!(!told.contains("warning"), "{told}");
    put(&project, "in/1.csv", &[("x", 1, 1)]);
    let told = project.succeeds(&["run", "j", "--quiet"]).stderr;
    assert!(
        told.contains(
            "warning: in/1.csv has 1 of the 3 rows that it had; if it was cut short, put the whole file back"
        ),
        "{told}"
    );

    project.write("in/1.csv", "");
    let told = project.succeeds(&["run", "j", "--quiet"]).stderr;
    assert!(told.contains("warning: in/1.csv has no rows any more"), "{told}");
    for no_rows in ["\n", "d,ts,v\nd,ts,v\n"] {
        put(&project, "in/1.csv", &[("x", 1, 1), ("x", 2, 2)]);
        project.ok(&["run", "j"]);
        let rows = contents(&project);
        project.write("in/1.csv", no_rows);
        let told = project.succeeds(&["run", "j", "--quiet"]).stderr;
        assert!(told.contains("warning: in/1.csv has no rows any more"), "{no_rows:?}: {told}");
        assert_eq!(contents(&project), rows, "{no_rows:?}");
        project.write("in/1.csv", "");
        project.ok(&["run", "j"]);
    }
    fs::remove_dir_all(project.path("in")).unwrap();
    let told = project.succeeds(&["run", "j", "--quiet"]).stderr;
    assert!(told.contains("warning: source") && told.contains("no file matches \"in/*.csv\""), "{told}");
}

#[test]
fn renamed_input_keeps_its_sequence_beside_a_changed_one() {
    let project = sums("\"in/*.csv\"", "month");
    put(&project, "in/a.csv", &[("x", 1, 5), ("x", 2, 5)]);
    put(&project, "in/b.csv", &[("y", 1, 1)]);
    project.ok(&["run", "j"]);
    rename(&project, "in/a.csv", "in/z.csv");
    put(&project, "in/b.csv", &[("y", 1, 1), ("y", 3, 2)]);
    let said = project.messages(&["run", "j"]);
    assert!(said.contains("in/z.csv is in/a.csv under another name"), "{said}");
    assert_eq!(contents(&project), "x#01=5 x#02=5 y#01=1 y#03=2");
    assert_same_as_fresh(&project);
    // It keeps its sequence number: its deleted rows stay deleted under any name.
    project.ok(&["delete", "T", "--row", "x#20200101", "--yes"]);
    rename(&project, "in/z.csv", "in/c.csv");
    put(&project, "in/b.csv", &[("y", 1, 7)]);
    project.ok(&["run", "j"]);
    assert_eq!(contents(&project), "x#02=5 y#01=7");
}

#[test]
fn excluded_input_is_removed_from_all_windows() {
    for follow in [&["--without", "in/a.csv"][..], &[]] {
        let project = sums("\"in/*.csv\"", "day");
        put(&project, "in/a.csv", &[("x", 1, 5), ("x", 2, 5)]);
        put(&project, "in/b.csv", &[("y", 1, 1)]);
        project.ok(&["run", "j"]);
        rename(&project, "in/a.csv", "in/y.csv");
        put(&project, "in/b.csv", &[("y", 1, 2)]);
        project.ok(&[&["run", "j"], follow].concat());
        assert_eq!(contents(&project), "x#01=5 x#02=5 y#01=2", "{follow:?}");
        assert_same_as_fresh(&project);
    }
    // Excluded from all windows in one commit, even if no window is rebuilt otherwise; then its content is new again.
    let project = sums("\"in/*.csv\"", "day");
    put(&project, "in/a.csv", &[("x", 1, 5), ("x", 2, 5)]);
    put(&project, "in/b.csv", &[("y", 1, 1)]);
    project.ok(&["run", "j"]);
    rename(&project, "in/a.csv", "a.csv");
    let told = project.messages(&["run", "j", "--without", "in/a.csv"]);
    assert!(told.contains("in/a.csv is gone: the run removes its rows for good"), "{told}");
    assert_eq!(contents(&project), "y#01=1");
    rename(&project, "a.csv", "in/new.csv");
    project.ok(&["run", "j"]);
    assert_eq!(contents(&project), "x#01=5 x#02=5 y#01=1");
    assert_same_as_fresh(&project);
}

#[test]
fn error_names_all_missing_inputs_of_a_rebuild() {
    let project = sums("\"in/*.csv\"", "day");
    for (file, days) in [("a", [1, 2]), ("b", [2, 3]), ("c", [3, 4]), ("d", [5, 6])] {
        put(&project, &format!("in/{file}.csv"), &[(file, days[0], 1), (file, days[1], 1)]);
    }
    put(&project, "in/e.csv", &[("e", 1, 1)]);
    project.ok(&["run", "j"]);
    let before = contents(&project);
    for file in ["a", "b", "d"] {
        rename(&project, &format!("in/{file}.csv"), &format!("{file}.csv"));
    }
    put(&project, "in/e.csv", &[("e", 1, 2)]);
    let told = project.fails(4, &["run", "j"]);
    // Without a, January 2 must be rebuilt, to which b contributes.
    assert!(told.contains("with --without in/a.csv --without in/b.csv, and run again"), "{told}");
    assert_eq!(contents(&project), before);
    project.ok(&["run", "j", "--without", "in/a.csv", "--without", "in/b.csv"]);
    assert_eq!(contents(&project), "c#03=1 c#04=1 d#05=1 d#06=1 e#01=2");
    let rebuilt = project.fails(1, &["run", "j", "--rebuild"]);
    assert!(rebuilt.contains("--without in/d.csv") && !rebuilt.contains("in/a.csv"), "{rebuilt}");
}

#[test]
fn copy_replaces_its_original_at_its_own_sequence_number() {
    let project = sums("\"in/*.csv\"", "day");
    put(&project, "in/k.csv", &[("x", 1, 5), ("y", 1, 5)]);
    project.ok(&["run", "j"]);
    fs::copy(project.path("in/k.csv"), project.path("in/j.csv")).unwrap();
    assert!(project.messages(&["run", "j"]).contains("in/j.csv has the same content as in/k.csv"));
    project.ok(&["delete", "T", "--row", "x#20200101", "--yes"]);
    assert_eq!(contents(&project), "y#01=5");
    // The copy was there before the delete.
    put(&project, "in/k.csv", &[("z", 1, 1)]);
    project.ok(&["run", "j"]);
    assert_eq!(contents(&project), "y#01=5 z#01=1");
    assert_up_to_date(&project);
    // A later copy was not.
    put(&project, "in/l.csv", &[("x", 1, 5), ("y", 1, 5)]);
    project.ok(&["run", "j"]);
    fs::remove_file(project.path("in/j.csv")).unwrap();
    project.ok(&["run", "j"]);
    assert_eq!(contents(&project), "x#01=5 y#01=5 z#01=1");
    assert_same_as_fresh(&project);
}

#[test]
fn delete_without_matches_applies_to_known_inputs() {
    let project = sums("\"in/*.csv\"", "day");
    put(&project, "in/a.csv", &[("y", 1, 1)]);
    project.ok(&["run", "j"]);
    let told = project.ok(&["delete", "T", "--row", "x#20200101", "--yes"]);
    assert!(told.contains("0 cells") && told.contains("deliver later"), "{told}");
    put(&project, "in/a.csv", &[("x", 1, 2), ("y", 1, 2)]);
    project.ok(&["run", "j"]);
    assert_eq!(contents(&project), "y#01=2");
    put(&project, "in/b.csv", &[("x", 1, 3)]);
    project.ok(&["run", "j"]);
    assert_eq!(contents(&project), "x#01=3 y#01=2", "what comes later is not deleted");
    project.ok(&["drop-rows", "T", "--prefix", "nothing", "--yes"]);
    let before = project.files("data");
    project.ok(&["drop-rows", "T", "--prefix", "nothing", "--yes"]);
    assert_eq!(project.files("data"), before, "once is enough");
}

#[test]
fn change_that_keeps_size_and_mtime_is_found() {
    let project = sums("\"in/*.csv\"", "day");
    let long_ago = SystemTime::UNIX_EPOCH + Duration::from_secs(1_500_000_000);
    let put_at = |path: &str, v: i64| {
        put(&project, path, &[("x", 1, v)]);
        File::options().append(true).open(project.path(path)).unwrap().set_modified(long_ago).unwrap();
    };
    put_at("in/a.csv", 1);
    project.ok(&["run", "j"]);
    assert_eq!(contents(&project), "x#01=1");
    // Overwritten, with the modification time restored.
    put_at("in/a.csv", 2);
    project.ok(&["run", "j"]);
    assert_eq!(contents(&project), "x#01=2");
    // Replaced by another file.
    put_at("b.csv", 3);
    rename(&project, "b.csv", "in/a.csv");
    project.ok(&["run", "j"]);
    assert_eq!(contents(&project), "x#01=3");
    assert_same_as_fresh(&project);
}

#[test]
fn touched_file_is_not_loaded_again() {
    let project = sums("\"in/*.csv\"", "day");
    put(&project, "in/a.csv", &[("x", 1, 1)]);
    project.ok(&["run", "j"]);
    let touched = SystemTime::UNIX_EPOCH + Duration::from_secs(1_500_000_000);
    File::options().append(true).open(project.path("in/a.csv")).unwrap().set_modified(touched).unwrap();
    let record = project.run_job("j");
    let load = &record["loads"][0];
    assert_eq!(load["rows_read"], 0);
    assert_eq!(load["version"], 1, "a run that changes nothing commits nothing");
    // The next commit records its new modification time.
    put(&project, "in/b.csv", &[("x", 2, 1)]);
    project.ok(&["run", "j"]);
    let manifest = project.read("data/tables/T/manifest/00000000000000000002.json");
    assert!(manifest.contains("\"path\":\"in/a.csv\"") && manifest.contains("\"1500000000000000000 "), "{manifest}");
    assert_same_as_fresh(&project);
}

/// A job with a derived table and an export of its table.
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
fn derived_tables_and_exports_follow_renamed_inputs() {
    // TIDETABLE_HISTORIES=100 runs more of them.
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
            // A fresh table does not know the removed inputs.
            let there = project.files("in");
            let gone: Vec<&String> = before.keys().filter(|name| !there.contains_key(*name)).collect();
            let mut run = vec!["run", "j"];
            gone.iter().for_each(|name| run.extend(["--without", name.as_str()]));
            project.ok(&run);
            let held = all_of(&project, "data");
            project.ok(&["run", "j", "--root", "fresh", "--new-root"]);
            assert_eq!(held, all_of(&project, "fresh"), "seed {seed}, step {step}");
            fs::remove_dir_all(project.path("fresh")).unwrap();
            let plan = project.ok(&["plan", "j", "--output", "csv"]);
            assert!(!plan.contains("publish"), "seed {seed}, step {step}: {plan}");
        }
    }
}

/// What is left of a CSV that something truncated.
const EMPTIED: [(&str, &str); 4] = [
    ("nothing", ""),
    ("a line end", "\n"),
    ("its header", "d,ts,v\n"),
    ("its header and blank lines", "d,ts,v\r\n\r\n\n"),
];

#[test]
fn an_emptied_input_keeps_its_rows_until_it_is_left_out() {
    for schema in ["freeze", "evolve", "reject"] {
        let project = sums("\"in/*.csv\"", "day");
        let job =
            project.read("jobs/j/job.toml").replace("time = \"ts\"", &format!("time = \"ts\"\nschema = \"{schema}\""));
        project.write("jobs/j/job.toml", job + "[exports.E]\nper = \"day\"\nname = \"E_{day:%Y%m%d}\"\nquery = { sql = \"select d, ts, v from T\" }\n");
        put(&project, "in/a.csv", &[("x", 1, 1), ("x", 2, 2)]);
        put(&project, "in/b.csv", &[("y", 2, 5)]);
        project.ok(&["run", "j"]);
        for (what, text) in EMPTIED {
            project.write("in/a.csv", text);
            let planned = project.ok(&["plan", "j"]);
            assert!(planned.contains("in/a.csv") && planned.contains("empty"), "{schema}, {what}: {planned}");
            let ran = project.succeeds(&["run", "j"]);
            let said = ran.stdout + &ran.stderr;
            assert!(!said.contains("withdrawn"), "{schema}, {what}: {said}");
            assert_eq!(contents(&project), "x#01=1 x#02=2 y#02=5", "{schema}, {what}");
            assert_eq!(project.sql("select count(*) as n from exports.E")[0]["n"], 3, "{schema}, {what}");
        }
        // Its window cannot be rebuilt without its rows.
        put(&project, "in/b.csv", &[("y", 2, 6)]);
        let refused = project.run(&["run", "j"]);
        assert_ne!(refused.code, Some(0), "{}", refused.stderr);
        assert!(refused.stderr.contains("--without in/a.csv"), "{}", refused.stderr);
        // Filled again, it is a changed input.
        put(&project, "in/a.csv", &[("x", 1, 1), ("x", 2, 3)]);
        project.ok(&["run", "j"]);
        assert_eq!(contents(&project), "x#01=1 x#02=3 y#02=6", "{schema}");
        project.write("in/a.csv", "");
        project.ok(&["run", "j", "--without", "in/a.csv"]);
        assert_eq!(contents(&project), "y#02=6", "{schema}");
        project.ok(&["run", "j"]);
        assert_up_to_date(&project);
        put(&project, "in/a.csv", &[("x", 3, 4)]);
        project.ok(&["run", "j"]);
        assert_eq!(contents(&project), "x#03=4 y#02=6", "{schema}");
    }
}

#[test]
fn an_emptied_input_of_any_form_keeps_its_rows() {
    let csv = "d,ts,v\nx,2020-01-01T00:00:00Z,1\n";
    let json = "{\"d\":\"x\",\"ts\":\"2020-01-01T00:00:00Z\",\"v\":1}\n";
    let rows = csv.split_once('\n').unwrap().1;
    for (name, keys, full, emptied) in [
        ("a.json", "", json.to_owned(), vec!["", "\n"]),
        ("a.ndjson", "format = \"json\"\n", json.to_owned(), vec!["", "\n\n"]),
        ("a.csv", "csv = { header = false }\n", rows.to_owned(), vec!["", "\n"]),
        (
            "a.csv",
            "csv = { skip = 2 }\n",
            format!("made by\na logger\n{csv}"),
            vec!["", "made by\na logger\n", "made by\n"],
        ),
        ("a.csv", "", csv.to_owned(), vec!["\u{feff}", "\u{feff}d,ts,v\n"]),
    ] {
        let project = sums("\"in/*\"", "day");
        let job = project.read("jobs/j/job.toml").replace("time = \"ts\"\n", &format!("time = \"ts\"\n{keys}"));
        project.write("jobs/j/job.toml", job);
        let path = format!("in/{name}");
        project.write(&path, &full);
        project.ok(&["run", "j"]);
        for text in emptied {
            project.write(&path, text);
            let ran = project.succeeds(&["run", "j"]);
            assert_eq!(contents(&project), "x#01=1", "{keys}{text:?}: {}{}", ran.stdout, ran.stderr);
        }
        project.write(&path, full.replace(",1\n", ",2\n").replace(":1}", ":2}"));
        project.ok(&["run", "j"]);
        assert_eq!(contents(&project), "x#01=2", "{keys}");
    }
}

#[test]
fn an_emptied_packed_input_is_no_copy_of_another_empty_one() {
    let project = sums("\"in/*.csv.gz\"", "day");
    project.write("in/a.csv.gz", gz("d,ts,v\nx,2020-01-01T00:00:00Z,1\n"));
    project.write("in/b.csv.gz", "");
    project.write("in/c.csv.gz", gz(""));
    project.ok(&["run", "j"]);
    // Cut to 0 bytes, and to the packing of nothing: as those that never had rows.
    for emptied in [b"".to_vec(), fs::read(project.path("in/c.csv.gz")).unwrap()] {
        project.write("in/a.csv.gz", emptied);
        let said = project.messages(&["run", "j"]);
        assert!(!said.contains("same content"), "{said}");
        assert_eq!(contents(&project), "x#01=1");
        assert_up_to_date(&project);
    }
    project.write("in/a.csv.gz", gz("d,ts,v\nx,2020-01-01T00:00:00Z,2\n"));
    project.ok(&["run", "j"]);
    assert_eq!(contents(&project), "x#01=2");
}

#[test]
fn an_emptied_archive_keeps_its_rows() {
    let row = |value: u8| format!("d,ts,v\nx,2020-01-01T00:00:00Z,{value}\n");
    for (ending, packed) in [("zst", zst as fn(&str) -> Vec<u8>), ("zip", zip)] {
        let project = sums(&format!("\"in/*.csv.{ending}\""), "day");
        let path = format!("in/a.csv.{ending}");
        project.write(&path, packed(&row(1)));
        project.ok(&["run", "j"]);
        for emptied in [Vec::new(), packed(""), packed("d,ts,v\n")] {
            project.write(&path, emptied);
            let ran = project.succeeds(&["run", "j"]);
            assert_eq!(contents(&project), "x#01=1", "{ending}: {}{}", ran.stdout, ran.stderr);
        }
        project.write(&path, packed(&row(2)));
        project.ok(&["run", "j"]);
        assert_eq!(contents(&project), "x#01=2", "{ending}");
    }
}

#[test]
fn files_without_rows_are_no_copies_of_each_other() {
    let project = sums("\"in/*.csv\"", "day");
    put(&project, "in/a.csv", &[("x", 1, 1)]);
    put(&project, "in/b.csv", &[]);
    put(&project, "in/c.csv", &[]);
    project.ok(&["run", "j"]);
    put(&project, "in/d.csv", &[]);
    let said = project.messages(&["run", "j"]);
    assert!(!said.contains("same content"), "{said}");
    assert_up_to_date(&project);
    // A rotated file: its rows go on under another name, and the old name is empty.
    fs::copy(project.path("in/a.csv"), project.path("in/a-1.csv")).unwrap();
    put(&project, "in/a.csv", &[]);
    project.ok(&["run", "j"]);
    project.ok(&["run", "j"]);
    assert_up_to_date(&project);
    assert_eq!(contents(&project), "x#01=1");
    put(&project, "in/a.csv", &[("x", 2, 2)]);
    project.ok(&["run", "j"]);
    assert_eq!(contents(&project), "x#01=1 x#02=2");
}

/// Writes a packed copy of a file, and removes the file.
fn pack_in_place(project: &Project, path: &str) {
    project.write(&format!("{path}.gz"), gz(project.read(path)));
    fs::remove_file(project.path(path)).unwrap();
}

#[test]
fn an_input_that_is_packed_keeps_its_place() {
    let project = sums("\"in/*.csv*\"", "day");
    let cells = project.read("jobs/j/job.toml").replace("kind = \"sum\"\n", "");
    project.write("jobs/j/job.toml", cells);
    put(&project, "in/1.csv", &[("x", 1, 1), ("x", 2, 2)]);
    put(&project, "in/2.csv", &[("y", 1, 1)]);
    project.ok(&["run", "j"]);
    put(&project, "in/3.csv", &[("x", 1, 9), ("y", 1, 9)]);
    project.ok(&["run", "j"]);

    // Its rows come again with none of the correction's places.
    pack_in_place(&project, "in/1.csv");
    let planned = project.ok(&["plan", "j"]);
    assert!(planned.contains("in/1.csv.gz"), "{planned}");
    project.ok(&["run", "j"]);
    assert_eq!(contents(&project), "x#01=9 x#02=2 y#01=9");
    assert_up_to_date(&project);
    let touched = fs::read(project.path("in/1.csv.gz")).unwrap();
    project.write("in/1.csv.gz", touched);
    project.ok(&["run", "j"]);
    assert_eq!(contents(&project), "x#01=9 x#02=2 y#01=9");

    // It grew after it was loaded, and was packed then.
    append(&project, "in/2.csv", &lines(&[("y", 2, 2), ("y", 3, 3)]));
    pack_in_place(&project, "in/2.csv");
    project.ok(&["run", "j"]);
    assert_eq!(contents(&project), "x#01=9 x#02=2 y#01=9 y#02=2 y#03=3");
    assert_same_as_fresh(&project);

    // A window that is rebuilt is read from the packed files.
    put(&project, "in/3.csv", &[("x", 1, 8)]);
    project.ok(&["run", "j"]);
    assert_eq!(contents(&project), "x#01=8 x#02=2 y#01=1 y#02=2 y#03=3");
}

#[test]
fn other_content_behind_a_packed_name_is_a_new_input() {
    let project = sums("\"in/*.csv*\"", "day");
    put(&project, "in/1.csv", &[("x", 1, 1)]);
    project.ok(&["run", "j"]);
    put(&project, "in/1.csv", &[("x", 2, 2)]);
    pack_in_place(&project, "in/1.csv");
    let said = project.messages(&["run", "j"]);
    assert!(said.contains("in/1.csv is gone"), "{said}");
    assert_eq!(contents(&project), "x#01=1 x#02=2");
}

#[test]
fn a_name_that_is_used_again_is_a_warning() {
    let project = sums("\"in/log.csv*\"", "day");
    let job = project.read("jobs/j/job.toml").replace("time = \"ts\"", "format = \"csv\"\ntime = \"ts\"");
    project.write("jobs/j/job.toml", job);
    put(&project, "in/log.csv.1", &[("x", 1, 1)]);
    put(&project, "in/log.csv", &[("x", 2, 2)]);
    project.ok(&["run", "j"]);

    // The oldest is taken away; the others get other names.
    rename(&project, "in/log.csv", "in/log.csv.1");
    put(&project, "in/log.csv", &[("x", 3, 3)]);
    let told = project.succeeds(&["run", "j", "--quiet"]).stderr;
    assert!(
        told.contains("warning: in/log.csv.1 has rows of other days than it had: those of 2020-01-01 are removed"),
        "{told}"
    );
    assert!(!told.contains("warning: in/log.csv has"), "its former rows are those of in/log.csv.1: {told}");
    assert_eq!(contents(&project), "x#02=2 x#03=3");

    // A corrected day is no other day.
    put(&project, "in/log.csv", &[("x", 3, 4), ("y", 3, 1)]);
    let told = project.succeeds(&["run", "j", "--quiet"]).stderr;
    assert!(!told.contains("warning"), "{told}");
}
