//! Headers: inside a file, shorter than its rows, or missing.

use std::fmt::Write;

use crate::harness::Project;
use crate::harness::inputs::append;

/// A job of CSV files with the columns time, st, temp and hum.
fn job(more: &str) -> Project {
    let job = format!(
        r#"name = "h"
[sources.r]
files = ["in/*.csv"]
time = "time"
{more}
[sources.r.columns]
time = "timestamp"
st = "text"
temp = "float64"
hum = "float64"
[tables.H]
row_key = "{{st}}#{{time:ms}}"
[tables.H.families.D]
columns = [
  {{ qualifier = "temp", value = "{{temp}}" }},
  {{ qualifier = "hum", value = "{{hum}}" }},
]
"#
    );
    Project::new("h", &job)
}

/// Rows of the minutes `from..to`: temperatures are 20 and more, humidities 1000 and more. With `swapped`, these come first.
fn rows(from: usize, to: usize, swapped: bool) -> String {
    let mut text = String::new();
    for at in from..to {
        let (temp, hum) = (20 + at, 1000 + at);
        let (first, second) = if swapped { (hum, temp) } else { (temp, hum) };
        writeln!(text, "2021-04-01T{:02}:{:02}:00Z,A,{first},{second}", at / 60, at % 60).unwrap();
    }
    text
}

/// Records, the highest temperature and the lowest humidity.
fn bounds(project: &Project, table: &str) -> String {
    project.csv(&format!("select count(*), cast(max(temp) as bigint), cast(min(hum) as bigint) from {table}"))
}

#[test]
fn a_restarted_logger_may_order_its_columns_anew() {
    let project = job("");
    let first = format!("time,st,temp,hum\n{}", rows(0, 60, false));
    project.write("in/a.csv", &first);
    project.run_job("h");
    append(&project, "in/a.csv", &format!("time,st,hum,temp\n{}", rows(60, 120, true)));
    let said = project.messages(&["run", "h"]);
    assert!(said.contains("headers inside files") && said.contains("in/a.csv, line 62"), "{said}");
    assert!(bounds(&project, "H").contains("120,139,1000"), "{}", bounds(&project, "H"));

    // The header in force is not the first one.
    append(&project, "in/a.csv", &rows(120, 130, true));
    let record = project.run_job("h");
    assert_eq!(record["loads"][0]["inputs"][0]["state"], "grown");
    assert_eq!((&record["rows_rejected"], &record["loads"][0]["rows_read"]), (&0.into(), &10.into()));
    assert!(bounds(&project, "H").contains("130,149,1000"), "{}", bounds(&project, "H"));

    project.write("b.csv", format!("{first}time,st,hum,temp\n{}", rows(60, 120, true)));
    let said = project.ok(&["new", "b", "--from", "b.csv"]);
    assert!(said.contains("Headers inside the file") && said.contains("line 62"), "{said}");
    project.ok(&["run", "b"]);
    assert!(bounds(&project, "B").contains("120,139,1000"), "{}", bounds(&project, "B"));
}

#[test]
fn a_later_header_without_a_declared_column_stops_the_run() {
    let text = format!("time,st,temp,hum\n{}time,st,door,temp\n{}", rows(0, 60, false), rows(60, 70, true));
    let project = job("");
    project.write("in/a.csv", &text);
    let error = project.fails(1, &["run", "h"]);
    assert!(error.contains("in/a.csv, line 62: this line is a header without column \"hum\""), "{error}");

    let project = job("schema = \"evolve\"");
    project.write("in/a.csv", &text);
    let said = project.messages(&["run", "h"]);
    assert!(said.contains("lacks hum; has also door"), "{said}");
    assert_eq!(project.sql("select count(*) as n, count(hum) as hum from H")[0]["hum"], 60);

    // `new` declares the columns of both.
    project.write("b.csv", &text);
    project.ok(&["new", "b", "--from", "b.csv"]);
    project.ok(&["run", "b"]);
    let found = project.sql("select count(*) as n, count(hum) as hum, count(door) as door from B").remove(0);
    assert_eq!((&found["n"], &found["hum"], &found["door"]), (&70.into(), &60.into(), &10.into()));
}

#[test]
fn rows_may_have_empty_fields_behind_their_header() {
    let project = Project::empty();
    let rows = |rest: &str| {
        let row = |at: usize| format!("2020-12-01 00:{at:02},20.{},5{}{rest}\n", at % 10, at % 7);
        (0..60).map(row).collect::<String>()
    };
    project.write("a.csv", format!("time,temp,hum\n{}", rows(",")));
    let said = project.ok(&["new", "a", "--from", "a.csv"]);
    assert!(said.contains("Rows with more fields than the header, which are empty and not read: 60"), "{said}");
    let said = project.messages(&["run", "a"]);
    assert!(said.contains("more fields than the header") && said.contains("a.csv, line 2"), "{said}");
    assert_eq!(project.sql("select count(temp) as n from A")[0]["n"], 60);

    let commas: String =
        (0..60).map(|at| format!("2020-12-01 00:{at:02},20,{},5{},1013,{}\n", at % 10, at % 7, at % 3)).collect();
    project.write("b.csv", format!("time,temp,hum,p\n{commas}"));
    let error = project.fails(2, &["new", "b", "--from", "b.csv"]);
    assert!(
        error.contains("b.csv: the header has 4 names, and line 2 has 6 values; are commas decimal marks?"),
        "{error}"
    );
}

#[test]
fn a_file_without_a_header_is_called_so() {
    let project = job("");
    project.write("in/1.csv", format!("time,st,temp,hum\n{}", rows(0, 60, false)));
    project.write("in/2.csv", rows(60, 120, false));
    let error = project.fails(1, &["run", "h"]);
    assert!(error.contains("in/2.csv: it has no header") && error.contains("csv.header = false"), "{error}");
    assert!(!error.contains("evolve"), "{error}");

    let said = project.ok(&["new", "d", "--from", "in"]);
    assert!(said.contains("in/2.csv is left out") && said.contains("it has no header"), "{said}");
}

#[test]
fn nul_bytes_at_the_end_are_counted_not_shown() {
    let project = job("max_rejected = \"1%\"");
    let mut text = format!("time,st,temp,hum\n{}", rows(0, 200, false)).into_bytes();
    text.extend([0; 100_000]);
    project.write("in/a.csv", text);
    let ran = project.succeeds(&["run", "h"]);
    assert!(ran.stdout.contains("(100000 NUL bytes)") && ran.stdout.len() < 4000, "{}", ran.stdout.len());
    let shown = project.ok(&["rejects", "h"]);
    assert!(shown.contains("(100000 NUL bytes)") && shown.len() < 4000, "{}", shown.len());
}
