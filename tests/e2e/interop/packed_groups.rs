//! Cells of several columns, as protobuf messages or JSON: loaded, queried, and read by protobuf for Python.

use serde_json::{Value, json};

use crate::harness::Project;
use crate::harness::system::python_script;

const JOB: &str = r#"
name = "samples"

[sources.readings]
files = ["in/*.csv"]
time = "ts"
max_rejected = 10

[sources.readings.columns]
host = "text"
ts = "timestamp"
seq = "int64"
count = "uint64"
load = "float64"
price = "decimal(10,2)"
ok = "bool"
day = "date"
note = "text"

[messages.Reading]
fields = { ts = 1, seq = 2, count = 3, load = 4, price = 5, ok = 6, day = 7, note = 16 }

[messages."Sample"]
proto = "protos/sample.proto"

# An event a row, as a message and as an object.
[tables.EVENT]
row_key = "{host:percent}#{ts:ms}"

[tables.EVENT.families.F]
columns = [{ qualifier = "blob", message = "Reading" }, { qualifier = "row", json = "*", except = ["host"] }]

# A week a row, all of its events in one cell.
[tables.WEEK]
row_key = "{host:percent}#{ts:%G-W%V}"
window = "week"

[tables.WEEK.families.F]
columns = [{ qualifier = "all", repeated = "Sample" }, { qualifier = "HOST", value = "{host}", encoding = "json" }]
"#;

const PROTO: &str = r#"syntax = "proto3";
package acme.metrics;
import "google/protobuf/timestamp.proto";
// The schema of an external producer.
message Sample {
  enum Kind { UNKNOWN = 0; }
  google.protobuf.Timestamp ts = 1;
  optional sint32 seq = 2;
  optional fixed64 count = 3;
  optional double load = 4;
  optional bytes note = 9;
  repeated string tags = 10;
  Kind kind = 11;
}
message Batch {
  string sender = 1;
  repeated Sample samples = 5;
}
"#;

/// Readings of three hosts in two weeks, with gaps; a name with the delimiter, and letters beyond ASCII.
fn readings() -> String {
    let mut text = "host,ts,seq,count,load,price,ok,day,note\n".to_owned();
    for n in 0..60i64 {
        let host = ["a#1", "José", "100%"][(n % 3) as usize];
        let gap = |each: i64, value: String| if n % each == 0 { String::new() } else { value };
        text.push_str(&format!(
            "{host},2021-03-{:02}T{:02}:30:00.{:03}Z,{},{},{},{},{},{},{}\n",
            1 + n / 6,
            n % 24,
            n,
            gap(7, (n - 30).to_string()),
            gap(11, (n as u64 * 1_000_000_007).to_string()),
            gap(5, (n as f64 / 8.0).to_string()),
            gap(13, format!("{}.{:02}", n * 10, n)),
            gap(4, (n % 2 == 0).to_string()),
            gap(9, "2018-01-31".to_owned()),
            gap(3, format!("\"say \"\"é{n}\"\"\"")),
        ));
    }
    text
}

fn loaded() -> Project {
    let project = Project::new("samples", JOB);
    project.write("jobs/samples/protos/sample.proto", PROTO);
    project.write("in/a.csv", readings());
    let record = project.run_job("samples");
    assert_eq!((&record["outcome"], &record["loads"][0]["rows_rejected"]), (&json!("ok"), &json!(0)));
    project
}

#[test]
fn packed_groups_read_back_in_sql() {
    let project = loaded();
    let all = "select * from EVENT order by host, ts";
    let rows = project.sql(all);
    assert_eq!(rows.len(), 60);
    let expected = json!({
        "host": "100%", "ts": "2021-03-01T02:30:00.002Z", "seq": -28, "count": 2_000_000_014, "load": 0.25,
        "price": 20.02, "ok": true, "day": "2018-01-31", "note": "say \"é2\"",
    });
    assert_eq!(rows[0], expected);
    // Every event of a week comes back from its one cell, with the fields that its message has.
    let few = "select host, ts, seq, count, load, note from";
    assert_eq!(
        project.sql(&format!("{few} EVENT order by host, ts")),
        project.sql(&format!("{few} WEEK order by host, ts"))
    );
    assert_eq!(project.sql("select sum(seq) as s from WEEK"), project.sql("select sum(seq) as s from EVENT"));
    assert_eq!(
        project.sql("select seq from WEEK where host = 'a#1' and ts < '2021-03-01T03:30:00Z'"),
        [json!({ "seq": null })]
    );
    assert_eq!(project.sql("select count(*) as n from WEEK where host = 'a#1'"), [json!({ "n": 20 })]);
    assert_eq!(project.sql("select count(*) as n from WEEK where host > 'a'"), [json!({ "n": 20 })]);

    let cell = project.sql("select value from cells.EVENT where qualifier = 'row' and row_key = 'a%231#1614558600000'");
    let object = r#"{"ts":"2021-03-01T00:30:00Z"}"#;
    assert_eq!(cell, [json!({ "value": object })]);
    let host =
        project.sql("select row_key, value, timestamp from cells.WEEK where qualifier = 'HOST' and value = '\"José\"'");
    assert_eq!(
        host[0],
        json!({ "row_key": "José#2021-W09", "value": "\"José\"", "timestamp": "1970-01-01T00:00:00Z" })
    );

    // Counts are of cells, not fields: two per event; one per week and host, and one for the host.
    let tables = project.json(&["tables"]);
    let cells = |name: &str| tables.iter().find(|table| table["name"] == name).unwrap()["cells"].clone();
    assert_eq!((cells("EVENT"), cells("WEEK")), (json!(120), json!(2 * 2 * 3)));
    assert_eq!(project.sql("select count(*) as n from cells.WEEK"), [json!({ "n": 12 })]);
    let described = project.ok(&["describe", "WEEK"]);
    assert!(described.contains("all = one protobuf a row, a Sample an event"), "{described}");
}

#[test]
fn protobuf_for_python_reads_the_messages() {
    let project = loaded();
    for table in ["EVENT", "WEEK"] {
        project.write(&format!("check/{}.proto", table.to_lowercase()), project.ok(&["proto", table]));
        project.write(&format!("check/{table}.jsonl"), project.ok(&["read", table, "--output", "json"]));
    }
    assert_eq!(project.read("check/week.proto"), PROTO, "the user's own file");
    let args = [project.path("check"), project.path("in/a.csv")];
    let modules = "google.protobuf, grpc_tools";
    let Some(said) = python_script(&project, modules, "interop/packed_groups_check.py", args) else { return };
    assert_eq!(said.trim(), "60 messages, 60 objects and 60 messages of 6 cells are as the source has them");
}

#[test]
fn table_without_messages_has_no_proto() {
    let project = loaded();
    let job = JOB.replace(r#"{ qualifier = "blob", message = "Reading" }, "#, "");
    project.write("jobs/samples/job.toml", job);
    project.ok(&["run", "samples", "--rebuild"]);
    assert!(project.fails(2, &["proto", "EVENT"]).contains("table EVENT has no protobuf cells"));
}

#[test]
fn numbers_outside_the_protobuf_type_are_rejected() {
    let project = Project::new("samples", JOB);
    project.write("jobs/samples/protos/sample.proto", PROTO);
    let rows = "a,2021-03-01T00:00:00Z,2147483648,,,,,,\na,2021-03-01T01:00:00Z,2147483647,,,,,,\n";
    project.write("in/a.csv", format!("host,ts,seq,count,load,price,ok,day,note\n{rows}"));
    let record = project.run_job("samples");
    let rejected: Vec<&Value> = (0..2).map(|at| &record["loads"][at]["rows_rejected"]).collect();
    assert_eq!(rejected, [0, 1]);
    let said = project.read(&format!("data/{}", record["rejected"].as_str().unwrap()));
    assert!(said.contains("out of range for the protobuf type sint32"), "{said}");
}

#[test]
fn later_cell_replaces_the_whole_message() {
    let project = Project::new("samples", JOB);
    project.write("jobs/samples/protos/sample.proto", PROTO);
    let header = "host,ts,seq,count,load,price,ok,day,note\n";
    let time = "2021-03-01T00:00:00Z";
    let value = || project.sql("select value from cells.EVENT where qualifier = 'row'");
    // In one file, and in a file that comes later.
    project.write("in/a.csv", format!("{header}a,{time},1,2,,,,,old\na,{time},3,,,,,,\n"));
    project.run_job("samples");
    assert_eq!(value(), [json!({ "value": format!("{{\"ts\":\"{time}\",\"seq\":3}}") })]);
    project.write("in/b.csv", format!("{header}a,{time},,4,,,,,\n"));
    project.run_job("samples");
    assert_eq!(value(), [json!({ "value": format!("{{\"ts\":\"{time}\",\"count\":4}}") })]);
    assert_eq!(project.sql("select seq, count, note from EVENT"), [json!({ "seq": null, "count": 4, "note": null })]);
}

#[test]
fn distinct_events_of_one_instant_are_kept() {
    let project = Project::new("samples", JOB);
    project.write("jobs/samples/protos/sample.proto", PROTO);
    let header = "host,ts,seq,count,load,price,ok,day,note\n";
    let event = |seq: i64, count: &str| format!("a,2021-03-01T00:00:00Z,{seq},{count},,,,,\n");
    // In one file, and the same and another in a file that comes later.
    project.write("in/a.csv", format!("{header}{}{}{}", event(1, ""), event(2, "7"), event(1, "")));
    project.run_job("samples");
    project.write("in/b.csv", format!("{header}{}{}", event(2, "7"), event(1, "8")));
    project.run_job("samples");
    let expected =
        [json!({ "seq": 1, "count": 8 }), json!({ "seq": 1, "count": null }), json!({ "seq": 2, "count": 7 })];
    assert_eq!(project.sql("select seq, count from WEEK order by seq, count"), expected);
    // Events that differ only in an unselected field stay distinct.
    assert_eq!(project.sql("select seq from WEEK order by seq").len(), 3);
    assert_eq!(project.sql("select count(*) as n from WEEK"), [json!({ "n": 3 })]);
    assert_eq!(project.sql("select count(*) as n from cells.WEEK where qualifier = 'all'"), [json!({ "n": 1 })]);
}
