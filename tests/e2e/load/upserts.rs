//! A derived table that keeps the newest row of each key.

use serde_json::Value;

use crate::harness::Project;

const JOB: &str = r#"
name = "fleet"

[sources.samples]
files = ["in/*.csv"]
time = "ts"

[sources.samples.columns]
host = "text"
ts = "timestamp"
cpu = "uint64"
disk = "uint64"

[tables.METRIC]
row_key = "{host}#{ts:ms}"

[tables.METRIC.families.M]
columns = [{ each = "*", except = ["host", "ts"], qualifier = "{column}", value = "{value}" }]

[tables.CURRENT]
from = { query = { sql = "SELECT * FROM METRIC" } }
row_key = "{host}"
window = "none"
upsert = "row"

[tables.CURRENT.families.M]
columns = [
  { qualifier = "TIME", value = "{ts}" },
  { each = "*", except = ["host", "ts"], qualifier = "{column}", value = "{value}" },
]
"#;

fn write(project: &Project, file: &str, rows: &[&str]) {
    project.write(&format!("in/{file}.csv"), format!("host,ts,cpu,disk\n{}\n", rows.join("\n")));
}

/// The newest rows, computed from the whole history.
const NEWEST: &str = "SELECT host, ts, cpu, disk FROM METRIC m
  WHERE ts = (SELECT max(ts) FROM METRIC n WHERE n.host = m.host) ORDER BY host";

/// The table, after checking it against the history, cell by cell too.
fn current(project: &Project) -> Vec<String> {
    let rows = project.sql("SELECT host, ts, cpu, disk FROM CURRENT ORDER BY host");
    assert_eq!(rows, project.sql(NEWEST));
    let cells = project.sql("SELECT count(*) AS n FROM cells.CURRENT")[0]["n"].as_u64().unwrap();
    let held = |row: &Value| 1 + u64::from(!row["cpu"].is_null()) + u64::from(!row["disk"].is_null());
    assert_eq!(cells, rows.iter().map(held).sum::<u64>());
    let text = |row: &Value| format!("{} {} {} {}", row["host"], row["ts"], row["cpu"], row["disk"]).replace('"', "");
    rows.iter().map(text).collect()
}

#[test]
fn newest_row_of_each_key_replaces_the_whole_row() {
    let project = Project::new("fleet", JOB);
    write(
        &project,
        "1",
        &["a,2026-01-01T10:00:00Z,1,10", "b,2026-01-01T10:00:00Z,2,20", "gone,2026-01-01T09:00:00Z,3,30"],
    );
    project.run_job("fleet");
    assert_eq!(current(&project).len(), 3);

    // The next row lacks a metric, which disappears.
    write(&project, "2", &["a,2026-01-02T10:00:00Z,4,", "b,2026-01-02T09:00:00Z,5,50"]);
    project.run_job("fleet");
    assert_eq!(current(&project)[0], "a 2026-01-02T10:00:00Z 4 null");

    // Late rows of the first day, of which only the row of `gone` is current.
    write(&project, "3", &["b,2026-01-01T23:00:00Z,6,60", "gone,2026-01-01T08:00:00Z,7,70"]);
    project.run_job("fleet");
    let rows = current(&project);
    assert_eq!(rows[1], "b 2026-01-02T09:00:00Z 5 50");
    assert_eq!(rows[2], "gone 2026-01-01T09:00:00Z 3 30");

    // The newest row is removed: the row before it is current again.
    write(&project, "2", &["b,2026-01-02T09:00:00Z,5,50"]);
    project.run_job("fleet");
    assert_eq!(current(&project)[0], "a 2026-01-01T10:00:00Z 1 10");

    // Delivered again under another name, out of order.
    write(&project, "0", &["a,2026-01-03T00:00:00Z,9,90", "a,2026-01-02T10:00:00Z,4,", "c,2026-01-01T00:00:00Z,8,"]);
    project.run_job("fleet");
    assert_eq!(current(&project)[0], "a 2026-01-03T00:00:00Z 9 90");
    let files = project.files("data");
    project.run_job("fleet");
    assert_eq!(project.files("data"), files);
}

#[test]
fn late_rows_of_a_replaced_day_need_no_rebuild() {
    let project = Project::new("fleet", JOB);
    write(&project, "1", &["a,2026-01-01T10:00:00Z,1,10"]);
    write(&project, "2", &["a,2026-01-02T10:00:00Z,2,20"]);
    project.run_job("fleet");
    write(&project, "3", &["a,2026-01-01T11:00:00Z,3,30", "b,2026-01-01T11:00:00Z,4,40"]);
    let record = project.run_job("fleet");
    let load = &record["loads"][1];
    let states: Vec<&Value> = load["inputs"].as_array().unwrap().iter().map(|input| &input["state"]).collect();
    assert_eq!((states, &load["rebuilt"]), (vec![&"grown".into()], &serde_json::json!([])));
    assert_eq!(load["standing"], serde_json::json!({ "unchanged": 1 }));
    assert_eq!(current(&project), ["a 2026-01-02T10:00:00Z 2 20", "b 2026-01-01T11:00:00Z 4 40"]);
    // Now a row of the first day is current, so its removal rebuilds everything.
    std::fs::remove_file(project.path("in/3.csv")).unwrap();
    write(&project, "3", &["a,2026-01-01T11:00:00Z,3,30"]);
    let record = project.run_job("fleet");
    assert_eq!(record["loads"][1]["rebuilt"], serde_json::json!(["all"]));
    assert_eq!(current(&project), ["a 2026-01-02T10:00:00Z 2 20"]);
}

/// Cells whose timestamp is not that of the event outlive it, unless the whole query runs again.
#[test]
fn cells_with_other_timestamps_are_replaced_too() {
    let column = "\n  { qualifier = \"day{ts:%d}\", value = \"{cpu}\", timestamp = 0 },\n  { each";
    let job = JOB.replace("columns = [\n", "columns = [").replace("\n  { each", column);
    assert_ne!(job, JOB);
    let project = Project::new("fleet", &job);
    write(&project, "1", &["a,2026-01-01T10:00:00Z,1,", "b,2026-01-01T10:00:00Z,5,"]);
    write(&project, "2", &["a,2026-01-02T10:00:00Z,2,", "b,2026-01-02T10:00:00Z,6,"]);
    project.run_job("fleet");
    write(&project, "1", &["b,2026-01-01T10:00:00Z,5,"]);
    project.run_job("fleet");
    let read = project.ok(&["read", "CURRENT", "--output", "json"]);
    project.ok(&["run", "fleet", "--root", "fresh"]);
    assert_eq!(read, project.ok(&["read", "CURRENT", "--output", "json", "--root", "fresh"]));
}
