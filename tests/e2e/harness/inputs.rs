//! Inputs of rows `d`, `ts`, `v` in January 2020, which a job `j` loads into the table `T` and may publish as the export `E`.

use std::fs::{self, OpenOptions};
use std::io::Write;

use super::Project;

/// `d`, the day of January 2020, and `v`.
pub type Row<'a> = (&'a str, u32, i64);

/// Rows as lines of CSV.
pub fn lines(rows: &[Row<'_>]) -> String {
    rows.iter().map(|(d, day, v)| format!("{d},2020-01-{day:02}T00:00:00Z,{v}\n")).collect()
}

/// Writes a file of rows.
pub fn put(project: &Project, path: &str, rows: &[Row<'_>]) {
    project.write(path, format!("d,ts,v\n{}", lines(rows)));
}

/// Appends text to a file.
pub fn append(project: &Project, path: &str, text: &str) {
    OpenOptions::new().append(true).open(project.path(path)).unwrap().write_all(text.as_bytes()).unwrap();
}

/// Renames a file.
pub fn rename(project: &Project, from: &str, to: &str) {
    fs::rename(project.path(from), project.path(to)).unwrap();
}

/// The rows of the table, each as `D#DAY=V`.
pub fn contents(project: &Project) -> String {
    contents_in(project, "data")
}

fn contents_in(project: &Project, root: &str) -> String {
    let query = "select d || '#' || to_char(ts, '%d') as row_key, v from T order by 1";
    let rows = project.json(&["sql", "--root", root, "-c", query]);
    let text = |row: &serde_json::Value| format!("{}={}", row["row_key"].as_str().unwrap_or_default(), row["v"]);
    rows.iter().map(text).collect::<Vec<_>>().join(" ")
}

/// Asserts that a second run changes nothing.
pub fn assert_up_to_date(project: &Project) {
    let before = project.files("data");
    project.ok(&["run", "j"]);
    assert_eq!(project.files("data"), before, "a second run changes nothing");
}

/// Asserts that a second run changes nothing, and that a run in a fresh root loads and publishes the same.
pub fn assert_same_as_fresh(project: &Project) {
    assert_up_to_date(project);
    project.ok(&["run", "j", "--root", "fresh", "--new-root"]);
    assert_eq!(contents(project), contents_in(project, "fresh"));
    let published = |root: &str| -> Vec<(String, Vec<u8>)> {
        let files = project.files(root).into_iter().filter(|(name, _)| name.contains("/E_202001"));
        files.map(|(name, bytes)| (name.replacen(root, "", 1), bytes)).collect()
    };
    assert_eq!(published("data").is_empty(), !project.read("jobs/j/job.toml").contains("[exports.E]"));
    assert_eq!(published("data"), published("fresh"));
    fs::remove_dir_all(project.path("fresh")).unwrap();
}
