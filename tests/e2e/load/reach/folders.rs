//! Folders that name values: `site=A/date=2021-04-01`.

use super::{notes, rows};
use crate::harness::Project;

const KEYED: &str = r#"
name = "j"
[sources.r]
files = ["lake/**/*.csv"]
time = "ts"
[sources.r.columns]
ts = "timestamp"
host = "text"
v = "float64"
site = "text"
unit = "int64"
[tables.T]
row_key = "{site}#{host}#{ts:ms}"
[tables.T.families.D]
columns = [{ qualifier = "v", value = "{v}" }, { qualifier = "unit", value = "{unit}" }]
"#;

#[test]
fn declared_columns_are_read_from_folders() {
    let project = Project::new("j", KEYED);
    project.write("lake/site=A%20B/unit=1/p.csv", rows(0, 4));
    project.write("lake/site=C/unit=2/p.csv", rows(0, 4));
    project.write("lake/site=C/unit=__HIVE_DEFAULT_PARTITION__/q.csv", rows(10, 4));
    let record = project.run_job("j");
    assert_eq!(record["rows_rejected"], 0);
    let counted = project.csv("select site, count(*) as n, sum(unit) as units from T group by site order by site");
    assert_eq!(counted, "site,n,units\nA B,4,4\nC,8,8\n");

    // A value that is none of its type.
    project.write("lake/site=C/unit=x/p.csv", rows(20, 4));
    let error = project.fails(1, &["run", "j"]);
    assert!(error.contains("lake/site=C/unit=x/p.csv") && error.contains("unit"), "{error}");
}

#[test]
fn files_are_one_only_in_folders_of_one_value() {
    let project = Project::new("j", KEYED);
    let counts = |project: &Project| {
        project.ok(&["run", "j"]);
        project.csv("select site, count(*) as n from T group by site order by site")
    };
    project.write("lake/site=A/unit=1/p.csv", rows(0, 4));
    project.write("lake/site=B/unit=1/p.csv", rows(0, 4));
    assert_eq!(counts(&project), "site,n\nA,4\nB,4\n");

    // A copy in the same folder is one; a file that goes there under another name is renamed.
    project.write("lake/site=B/unit=1/q.csv", rows(0, 4));
    let record = project.run_job("j");
    assert!(record["loads"][0]["inputs"].to_string().contains("same content"), "{record}");
    std::fs::rename(project.path("lake/site=A/unit=1/p.csv"), project.path("lake/site=A/unit=1/r.csv")).unwrap();
    let record = project.run_job("j");
    assert!(record["loads"][0]["inputs"].to_string().contains("renamed"), "{record}");
    assert_eq!(record["loads"][0]["rows_read"], 0, "{record}");

    // One that grows while it goes to another folder holds other rows from its first.
    std::fs::remove_file(project.path("lake/site=A/unit=1/r.csv")).unwrap();
    project.write("lake/site=C/unit=1/r.csv", rows(0, 6));
    assert_eq!(counts(&project), "site,n\nA,4\nB,4\nC,6\n");
}

#[test]
fn keys_that_are_not_read_and_replaced_rows_are_named() {
    let project = Project::new("j", &super::job("\"lake/**/*.csv\"", ""));
    project.write("lake/site=A/p.csv", rows(0, 8));
    project.write("lake/site=B/p.csv", rows(0, 8).replace(".5", ".25"));
    let told = notes(&project.run_job("j"));
    assert!(told.contains("folders name values of site, which are not read"), "{told}");
    assert!(told.contains("warning: T: 8 cells were replaced by other values of later rows of the 2 files"), "{told}");
    assert!(told.contains("with the same key and time, such as in row "), "{told}");
    assert!(project.messages(&["plan", "j"]).contains("values of site"));
}

#[test]
fn equal_rows_are_no_warning() {
    let project = Project::new("j", &super::job("\"in/*.csv\"", ""));
    // Each row twice in a file, some of them in the next file as well.
    project.write("in/a.csv", rows(0, 8) + rows(0, 8).split_once('\n').unwrap().1);
    project.write("in/b.csv", rows(4, 8));
    let record = project.run_job("j");
    let load = &record["loads"][0];
    assert_eq!((&load["overwritten"], &load["overwritten_changed"]), (&12.into(), &0.into()), "{record}");
    assert!(!notes(&record).contains("replaced"), "{record}");

    // A later run brings them once more: its record can be read.
    project.write("in/c.csv", rows(8, 8));
    let record = project.run_job("j");
    assert_eq!(record["loads"][0]["replaced"]["cells"], 4, "{record}");
    let history = project.run(&["history"]);
    assert!(
        history.stderr.is_empty() && history.stdout.contains(record["run"].as_str().unwrap()),
        "{}",
        history.stderr
    );
}

#[test]
fn new_proposes_the_columns_of_folders() {
    let project = Project::empty();
    for (site, day) in [("A", 1), ("A", 2), ("B", 1), ("B", 2)] {
        let text = rows(0, 24).replace("2021-04-01", &format!("2021-04-0{day}"));
        project.write(&format!("lake/site={site}/date=2021-04-0{day}/p.csv"), text);
    }
    project.ok(&["new", "all", "--from", "lake"]);
    project.ok(&["run", "all"]);
    let sites = project.csv("select site, count(*) as n from \"ALL\" group by site order by site");
    assert_eq!(sites, "site,n\nA,48\nB,48\n");

    // Of one file, too: a later pattern over the others loses no row.
    project.ok(&["new", "one", "--from", "lake/site=A/date=2021-04-01/p.csv"]);
    let text = project.read("jobs/one/job.toml").replace("lake/site=A/date=2021-04-01/p.csv", "lake/**/*.csv");
    project.write("jobs/one/job.toml", text);
    project.ok(&["run", "one"]);
    assert_eq!(project.sql("select count(*) as n from ONE")[0]["n"], 96);
}

/// The warnings of a run that cells of earlier runs were replaced.
fn replaced_before(record: &serde_json::Value) -> String {
    notes(record).lines().filter(|note| note.contains("cells of earlier runs")).collect()
}

#[test]
fn rows_of_a_later_run_that_replace_others_are_named() {
    let project = Project::new("j", &super::job("\"in/*.csv\"", ""));
    project.write("in/a.csv", rows(0, 8));
    project.run_job("j");
    // Eight rows of another sensor with the same key and times, and eight of later times.
    project.write("in/b.csv", rows(0, 16).replace(".5", ".25"));
    let record = project.run_job("j");
    let (load, told) = (&record["loads"][0], replaced_before(&record));
    assert!(told.contains("warning: T: 8 cells of earlier runs were replaced by rows of in/b.csv"), "{record}");
    assert!(told.contains("They came from in/a.csv."), "{told}");
    let row = load["replaced"]["in_row"].as_str().unwrap();
    assert!(told.contains(&format!("the same key and time and other values, such as in row {row}")), "{told}");
    assert_eq!((&load["overwritten"], &load["replaced"]["changed"]), (&0.into(), &8.into()), "{record}");

    // The same values once more are counted, and no warning, nor one of the file that comes with them.
    project.write("in/c.csv", rows(4, 4).replace(".5", ".25"));
    project.write("in/d.csv", rows(100, 4));
    let record = project.run_job("j");
    let load = &record["loads"][0];
    assert_eq!((&load["overwritten"], &load["replaced"]["cells"]), (&0.into(), &4.into()), "{record}");
    assert!(!notes(&record).contains("replaced by"), "{record}");

    // Others of that day at other times, and a correction under the same name.
    project.write("in/e.csv", rows(200, 4));
    let record = project.run_job("j");
    let load = &record["loads"][0];
    assert_eq!((&load["overwritten"], &load["replaced"]), (&0.into(), &serde_json::Value::Null), "{record}");
    project.write("in/d.csv", rows(100, 4).replace(".5", ".75"));
    let record = project.run_job("j");
    assert_eq!(replaced_before(&record), "", "{record}");
    assert_eq!(project.csv("select count(*) as n, sum(v) as s from T"), "n,s\n24,1341.0\n");
}
