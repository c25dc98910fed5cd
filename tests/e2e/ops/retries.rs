//! `[stages]`: transient errors are retried, others are not.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;

use serde_json::Value;

use crate::harness::system::{self, Mount};
use crate::harness::{Project, Ran, json_lines};

const JOB: &str = r#"
name = "j"

[sources.readings]
files = ["in/*.csv"]
time = "ts"
max_rejected = "60%"
columns = { meter = "uint64", ts = "timestamp", kwh = "int64" }

[tables.T]
row_key = "{meter:03}#{ts:%Y%m%d}"

[tables.T.families.M]
columns = [{ qualifier = "{ts:%H%M}", value = "{kwh}" }]

[exports.E]
per = "day"
name = "E_{day:%Y%m%d}"
query = { sql = "select meter, ts, 100 / kwh as share from T order by meter, ts" }
"#;

/// With a first day that was loaded and published.
fn project(more: &str) -> Project {
    let project = Project::new("j", &format!("{JOB}{more}"));
    write_day(&project, 1, "5");
    project.ok(&["run", "j"]);
    project
}

fn write_day(project: &Project, day: u32, kwh: &str) {
    project.write(&format!("in/{day}.csv"), format!("meter,ts,kwh\n1,2020-01-{day:02}T10:00:00Z,{kwh}\n"));
}

/// Runs the command, and calls `then` with its process id when it reports a second attempt.
fn run(project: &Project, args: &[&str], then: impl FnOnce(u32)) -> Ran {
    let mut child = project.command(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let id = child.id();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let mut stderr = String::new();
    let mut then = Some(then);
    for line in lines.by_ref() {
        let line = line.unwrap();
        stderr.push_str(&line);
        stderr.push('\n');
        if line.contains("; attempt 2 of ")
            && let Some(then) = then.take()
        {
            then(id);
        }
    }
    let mut stdout = String::new();
    child.stdout.take().unwrap().read_to_string(&mut stdout).unwrap();
    assert!(then.is_none(), "no other attempt: {stderr}");
    Ran { code: child.wait().unwrap().code(), stdout, stderr }
}

fn record(ran: &Ran) -> Value {
    json_lines(&ran.stdout).remove(0)
}

/// Stage and name of each failed attempt.
fn attempts(record: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let list = record["attempts"].as_array().cloned().unwrap_or_default();
    list.iter().map(|attempt| (text(&attempt["stage"]), text(&attempt["name"]))).collect()
}

fn pair(stage: &str, name: &str) -> (String, String) {
    (stage.to_owned(), name.to_owned())
}

#[test]
fn day_is_retried_alone() {
    let project = project("[stages.publish]\nretries = 6\nwait = \"1s\"\n");
    (2..=3).for_each(|day| write_day(&project, day, "5"));
    // A file in the place of the directory of a day.
    project.write("data/exports/E_20200102", "in the way");
    let done = run(&project, &["run", "j", "--output", "json"], |_| {
        // The other day does not wait.
        assert!(project.path("data/exports/E_20200103").is_dir());
        fs::remove_file(project.path("data/exports/E_20200102")).unwrap();
    });
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    let line = "publish of E_20200102 failed: exports/E_20200102 is a file";
    assert!(done.stderr.contains(line) && done.stderr.contains("; attempt 2 of 7 follows in 1 s\n"), "{}", done.stderr);
    let record = record(&done);
    assert_eq!(attempts(&record)[0], pair("publish", "E_20200102"));
    assert_eq!(record["attempts"][0]["attempt"], 1);
    let parts: Vec<_> =
        record["exports"].as_array().unwrap().iter().map(|part| (&part["part"], &part["state"])).collect();
    let published = Value::from("published");
    assert_eq!(parts, [(&Value::from("E_20200102"), &published), (&Value::from("E_20200103"), &published)]);
    let history = project.json(&["history"]);
    assert!(history[0]["new_attempts"].as_u64() >= Some(1) && history[1]["new_attempts"] == 0, "{history:?}");
    let rows = project.sql("select stage, name, attempt, wait_seconds, error from runs.attempts order by attempt");
    assert_eq!((&rows[0]["name"], &rows[0]["wait_seconds"]), (&Value::from("E_20200102"), &Value::from(1)));
    assert!(rows[0]["error"].as_str().unwrap().starts_with("exports/E_20200102 is a file"), "{rows:?}");
    assert!(
        project.sql("select new_attempts as n from runs.runs order by run desc limit 1")[0]["n"].as_i64() >= Some(1)
    );
}

#[test]
fn load_is_retried_from_the_beginning() {
    let project = Project::new("j", &format!("{JOB}[stages.load]\nretries = 6\nwait = \"1s\"\n"));
    write_day(&project, 1, "5");
    project.write("in/2.csv", "meter,ts,kwh\nx,2020-01-02T10:00:00Z,1\n2,2020-01-02T10:00:00Z,2\n");
    project.write("data/tables", "in the way");
    let done = run(&project, &["run", "j", "--output", "json"], |_| {
        fs::remove_file(project.path("data/tables")).unwrap();
    });
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    let record = record(&done);
    assert_eq!(attempts(&record)[0], pair("load", "readings"));
    assert_eq!((&record["outcome"], &record["rows_rejected"]), (&Value::from("ok"), &Value::from(1)));
    assert_eq!(record["loads"].as_array().unwrap().len(), 1);
    assert_eq!(project.sql("select count(*) as n from T")[0]["n"], 2);
    assert_eq!(project.json(&["rejects", "j"]).len(), 1);
    assert!(project.ok(&["plan", "j"]).contains("nothing to do"));
}

#[test]
fn permanent_errors_are_not_retried() {
    let all = "[stages]\nload = { retries = 9, wait = \"1h\" }\npublish = { retries = 9, wait = \"1h\" }\n";
    let project = project(all);
    // SQL that fails on a value.
    write_day(&project, 2, "0");
    let failed = project.run(&["run", "j", "--output", "json"]);
    assert_eq!(failed.code, Some(4), "{}", failed.stderr);
    assert!(attempts(&record(&failed)).is_empty() && !failed.stderr.contains("attempt"), "{}", failed.stderr);
    // Too many rejected rows.
    write_day(&project, 2, "none");
    project.write("in/3.csv", "meter,ts,kwh\nx,never,none\n");
    let told = project.fails(1, &["run", "j"]);
    assert!(told.contains("were rejected, more than max_rejected") && !told.contains("attempt"), "{told}");
    fs::remove_file(project.path("in/3.csv")).unwrap();
    // A file of another format.
    project.write("in/3.csv.gz", "no gzip");
    let job = project.read("jobs/j/job.toml");
    project.write("jobs/j/job.toml", job.replace("in/*.csv\"", "in/*.csv\", \"in/*.gz\""));
    assert!(!project.fails(1, &["run", "j"]).contains("attempt"));
}

#[test]
fn retries_end_after_the_limit_or_a_signal() {
    let project = project("[stages.publish]\nretries = 1\nwait = \"1s\"\n");
    write_day(&project, 2, "5");
    project.write("data/exports/E_20200102", "in the way");
    let done = run(&project, &["run", "j"], |_| {});
    assert_eq!(done.code, Some(4), "{}", done.stderr);
    assert!(
        done.stdout.contains("1 new attempt:") && done.stdout.contains("not published: E_20200102"),
        "{}",
        done.stdout
    );
    let job = project.read("jobs/j/job.toml");
    for (stage, name) in [("publish", "E_20200102"), ("load", "readings")] {
        project.write(
            "jobs/j/job.toml",
            job.replace("retries = 1\nwait = \"1s\"", "retries = 1\nwait = \"1h\"")
                .replace("stages.publish", &format!("stages.{stage}")),
        );
        if stage == "load" {
            fs::rename(project.path("data/tables/T"), project.path("aside")).unwrap();
            project.write("data/tables/T", "in the way");
        }
        for (signal, code) in [("INT", 130), ("TERM", 143)] {
            let asked = run(&project, &["run", "j"], |id| {
                system::signal(id, &format!("-{signal}"));
            });
            assert_eq!(asked.code, Some(code), "{}", asked.stderr);
            let query = "select r.outcome, a.stage, a.name from runs.runs r join runs.attempts a on a.run = r.run order by r.run desc limit 1";
            let row = &project.sql(query)[0];
            assert_eq!(
                (&row["outcome"], &row["stage"], &row["name"]),
                (&"interrupted".into(), &stage.into(), &name.into())
            );
        }
    }
    fs::remove_file(project.path("data/tables/T")).unwrap();
    fs::rename(project.path("aside"), project.path("data/tables/T")).unwrap();
    fs::remove_file(project.path("data/exports/E_20200102")).unwrap();
    project.ok(&["run", "j"]);
    assert_eq!(project.sql("select count(*) as n from exports.E_20200102")[0]["n"], 1);
}

#[test]
fn committed_rows_are_not_loaded_twice() {
    let second = "[tables.U]\nrow_key = \"{meter:03}#{ts:%Y%m%d}\"\nwhere = \"kwh > 0\"\n[tables.U.families.M]\n\
                  columns = [{ qualifier = \"{ts:%H%M}\", value = \"{kwh}\" }]\n\
                  [stages.load]\nretries = 6\nwait = \"1s\"\n";
    let project = project(second);
    project.write(
        "in/2.csv",
        "meter,ts,kwh\nx,2020-01-02T10:00:00Z,1\n1000,2020-01-02T10:00:00Z,1\n2,2020-01-02T10:00:00Z,2\n3,2020-01-02T10:00:00Z,2\n4,2020-01-02T10:00:00Z,2\n",
    );
    let Some(read_only) = Mount::read_only(project.path("data/tables/U/manifest")) else { return };
    let done = run(&project, &["run", "j", "--output", "json"], |_| drop(read_only));
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    let record = record(&done);
    let loads: Vec<(&Value, u64)> = record["loads"]
        .as_array()
        .unwrap()
        .iter()
        .map(|load| (&load["table"], load["version"].as_u64().unwrap() - load["before"].as_u64().unwrap()))
        .collect();
    assert_eq!(loads, [(&Value::from("T"), 1), (&Value::from("U"), 1)], "{}", done.stderr);
    for table in ["T", "U"] {
        assert_eq!(project.sql(&format!("select count(*) as n from {table}"))[0]["n"], 4);
    }
    // One row fits no type and one fits neither table: rejected rows are kept once per cause.
    assert_eq!(record["rows_rejected"], 3, "{record}");
    assert_eq!(project.json(&["rejects", "j"]).len(), 3);
    project.ok(&["verify"]);
}

#[test]
fn stage_errors_have_a_position() {
    let check = |more: &str| Project::new("j", &format!("{JOB}{more}")).fails(2, &["check", "j"]);
    assert!(check("[stages.loads]\nretries = 1\n").contains("did you mean `load`?"));
    assert!(check("[stages.load]\nretry = 1\n").contains("unknown key `retry` in a stage"));
    assert!(check("[stages]\nload = 3\n").contains("a table"));
    assert!(check("[stages.load]\nretries = \"3\"\n").contains("an integer"));
    for number in ["-1", "101", "99999999999"] {
        assert!(check(&format!("[stages.load]\nretries = {number}\n")).contains("write 0 to 100"), "{number}");
    }
    for wait in ["soon", "0s", "-1s", "5"] {
        assert!(check(&format!("[stages.load]\nwait = \"{wait}\"\n")).contains("`wait` cannot be"), "{wait}");
    }
}
