//! `tidetable read`: selection and order of rows and cells.

use serde_json::{Value, json};

use crate::harness::Project;

const JOB: &str = readings_job!("in/*.csv", "", "");

/// Meters 1 to 300, two cells each: so many that reading backwards takes several pieces.
fn project() -> Project {
    let project = Project::new("j", &JOB.replace("\"{ts:%H%M}\"", "\"{ts:%H}00\""));
    let mut rows = String::from("meter,ts,kwh\n");
    for meter in 1..=300 {
        for time in ["00:00", "00:30", "12:00"] {
            rows.push_str(&format!("{meter},2020-01-01T{time}:00Z,{meter}.5\n"));
        }
    }
    project.write("in/a.csv", rows);
    project.ok(&["run", "j"]);
    project
}

fn read(project: &Project, more: &[&str]) -> Vec<Value> {
    project.json(&[&["read", "T"], more].concat())
}

fn keys(project: &Project, more: &[&str]) -> Vec<String> {
    read(project, more).iter().map(|row| row["key"].as_str().unwrap()[..3].to_owned()).collect()
}

#[test]
fn ranges_without_a_key_or_time_are_refused() {
    let project = project();
    for (range, says) in [
        (["--start", "z", "--end", "a"], "no row key lies between --start \"z\" and --end \"a\""),
        (["--start", "a", "--end", "a"], "no row key lies between"),
        (["--from", "2020-01-02", "--to", "2020-01-01"], "no time lies between --from 2020-01-02"),
    ] {
        let told = project.fails(2, &[&["read", "T"][..], &range].concat());
        assert!(told.contains(says), "{told}");
    }
}

#[test]
fn rows_are_selected_by_regex_limit_and_direction() {
    let project = project();
    assert_eq!(keys(&project, &["--regex", "..7#2020010[12]", "--prefix", "01"]), ["017"]);
    // The whole key must match.
    assert!(keys(&project, &["--regex", "007"]).is_empty());
    assert_eq!(keys(&project, &["--regex", "(00|29).*", "--count", "2"]), ["001", "002"]);
    let all = keys(&project, &[]);
    let mut backward = all.clone();
    backward.reverse();
    assert_eq!((all.len(), keys(&project, &["--reverse"])), (300, backward));
    assert_eq!(keys(&project, &["--reversed", "--limit", "2"]), ["300", "299"]);
    assert_eq!(keys(&project, &["--reverse", "--start", "010", "--end", "013"]), ["012", "011", "010"]);
    assert_eq!(keys(&project, &["--reverse", "--keys-only", "--regex", ".*1#.*", "--limit", "2"]), ["291", "281"]);
    assert_eq!(keys(&project, &["--reverse", "--row", "007#20200101"]), ["007"]);
    assert!(keys(&project, &["--limit", "0"]).is_empty());
    assert!(project.fails(2, &["read", "T", "--regex", "("]).contains("regex"));
}

#[test]
fn cells_are_selected_by_column_time_and_number() {
    let project = project();
    let cells = |more: &[&str]| {
        let rows = read(&project, &[&["--row", "001#20200101"], more].concat());
        let cell =
            |cell: &Value| format!("{} {}", cell["qualifier"].as_str().unwrap(), cell["timestamp"].as_str().unwrap());
        rows.iter().flat_map(|row| row["cells"].as_array().unwrap().iter().map(cell)).collect::<Vec<_>>()
    };
    let [newer, older, noon] = ["0000 2020-01-01T00:30:00Z", "0000 2020-01-01T00:00:00Z", "1200 2020-01-01T12:00:00Z"];
    assert_eq!(cells(&[]), [newer, older, noon]);
    assert_eq!(cells(&["--columns", "M:0000"]), [newer, older]);
    assert_eq!(cells(&["--columns", "N,M:1200"]), [noon]);
    assert_eq!(cells(&["--columns", ":1200"]), [noon]);
    assert_eq!(cells(&["--cells-per-column", "1"]), [newer, noon]);
    assert_eq!(cells(&["--from", "2020-01-01T00:30:00Z", "--to", "2020-01-01T12:00"]), [newer]);
    assert_eq!(cells(&["--to", "2020-01-01"]), Vec::<String>::new());
    assert_eq!(cells(&["--from", "yesterday"]), Vec::<String>::new());
    // A row without selected cells is left out and not counted.
    assert_eq!(keys(&project, &["--columns", "M:9999", "--limit", "3"]), Vec::<String>::new());
    assert_eq!(keys(&project, &["--columns", "M:1200", "--keys-only", "--limit", "1", "--reverse"]), ["300"]);
}

#[test]
fn columns_with_a_comma_can_be_selected() {
    let project = Project::new("j", &JOB.replace("\"{ts:%H%M}\"", "\"{ts:%H},{ts:%M}\""));
    project.write(
        "in/a.csv",
        "meter,ts,kwh\n1,2020-01-01T00:00:00Z,1\n1,2020-01-01T00:30:00Z,2\n1,2020-01-01T12:00:00Z,3\n",
    );
    project.ok(&["run", "j"]);
    let cells = |more: &[&str]| -> Vec<String> {
        let rows = read(&project, more);
        let cells = rows.iter().flat_map(|row| row["cells"].as_array().unwrap());
        cells.map(|cell| cell["qualifier"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(cells(&["--columns", r"M:00\,30"]), ["00,30"]);
    assert_eq!(cells(&["--columns", r"M:00\,30,N,:12\,00"]), ["00,30", "12,00"]);
    assert_eq!(cells(&["--columns", r"M:00\,00", "--columns", r"M:12\,00"]), ["00,00", "12,00"]);
    assert!(project.ok(&["read", "--help"]).contains(r"`\,`"));
}

#[test]
fn times_are_printed_as_in_queries() {
    let project = project();
    let by_sql = project.sql("select qualifier, timestamp from cells.T where row_key = '001#20200101'");
    let by_read = read(&project, &["--row", "001#20200101"]).remove(0)["cells"].take();
    let times = |cells: &[Value]| cells.iter().map(|cell| cell["timestamp"].clone()).collect::<Vec<_>>();
    assert_eq!(times(&by_sql), times(by_read.as_array().unwrap()));
    assert_eq!(by_sql[0]["timestamp"], json!("2020-01-01T00:30:00Z"));
    let csv = project.ok(&["read", "T", "--output", "csv", "--limit", "1"]);
    assert!(csv.contains("\n001#20200101,M:0000,2020-01-01T00:30:00Z,1.5\n"), "{csv}");
}
