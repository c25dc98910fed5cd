//! Files that have grown: only what they grew by is loaded, so that files which are gone do not stand in the way, and the
//! table is what a table made at once would be.

use std::fs::{self, OpenOptions};
use std::io::Write;

use crate::harness::{Project, json_lines};

/// A job with months as windows; `kind` is that of its family.
fn job(kind: &str) -> Project {
    let job = format!(
        "name = \"j\"\n[sources.s]\nfiles = [\"in/*.csv\"]\ntime = \"ts\"\nmax_rejected = \"10%\"\n[sources.s.columns]\nd = \"text\"\n\
         ts = \"timestamp\"\nv = \"int64\"\n[tables.T]\nrow_key = \"{{d}}#{{ts:%Y%m%d}}\"\nwindow = \"month\"\n[tables.T.families.A]\n\
         {kind}columns = [{{ qualifier = \"v\", value = \"{{v}}\", timestamp = 0 }}]\n\
         [exports.E]\nper = \"day\"\nname = \"E_{{day:%Y%m%d}}\"\nformat = \"csv\"\nquery = {{ sql = \"select d, v from T order by d\" }}\n"
    );
    Project::new("j", &job)
}

const SUM: &str = "kind = \"sum\"\n";
const NEWEST: &str = "";

fn lines(rows: &[(&str, u32, i64)]) -> String {
    rows.iter().map(|(d, day, v)| format!("{d},2020-01-{day:02}T00:00:00Z,{v}\n")).collect()
}

fn put(project: &Project, path: &str, rows: &[(&str, u32, i64)]) {
    project.write(path, format!("d,ts,v\n{}", lines(rows)));
}

fn append(project: &Project, path: &str, text: &str) {
    OpenOptions::new().append(true).open(project.path(path)).unwrap().write_all(text.as_bytes()).unwrap();
}

fn cells(project: &Project) -> String {
    cells_in(project, "data")
}

fn cells_in(project: &Project, root: &str) -> String {
    let query = "select d || '#' || to_char(ts, '%d') as row_key, v from T order by 1";
    let rows = json_lines(&project.ok(&["sql", "--root", root, "--output", "json", "-c", query]));
    let text = |row: &serde_json::Value| format!("{}={}", row["row_key"].as_str().unwrap_or_default(), row["v"]);
    rows.iter().map(text).collect::<Vec<_>>().join(" ")
}

/// What a run that ends well says.
fn said(project: &Project, args: &[&str]) -> String {
    let ran = project.run(args);
    assert_eq!(ran.code, Some(0), "{args:?}: {}{}", ran.stdout, ran.stderr);
    ran.stderr
}

/// Nothing is left to do, and a table of a fresh root holds the same and is published the same.
fn settled(project: &Project) {
    let before = project.files("data");
    project.ok(&["run", "j"]);
    assert_eq!(project.files("data"), before, "a second run changes nothing");
    project.ok(&["run", "j", "--root", "fresh"]);
    assert_eq!(cells(project), cells_in(project, "fresh"));
    let published = |root: &str| -> Vec<(String, Vec<u8>)> {
        let files = project.files(root).into_iter().filter(|(name, _)| name.contains("/E_202001"));
        files.map(|(name, bytes)| (name.replacen(root, "", 1), bytes)).collect()
    };
    assert!(!published("data").is_empty());
    assert_eq!(published("data"), published("fresh"));
    fs::remove_dir_all(project.path("fresh")).unwrap();
}

#[test]
fn a_file_that_is_gone_does_not_stand_in_the_way_of_one_that_grows() {
    let (both, own) = ([("y", 1, 2), ("z", 3, 7)], [("z", 3, 7), ("z", 4, 8)]);
    for (kind, gone, grown, more) in [
        (SUM, "in/a.csv", "in/b.csv", both),
        (SUM, "in/b.csv", "in/a.csv", both),
        (NEWEST, "in/a.csv", "in/b.csv", both),
        (NEWEST, "in/b.csv", "in/a.csv", own),
    ] {
        let project = job(kind);
        put(&project, "in/a.csv", &[("x", 1, 5), ("x", 2, 5)]);
        put(&project, "in/b.csv", &[("y", 1, 1)]);
        project.ok(&["run", "j"]);
        fs::rename(project.path(gone), project.path("gone.csv")).unwrap();
        append(&project, grown, &lines(&more));
        let told = format!("{grown} grew by {} bytes", lines(&more).len());
        let plan = project.ok(&["plan", "j"]);
        let bytes = format!("{} B", lines(&more).len());
        let is_planned = |line: &str| line.contains(grown) && line.contains("grown") && line.contains(&bytes);
        assert!(plan.lines().any(is_planned), "{plan}");
        let said = said(&project, &["run", "j"]);
        assert!(said.contains("inputs: 1 grown"), "{said}");
        assert!(said.contains(&format!("{told}: 2 rows are appended")), "{said}");
        // Put back, it is as it was; what a table made at once would hold is there.
        let held = cells(&project);
        fs::rename(project.path("gone.csv"), project.path(gone)).unwrap();
        settled(&project);
        assert_eq!(held, cells(&project));
    }
}

#[test]
fn what_a_later_file_wrote_is_not_hidden_by_one_that_grows() {
    let project = job(NEWEST);
    put(&project, "in/a.csv", &[("x", 1, 5), ("x", 2, 5)]);
    put(&project, "in/b.csv", &[("y", 1, 1)]);
    project.ok(&["run", "j"]);
    fs::rename(project.path("in/b.csv"), project.path("gone.csv")).unwrap();
    append(&project, "in/a.csv", &lines(&[("y", 1, 2)]));
    let before = project.files("data/tables");
    let told = project.fails(1, &["run", "j"]);
    assert!(told.contains("--without in/b.csv"), "{told}");
    assert_eq!(project.files("data/tables"), before);
    fs::rename(project.path("gone.csv"), project.path("in/b.csv")).unwrap();
    let said = said(&project, &["run", "j"]);
    assert!(said.contains("in/a.csv changed: the windows it touches are rebuilt"), "{said}");
    assert_eq!(cells(&project), "x#01=5 x#02=5 y#01=1");
    settled(&project);
    // The same value makes no difference.
    append(&project, "in/a.csv", &lines(&[("y", 1, 1)]));
    assert!(self::said(&project, &["run", "j"]).contains("in/a.csv grew by"));
    settled(&project);
}

#[test]
fn rejected_rows_are_told_by_their_lines_and_judged_with_the_whole_file() {
    let project = job(SUM);
    let good: Vec<(&str, u32, i64)> = (1..=20).map(|day| ("x", day, 1)).collect();
    put(&project, "in/a.csv", &good);
    append(&project, "in/a.csv", "x,then,1\n");
    project.ok(&["run", "j"]);
    append(&project, "in/a.csv", "x,now,1\ny,2020-01-05T00:00:00Z,3\n");
    project.ok(&["run", "j"]);
    let rejects = project.sql("select line, raw from runs.rejects order by 1");
    let rejects: Vec<String> = rejects.iter().map(|row| format!("{} {}", row["line"], row["raw"])).collect();
    assert_eq!(rejects, ["22 \"x,then,1\"", "23 \"x,now,1\""]);
    settled(&project);
    let before = project.files("data/tables");
    append(&project, "in/a.csv", "x,later,1\n");
    assert!(project.fails(1, &["run", "j"]).contains("10%"));
    assert_eq!(project.files("data/tables"), before);
}

#[test]
fn a_line_that_goes_on_is_another_line() {
    let project = job(SUM);
    project.write("in/a.csv", "d,ts,v\nx,2020-01-01T00:00:00Z,1\ny,2020-01-02T00:00:00Z,2");
    project.ok(&["run", "j"]);
    append(&project, "in/a.csv", "\nz,2020-01-02T00:00:00Z,3");
    assert!(said(&project, &["run", "j"]).contains(": 1 row is appended"));
    settled(&project);
    append(&project, "in/a.csv", "4\n");
    assert!(said(&project, &["run", "j"]).contains("in/a.csv changed"));
    assert_eq!(cells(&project), "x#01=1 y#02=2 z#02=34");
    settled(&project);
    // Other rows than before are no growth, however many follow.
    project
        .write("in/a.csv", "d,ts,v\nx,2020-01-01T00:00:00Z,9\ny,2020-01-02T00:00:00Z,2\nz,2020-01-02T00:00:00Z,34\n");
    append(&project, "in/a.csv", &lines(&[("z", 5, 1)]));
    assert!(said(&project, &["run", "j"]).contains("in/a.csv changed"));
    settled(&project);
}

#[test]
fn deletes_and_copies_hold_for_what_a_file_grows_by() {
    let project = job(SUM);
    put(&project, "in/a.csv", &[("x", 1, 5)]);
    put(&project, "in/b.csv", &[("y", 1, 1)]);
    project.ok(&["run", "j"]);
    fs::copy(project.path("in/a.csv"), project.path("in/c.csv")).unwrap();
    project.ok(&["run", "j"]);
    // The copy holds what the file was, and takes it over beside it.
    append(&project, "in/a.csv", &lines(&[("x", 1, 2), ("x", 2, 2)]));
    project.ok(&["run", "j"]);
    assert_eq!(cells(&project), "x#01=12 x#02=2 y#01=1");
    settled(&project);
    project.ok(&["delete", "T", "--row", "x#20200101", "--yes"]);
    append(&project, "in/a.csv", &lines(&[("x", 1, 9), ("x", 2, 9)]));
    assert!(said(&project, &["run", "j"]).contains("in/a.csv grew by"));
    assert_eq!(cells(&project), "x#02=11 y#01=1");
}
