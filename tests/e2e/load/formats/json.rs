//! Lines of JSON: records in any shape to cells, rejects with their place, growth, compression, proposals.

use crate::harness::inputs::append;
use crate::harness::{Project, gz};
use crate::load::new::loads;

const JOB: &str = r#"
name = "j"
[sources.s]
files = ["in/*"]
schema = "evolve"
time = "ts"
max_rejected = "50%"
[sources.s.columns]
ts = { format = "s" }
"at.host" = "text"
v = "float64"
[sources.s.derive]
host = "\"at.host\""
[tables.T]
row_key = "{host}#{ts:s}"
[tables.T.families.F]
columns = [{ qualifier = "v", value = "{v}" }]
"#;

/// A project with this job, whose source has `keys` besides.
fn job(keys: &str) -> Project {
    Project::new("j", &JOB.replace("time =", &format!("{keys}\ntime =")))
}

#[test]
fn records_are_loaded_and_rejected_with_their_place() {
    let project = job("");
    let text = "{\"ts\":1600000000,\"at\":{\"host\":\"a\"},\"v\":1.50}\n{\"ts\":1600000060,\"at\":{\"host\":\"a\"},\"v\":\"much\"}\n\
                {\"ts\":1600000120,\"at\":{\"host\":\"a\"}\n{\"at.host\":\"b\",\"ts\":\"1600000180\",\"v\":\"2\"}\n";
    project.write("in/a.jsonl", text);
    project.write("in/b.ndjson.gz", gz("{\"ts\":1600000240,\"at\":{\"host\":\"c\"},\"v\":3}\n"));
    project.write("in/c.json", "{\"ts\":1600000300,\"at\":{\"host\":\"d\"},\"v\":4}");

    let record = project.run_job("j");
    assert_eq!(project.csv("select host, v from T order by host"), "host,v\na,1.5\nb,2.0\nc,3.0\nd,4.0\n");
    let rejected = project.rejected(&record);
    let places: Vec<_> =
        rejected.iter().map(|row| (row["file"].as_str().unwrap(), row["line"].as_u64().unwrap())).collect();
    assert_eq!(places, [("in/a.jsonl", 2), ("in/a.jsonl", 3)]);
    assert_eq!((&rejected[0]["column"], &rejected[0]["reason"]), (&"v".into(), &"\"much\" is no float64".into()));
    assert!(rejected[1]["reason"].as_str().unwrap().starts_with("not JSON at byte 35 of the line"), "{rejected:?}");
    let raw = project.ok(&["rejects", "j", "--output", "csv"]);
    assert_eq!(raw, text.lines().skip(1).take(2).map(|line| format!("{line}\n")).collect::<String>());

    // A mended file is read again.
    project.write("in/a.jsonl", text.replace("\"much\"", "2").replace("\"a\"}\n{\"at.", "\"a\"}}\n{\"at."));
    assert!(project.run_job("j")["rejected"].is_null());
    // The record without `v` has no cell.
    assert_eq!(project.csv("select count(*) as n from T"), "n\n5\n");
}

#[test]
fn a_file_that_grows_is_read_from_its_new_lines_on() {
    let project = job("");
    let line =
        |minute: u64| format!("{{\"ts\":{},\"at\":{{\"host\":\"a\"}},\"v\":{minute}}}\n", 1_600_000_000 + minute * 60);
    project.write("in/a.jsonl", line(0) + &line(1) + line(2).trim_end());
    project.ok(&["run", "j"]);
    append(&project, "in/a.jsonl", &format!("\n{}{}", line(3), line(4)));
    let said = project.messages(&["run", "j"]);
    assert!(said.contains("inputs: 1 grown") && said.contains("2 rows are appended"), "{said}");
    append(&project, "in/a.jsonl", &line(5));
    assert!(project.messages(&["run", "j"]).contains("1 row is appended"));
    assert_eq!(project.csv("select count(*) as n, sum(v) as v from T"), "n,v\n6,15.0\n");
}

#[test]
fn elements_of_a_list_are_events() {
    let project = job("each = [\"s\"]");
    let job = project.read("jobs/j/job.toml");
    let job =
        job.replace("\nts = { format", "\n\"s.ts\" = { format").replace("\nv = \"float64\"", "\n\"s.v\" = \"float64\"");
    let job = job.replace("[sources.s.derive]", "[sources.s.derive]\nts = \"\\\"s.ts\\\"\"\nv = \"\\\"s.v\\\"\"");
    project.write("jobs/j/job.toml", job);
    project.write(
        "in/a.jsonl",
        "{\"at\":{\"host\":\"a\"},\"s\":[{\"ts\":1600000000,\"v\":1},{\"ts\":1600000060,\"v\":\"x\"},{\"ts\":1600000120,\"v\":3}]}\n\
         {\"at\":{\"host\":\"b\"},\"s\":[]}\n{\"at\":{\"host\":\"c\"}}\n",
    );
    let record = project.run_job("j");
    assert_eq!(project.csv("select host, v from T order by host, v"), "host,v\na,1.0\na,3.0\n");
    let lines: Vec<_> = project.rejected(&record).iter().map(|row| row["line"].as_u64().unwrap()).collect();
    assert_eq!(lines, [1, 3]);

    // A repaired element is added, and those that were accepted are there once.
    project.write("in/a.jsonl", project.read("in/a.jsonl").replace("\"x\"", "2"));
    project.ok(&["replay", "last"]);
    assert_eq!(project.csv("select host, v from T order by host, v"), "host,v\na,1.0\na,2.0\na,3.0\n");
}

#[test]
fn a_typing_error_of_a_column_stops_the_run() {
    let project = job("");
    project.write("jobs/j/job.toml", project.read("jobs/j/job.toml").replace("schema = \"evolve\"\n", ""));
    project.write("in/a.jsonl", "{\"ts\":1600000000,\"at\":{\"hots\":\"a\"},\"v\":1}\n");
    let said = project.fails(1, &["run", "j"]);
    assert!(said.contains("no column \"at.host\""), "{said}");
    project.write("in/a.jsonl", "[\n{\"ts\":1600000000,\"at\":{\"host\":\"a\"},\"v\":1}\n]\n");
    let said = project.fails(1, &["run", "j"]);
    assert!(said.contains("one JSON array") && said.contains("jq -c '.[]' in/a.jsonl"), "{said}");
}

#[test]
fn proposed_jobs_run_at_once() {
    let project = Project::empty();
    let minute = |at: usize| 1_600_000_000 + at * 60;
    let flat = |at: usize| {
        let (host, v) = (["a", "b"][at % 2], at as f64 / 2.0);
        format!("{{\"time\":{},\"host\":\"{host}\",\"load\":{{\"one\":{v:.2},\"five\":{at}}}}}\n", minute(at / 2))
    };
    project.write("flat.jsonl", (0..40).map(flat).collect::<String>());
    loads(&project, "flat", "flat.jsonl", 40);
    project.write("packed.json.gz", gz((0..40).map(flat).collect::<String>()));
    loads(&project, "packed", "packed.json.gz", 40);

    let list = |host: &str| {
        let samples: Vec<String> = (0..20).map(|at| format!("{{\"time\":{},\"v\":{at}.5}}", minute(at))).collect();
        format!("{{\"host\":\"{host}\",\"samples\":[{}]}}\n", samples.join(","))
    };
    project.write("lists.jsonl", list("a") + &list("b"));
    loads(&project, "lists", "lists.jsonl", 40);
    assert!(project.read("jobs/lists/job.toml").contains("each = [\"samples\"]"));

    let export = |job: &str| {
        let times: Vec<String> = (0..20).map(|at| format!("{}000", minute(at))).collect();
        let values: Vec<String> = (0..20).map(|at| format!("{at}.25")).collect();
        format!(
            "{{\"metric\":{{\"__name__\":\"up\",\"job\":\"{job}\"}},\"values\":[{}],\"timestamps\":[{}]}}\n",
            values.join(","),
            times.join(",")
        )
    };
    project.write("export.jsonl", export("x") + &export("y"));
    loads(&project, "export", "export.jsonl", 40);
    assert!(project.read("jobs/export/job.toml").contains("preset = \"victoriametrics\""));

    let batch = |at: usize| {
        let point = |cpu: usize| {
            format!(
                "{{\"attributes\":[{{\"key\":\"cpu\",\"value\":{{\"stringValue\":\"cpu{cpu}\"}}}}],\"timeUnixNano\":\"{}000000000\",\"asDouble\":0.{at}{cpu}}}",
                minute(at)
            )
        };
        format!(
            "{{\"resourceMetrics\":[{{\"resource\":{{\"attributes\":[{{\"key\":\"host.name\",\"value\":{{\"stringValue\":\"web\"}}}}]}},\
             \"scopeMetrics\":[{{\"scope\":{{\"name\":\"host\"}},\"metrics\":[{{\"name\":\"load\",\"gauge\":{{\"dataPoints\":[{},{}]}}}}]}}]}}]}}\n",
            point(0),
            point(1)
        )
    };
    project.write("otel.json", (0..20).map(batch).collect::<String>());
    loads(&project, "otel", "otel.json", 40);
    assert!(project.read("jobs/otel/job.toml").contains("preset = \"otel\""));
}
