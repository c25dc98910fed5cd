//! Files whose columns differ from the declaration: frozen, evolving and rejecting sources.

use std::fs::File;
use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, StringArray};
use parquet::arrow::ArrowWriter;
use serde_json::{Value, json};

use crate::harness::{Project, json_lines};

fn job(mode: &str, more: &str) -> String {
    format!(
        r#"
name = "j"

[sources.readings]
files = ["in/*"]
time = "ts"
schema = "{mode}"
{more}

[sources.readings.columns]
meter = "uint64"
ts = "timestamp"
kwh = "float64"
note = "text"

[tables.T]
row_key = "{{meter:03}}#{{ts:%Y%m%d}}"

[tables.T.families.M]
columns = [
  {{ qualifier = "{{ts:%H%M}}", value = "{{kwh}}" }},
  {{ qualifier = "note", value = "{{note}}" }},
]
"#
    )
}

fn project(mode: &str, more: &str) -> Project {
    let project = Project::new("j", &job(mode, more));
    project.write("in/a.csv", "meter,ts,kwh,note\n1,2020-01-01T10:00:00Z,1.5,good\n");
    // The order of columns does not matter.
    project.write("in/b.csv", "note,kwh,ts,meter\ngood,2.5,2020-01-02T10:00:00Z,2\n");
    project
}

fn time(day: u32) -> ArrayRef {
    Arc::new(StringArray::from(vec![format!("2020-01-{day:02}T10:00:00Z")]))
}

fn write_parquet(project: &Project, path: &str, columns: &[(&str, ArrayRef)]) {
    let batch = RecordBatch::try_from_iter(columns.iter().map(|(name, array)| (*name, Arc::clone(array)))).unwrap();
    let mut writer = ArrowWriter::try_new(File::create(project.path(path)).unwrap(), batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
}

/// Files with all kinds of columns: too few, too many, of other types.
fn others(project: &Project) {
    project.write("in/c.csv", "meter,ts,note\n3,2020-01-03T10:00:00Z,no kwh\n3,2020-01-03T11:00:00Z,none\n");
    project.write("in/d.csv", "meter,ts,kwh,note,extra\n4,2020-01-04T10:00:00Z,4.5,more,x\n");
    let (meter, kwh): (ArrayRef, ArrayRef) =
        (Arc::new(Int64Array::from(vec![5])), Arc::new(Float64Array::from(vec![5.5])));
    let note: ArrayRef = Arc::new(StringArray::from(vec!["parquet"]));
    write_parquet(project, "in/e.parquet", &[("kwh", kwh), ("ts", time(5)), ("meter", Arc::clone(&meter))]);
    let (wide, site): (ArrayRef, ArrayRef) =
        (Arc::new(Float64Array::from(vec![6.5])), Arc::new(StringArray::from(vec!["x"])));
    write_parquet(
        project,
        "in/f.parquet",
        &[("site", site), ("meter", meter), ("ts", time(6)), ("note", note), ("kwh", wide)],
    );
}

fn wrong_type(project: &Project) {
    let columns: [(&str, ArrayRef); 4] = [
        ("meter", Arc::new(BooleanArray::from(vec![true]))),
        ("ts", time(7)),
        ("kwh", Arc::new(Float64Array::from(vec![7.5]))),
        ("note", Arc::new(StringArray::from(vec!["type"]))),
    ];
    write_parquet(project, "in/g.parquet", &columns);
}

fn rows(project: &Project) -> Vec<(Value, Value, Value)> {
    let rows = project.sql("select meter, kwh, note from T order by meter, ts");
    rows.iter().map(|row| (row["meter"].clone(), row["kwh"].clone(), row["note"].clone())).collect()
}

fn counts(record: &Value) -> [u64; 4] {
    let load = &record["loads"][0];
    ["rows_read", "rows_accepted", "rows_filtered", "rows_rejected"].map(|key| load[key].as_u64().unwrap())
}

fn notes(record: &Value) -> Vec<&str> {
    record["notes"].as_array().unwrap().iter().map(|note| note.as_str().unwrap()).collect()
}

#[test]
fn frozen_source_requires_its_columns_and_ignores_others() {
    for mode in ["freeze", "evolve", "reject"] {
        let project = project(mode, "");
        assert_eq!(counts(&project.run_job("j")), [2, 2, 0, 0], "{mode}");
        assert_eq!(rows(&project).len(), 2);
    }
    let project = project("freeze", "");
    project.write("in/d.csv", "meter,ts,kwh,note,extra\n4,2020-01-04T10:00:00Z,4.5,more,x\n");
    let record = project.run_job("j");
    assert_eq!((counts(&record), &record["notes"]), ([3, 3, 0, 0], &json!([])));
    project.write("in/c.csv", "meter,ts,note\n3,2020-01-03T10:00:00Z,no kwh\n");
    let told = project.fails(1, &["run", "j"]);
    assert!(told.contains("in/c.csv: no column \"kwh\""), "{told}");
    assert_eq!(rows(&project).len(), 3);
}

#[test]
fn evolving_source_reads_missing_columns_as_null() {
    let project = project("evolve", "");
    others(&project);
    let record = project.run_job("j");
    assert_eq!(counts(&record), [7, 7, 0, 0]);
    let told = notes(&record);
    assert_eq!(
        told,
        [
            "in/d.csv has other columns than declared: it has also extra; what is missing is null, what is not declared is \
             not read",
            "in/f.parquet has other columns than declared: it has also site; what is missing is null, what is not declared \
             is not read",
            "in/c.csv has other columns than declared: it lacks kwh; what is missing is null, what is not declared is not \
             read",
            "in/e.parquet has other columns than declared: it lacks note; what is missing is null, what is not declared is \
             not read",
        ]
    );
    let found = rows(&project);
    let null = Value::Null;
    assert!(found.contains(&(json!(4), json!(4.5), json!("more"))), "{found:?}");
    assert!(
        found.iter().any(|(meter, kwh, note)| *meter == json!(5) && *kwh == json!(5.5) && *note == null),
        "{found:?}"
    );
    // Columns that one file lacks stay in the table; a second run does nothing.
    assert!(project.ok(&["plan", "j"]).contains("nothing to do"));
    // Reported once for many files.
    (1..=9).for_each(|at| {
        project.write(&format!("in/z{at}.csv"), format!("meter,ts,kwh\n9,2020-02-0{at}T10:00:00Z,{at}\n"))
    });
    let again = project.run_job("j");
    assert_eq!(notes(&again).len(), 1, "{again}");
    assert!(notes(&again)[0].starts_with("in/z1.csv (and 8 other files) has other columns"), "{again}");

    // Without a time there is no window for a row, and no null for a type.
    project.write("in/h.csv", "meter,kwh,note\n3,1,x\n");
    assert!(project.fails(1, &["run", "j"]).contains("no column \"ts\""));
    std::fs::remove_file(project.path("in/h.csv")).unwrap();
    wrong_type(&project);
    assert!(project.fails(1, &["run", "j"]).contains("column \"meter\" is bool"));
}

#[test]
fn rejecting_source_rejects_the_rows_of_a_file() {
    let project = project("reject", "max_rejected = \"90%\"");
    others(&project);
    wrong_type(&project);
    let ran = project.run(&["run", "j", "--output", "json"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let record = &json_lines(&ran.stdout)[0];
    assert_eq!(counts(record), [8, 2, 0, 6]);
    assert_eq!(record["rows_rejected"], 6);
    assert_eq!(rows(&project).len(), 2);
    let told = notes(record).join("\n");
    for part in [
        "in/c.csv has other columns than declared: it lacks kwh; every row is rejected",
        "in/d.csv has other columns than declared: it has also extra",
        "in/e.parquet has other columns than declared: it lacks note",
        "in/f.parquet has other columns than declared: it has also site",
        "in/g.parquet has other columns than declared: it has in another type meter (bool)",
    ] {
        assert!(told.contains(part), "{told}");
    }
    let log = project.rejected(record);
    assert_eq!(log.len(), 6);
    let first = log.iter().find(|row| row["file"] == "in/c.csv").unwrap();
    assert_eq!((&first["line"], &first["raw"]), (&json!(2), &json!("3,2020-01-03T10:00:00Z,no kwh")));
    assert_eq!(first["reason"], "the columns of the file are not the declared ones: it lacks kwh");
    let last = log.iter().find(|row| row["file"] == "in/f.parquet").unwrap();
    assert!(last["raw"].as_str().unwrap().contains("6.5") && last["raw"].as_str().unwrap().contains('x'), "{last}");

    // A repaired file is a changed input.
    project.write("in/c.csv", "meter,ts,kwh,note\n3,2020-01-03T10:00:00Z,3.5,mended\n");
    assert_eq!(counts(&project.run_job("j")), [1, 1, 0, 0]);
    assert_eq!(rows(&project).len(), 3);
    // Another mode would have loaded the other files.
    project.write("jobs/j/job.toml", job("evolve", ""));
    assert!(project.fails(2, &["run", "j"]).contains("--rebuild"));
    std::fs::remove_file(project.path("in/g.parquet")).unwrap();
    project.ok(&["run", "j", "--rebuild", "--without", "in/g.parquet"]);
    assert_eq!(rows(&project).len(), 6);
}

#[test]
fn too_many_rejected_rows_fail_the_run() {
    let project = project("reject", "");
    project.write("in/c.csv", "meter,ts,note\n3,2020-01-03T10:00:00Z,no kwh\n");
    let told = project.fails(1, &["run", "j"]);
    assert!(told.contains("in/c.csv has other columns than declared: it lacks kwh"), "{told}");
    assert!(told.contains("1 of 3 rows of source readings were rejected"), "{told}");
    assert!(project.run(&["read", "T"]).code != Some(0), "nothing was committed");
}

#[test]
fn frozen_source_can_become_evolving_without_rebuild() {
    let project = project("freeze", "");
    project.run_job("j");
    project.write("jobs/j/job.toml", job("evolve", ""));
    project.write("in/c.csv", "meter,ts,note\n3,2020-01-03T10:00:00Z,no kwh\n");
    assert_eq!(counts(&project.run_job("j")), [1, 1, 0, 0]);
    let project = Project::new("j", &job("evolve", "csv = { header = false }"));
    assert!(project.fails(2, &["check", "j"]).contains("columns without a header have no names"));
}

#[test]
fn a_new_column_that_is_not_declared_is_told_once() {
    let project = project("freeze", "");
    project.write("in/a.csv", "meter,ts,kwh,note,unit\n1,2020-01-01T10:00:00Z,1.5,good,kWh\n");
    // The columns were declared with the first files at hand.
    let first = project.succeeds(&["run", "j", "--quiet"]).stderr;
    assert!(!first.contains("declared"), "{first}");

    project.write("in/c.csv", "meter,ts,kwh,note,unit,vib\n1,2020-01-03T10:00:00Z,1.5,good,kWh,7\n");
    let told = project.succeeds(&["run", "j", "--quiet"]).stderr.replace("\n  ", " ");
    assert!(told.contains("warning: in/c.csv has a column that is not declared and not read: vib."), "{told}");
    assert!(told.contains("sources.readings.columns"), "{told}");
    project.write("in/d.csv", "meter,ts,kwh,note,vib\n1,2020-01-04T10:00:00Z,1.5,good,7\n");
    let again = project.succeeds(&["run", "j", "--quiet"]).stderr;
    assert!(!again.contains("declared"), "{again}");
}
