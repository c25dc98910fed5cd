//! CSV that differs from its declaration.

use serde_json::Value;

use crate::harness::{Project, json_lines};

const JOB: &str = r#"
name = "meters"

[sources.readings]
files = ["in/*.csv"]
time = "ts"
max_rejected = 100

[sources.readings.columns]
meter = "uint64"
ts = { format = "%Y-%m-%dT%H:%M:%SZ" }
kwh = "float64"
note = "text"

[tables.METERS]
row_key = "{meter:010}#{ts:%Y%m%d}"

[tables.METERS.families.M]
columns = [
  { qualifier = "K{ts:%H%M}", value = "{kwh}" },
  { qualifier = "N{ts:%H%M}", value = "{note}" },
]
"#;

const HEADER: &str = "meter,ts,kwh,note\n";
const GOOD: &str = "1,2018-01-01T00:00:00Z,1.5,a\n";

/// Loads `files`; the rejected rows and the records.
fn load(files: &[(&str, &[u8])]) -> (Vec<Value>, Vec<Value>) {
    let project = Project::new("meters", JOB);
    for (name, bytes) in files {
        project.write(&format!("in/{name}"), bytes);
    }
    let record = project.run_job("meters");
    let rejected = if record["rejected"].is_null() { Vec::new() } else { project.rejected(&record) };
    let load = &record["loads"][0];
    let count = |name: &str| load[name].as_u64().unwrap();
    assert_eq!(count("rows_read"), count("rows_accepted") + count("rows_rejected"));
    assert_eq!(count("rows_rejected"), rejected.len() as u64);
    let rows = if load["version"] == 0 || count("cells") == 0 {
        Vec::new()
    } else {
        project.sql("select * from METERS order by meter, ts")
    };
    (rejected, rows)
}

/// Loads a file of a good row, `row`, and another good row; `row` must be rejected with this column and reason.
fn check_rejected(row: &[u8], column: Option<&str>, reason: &str) {
    let text = [HEADER.as_bytes(), GOOD.as_bytes(), row, b"\n2,2018-01-01T00:00:00Z,2.5,b\n"].concat();
    let (rejected, rows) = load(&[("a.csv", &text)]);
    assert_eq!(rows.len(), 2, "{rows:?}");
    assert_eq!(rejected.len(), 1, "{rejected:?}");
    let told = &rejected[0];
    assert_eq!(told["file"], "in/a.csv");
    assert_eq!(told["line"], 3);
    assert_eq!(told["column"].as_str(), column, "{told}");
    assert!(told["reason"].as_str().unwrap().contains(reason), "{told}");
    assert_eq!(told["raw"], String::from_utf8_lossy(row).as_ref());
}

#[test]
fn rows_with_too_few_or_too_many_columns_are_rejected() {
    check_rejected(b"7,2018-01-01T00:00:00Z,1.5", None, "expected 4 columns, found 3");
    check_rejected(b"7,2018-01-01T00:00:00Z,1.5,x,y", None, "expected 4 columns, found 5");
}

#[test]
fn invalid_numbers_are_rejected() {
    check_rejected(b"7,2018-01-01T00:00:00Z,1.5kWh,x", Some("kwh"), "is no float64");
    check_rejected(b"-7,2018-01-01T00:00:00Z,1.5,x", Some("meter"), "uint64");
    check_rejected(b"18446744073709551616,2018-01-01T00:00:00Z,1.5,x", Some("meter"), "out of range");
}

#[test]
fn invalid_dates_are_rejected() {
    check_rejected(b"7,2018-02-30T00:00:00Z,1.5,x", Some("ts"), "is no time");
    check_rejected(b"7,01/02/2018,1.5,x", Some("ts"), "is no time");
}

#[test]
fn row_key_fields_that_do_not_fit_are_rejected() {
    check_rejected(b"12345678901,2018-01-01T00:00:00Z,1.5,x", Some("meter"), "");
    check_rejected(b",2018-01-01T00:00:00Z,1.5,x", Some("meter"), "");
    check_rejected(b"7,,1.5,x", Some("ts"), "");
    check_rejected(b"7,1969-12-31T23:59:59Z,1.5,x", Some("ts"), "");
}

#[test]
fn invalid_utf8_is_rejected() {
    check_rejected(b"7,2018-01-01T00:00:00Z,1.5,\xff\xfe", None, "not UTF-8");
}

#[test]
fn carriage_returns_and_a_missing_final_newline_are_accepted() {
    let text = "meter,ts,kwh,note\r\n1,2018-01-01T00:00:00Z,1.5,a\r\n2,2018-01-01T00:00:00Z,2.5,b";
    let (rejected, rows) = load(&[("a.csv", text.as_bytes())]);
    assert!(rejected.is_empty());
    assert_eq!(rows[1]["note"], "b");
    assert_eq!(rows[0]["note"], "a");
}

#[test]
fn quoted_fields_may_hold_newlines() {
    let text =
        format!("{HEADER}1,2018-01-01T00:00:00Z,1.5,\"two\nlines, \"\"quoted\"\"\"\nx,2018-01-01T00:00:00Z,1,c\n");
    let (rejected, rows) = load(&[("a.csv", text.as_bytes())]);
    assert_eq!(rows[0]["note"], "two\nlines, \"quoted\"");
    assert_eq!(rejected[0]["line"], 4, "a line is a line of the file");
}

#[test]
fn nulls_write_no_cell() {
    let text = format!("{HEADER}1,2018-01-01T00:00:00Z,,a\n1,2018-01-01T01:00:00Z,2.5,\n1,2018-01-01T02:00:00Z,,\n");
    let (rejected, rows) = load(&[("a.csv", text.as_bytes())]);
    assert!(rejected.is_empty());
    assert_eq!(rows.len(), 2, "a reading without values is no record: {rows:?}");
    assert_eq!(rows[0]["kwh"], Value::Null);
    assert_eq!(rows[1]["note"], Value::Null);
}

#[test]
fn empty_file_and_header_only_file_load_no_rows() {
    let (rejected, rows) =
        load(&[("a.csv", b""), ("b.csv", HEADER.as_bytes()), ("c.csv", format!("{HEADER}{GOOD}").as_bytes())]);
    assert!(rejected.is_empty());
    assert_eq!(rows.len(), 1);
}

#[test]
fn missing_column_fails_the_run() {
    let project = Project::new("meters", JOB);
    project.write("in/a.csv", "meter,ts,kWh,note\n1,2018-01-01T00:00:00Z,1.5,a\n");
    let said = project.fails(1, &["run", "meters"]);
    assert!(said.contains("in/a.csv") && said.contains("kwh") && said.contains("kWh"), "{said}");
    assert!(!project.path("data/tables").exists());
}

#[test]
fn too_many_rejected_rows_commit_nothing() {
    let project = Project::new("meters", &JOB.replace("max_rejected = 100", "max_rejected = \"1%\""));
    project.write("in/a.csv", format!("{HEADER}{GOOD}x,y,z,w\n"));
    let said = project.fails(1, &["run", "meters"]);
    assert!(said.contains("1 of 2 rows") && said.contains("max_rejected"), "{said}");
    assert!(project.fails(2, &["read", "METERS"]).contains("no table METERS"));
    let log = project.files("data/rejected");
    assert_eq!(log.len(), 1);
    assert!(String::from_utf8(log.into_values().next().unwrap()).unwrap().contains("x,y,z,w"));
    // After a correction the same job loads.
    project.write("in/a.csv", format!("{HEADER}{GOOD}"));
    assert_eq!(project.run_job("meters")["loads"][0]["rows_read"], 1);
}

#[test]
fn pattern_without_files_fails_the_run() {
    let project = Project::new("meters", JOB);
    let said = project.fails(1, &["run", "meters"]);
    assert!(said.contains("in/*.csv"), "{said}");
}

#[test]
fn declared_csv_dialects_are_read() {
    let job = JOB.replace(
        "time = \"ts\"\n",
        "time = \"ts\"\ncsv = { delimiter = \";\", decimal = \",\", null = [\"NA\", \"?\"], comment = \"#\", header = false }\n",
    );
    let project = Project::new("meters", &job);
    project.write("in/a.csv", "# a comment\n1;2018-01-01T00:00:00Z;1,5;NA\n1;2018-01-01T01:00:00Z;?;b\n");
    project.run_job("meters");
    let rows = project.sql("select kwh, note from METERS order by ts");
    assert_eq!(rows[0]["kwh"], 1.5);
    assert_eq!(rows[0]["note"], Value::Null);
    assert_eq!(rows[1]["kwh"], Value::Null);
    assert_eq!(rows[1]["note"], "b");
}

#[test]
fn job_file_errors_are_printed_as_json() {
    let project = Project::new(
        "meters",
        &JOB.replace("kwh = \"float64\"", "kwh = \"float\"").replace("{meter:010}", "{metre:010}"),
    );
    let said = json_lines(&project.fails(2, &["check", "meters", "--log", "json"]));
    assert_eq!(said[0]["file"], "jobs/meters/job.toml");
    assert!(said[0]["line"].is_u64() && said[0]["column"].is_u64() && said[0]["message"].is_string(), "{said:?}");
}
