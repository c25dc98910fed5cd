//! Run records: their contents, the names of runs, and the messages of a run.

use std::fs;

use serde_json::{Value, json};

use crate::harness::{Project, json_lines};

const JOB: &str = readings_job!(
    "in/*.csv",
    r#"max_rejected = "50%""#,
    r#"
[tables.U]
from = { query = { sql = "select meter, ts, kwh * 2 as twice from T where meter < 2" } }
row_key = "{meter:03}#{ts:%Y%m%d}"
[tables.U.families.M]
columns = [{ qualifier = "{ts:%H%M}", value = "{twice}" }]

[tables.V]
row_key = "{ts:%Y%m%d}#{meter:03}"
[tables.V.families.M]
columns = [{ qualifier = "{ts:%H%M}", value = "{kwh}" }]

[exports.E]
per = "day"
name = "E_{day:%Y%m%d}"
query = { sql = "select * from U" }

[exports.M]
per = "month"
name = "M_{month:%Y%m}"
query = { sql = "select meter, ts, kwh from V order by meter, ts" }
"#
);

fn project(inputs: u32) -> Project {
    let project = Project::new("j", JOB);
    (0..inputs).for_each(|number| write_input(&project, number));
    project
}

/// A reading of a meter of its own.
fn write_input(project: &Project, number: u32) {
    let (month, day) = (1 + number % 3, 1 + number % 28);
    let row = format!("meter,ts,kwh\n{number},2020-{month:02}-{day:02}T10:00:00Z,1\n");
    project.write(&format!("in/{number:04}.csv"), row);
}

fn record_bytes(project: &Project, record: &Value) -> usize {
    project.read(&format!("data/runs/{}.json", text(&record["run"]))).len()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}

#[test]
fn run_without_changes_writes_a_small_record() {
    let (few, many) = (project(3), project(120));
    let idle = |project: &Project| {
        let first = project.run_job("j");
        let idle = project.run_job("j");
        assert_eq!(idle["loads"][0]["inputs"], json!([]));
        assert_eq!(idle["loads"][0]["standing"]["unchanged"], first["loads"][0]["inputs"].as_array().unwrap().len());
        record_bytes(project, &idle)
    };
    let (few_bytes, many_bytes) = (idle(&few), idle(&many));
    // Counts of three digits take a few bytes more.
    assert!(many_bytes < few_bytes + 20 && many_bytes < 1000, "{few_bytes} {many_bytes}");

    // The next record holds only the changes by one more file.
    write_input(&many, 120);
    let third = many.run_job("j");
    assert_eq!(third["loads"][0]["inputs"], json!([{ "path": "in/0120.csv", "state": "new", "same_as": null }]));
    assert!(record_bytes(&many, &third) < 4000, "{}", record_bytes(&many, &third));
    let inputs = many.sql("select path, state from runs.inputs where table_name = 'T' order by run desc, path limit 1");
    assert_eq!(inputs[0], json!({ "path": "in/0120.csv", "state": "new" }));
    let loads = many.sql("select inputs, inputs_unchanged as same from runs.loads where table_name = 'T' order by run");
    let counts = |inputs: u64, same: u64| json!({ "inputs": inputs, "same": same });
    assert_eq!(loads, [counts(120, 0), counts(120, 120), counts(121, 120)]);
    // The run that loaded it is known although later records do not name it.
    many.run_job("j");
    let links = many.json(&["lineage", "--input", "in/0120.csv"]);
    assert_eq!(links[0]["run"], third["run"]);
}

#[test]
fn missing_input_is_reported_once() {
    let project = project(4);
    project.write("in/0004.csv", project.read("in/0003.csv"));
    let states = |record: &Value| -> Vec<String> {
        let inputs = record["loads"][0]["inputs"].as_array().unwrap();
        inputs.iter().map(|input| format!("{} {}", text(&input["state"]), text(&input["path"]))).collect()
    };
    assert!(states(&project.run_job("j")).contains(&"same content in/0004.csv".to_owned()));
    fs::remove_file(project.path("in/0001.csv")).unwrap();
    let first = project.run_job("j");
    assert_eq!(states(&first), ["gone in/0001.csv"]);
    assert!(first["notes"].to_string().contains("in/0001.csv is gone"));
    let second = project.run_job("j");
    assert_eq!((states(&second), &second["notes"]), (vec![], &json!([])));
    assert_eq!(second["loads"][0]["standing"]["gone"], 1);
    fs::remove_file(project.path("in/0002.csv")).unwrap();
    assert_eq!(states(&project.run_job("j")), ["gone in/0002.csv"]);
    // Without `seen/` a run reports missing inputs once more, and nothing else is lost.
    fs::remove_dir_all(project.path("data/seen")).unwrap();
    assert_eq!(states(&project.run_job("j")).len(), 3);
    assert_eq!(project.sql("select count(*) as n from T")[0]["n"], 4);
    // `clean` removes it for a job that no longer exists.
    fs::rename(project.path("jobs/j"), project.path("jobs/k")).unwrap();
    project.write("jobs/k/job.toml", JOB.replace("name = \"j\"", "name = \"k\""));
    assert!(project.path("data/seen/j.json").exists());
    project.ok(&["clean", "--older-than", "0s", "--yes"]);
    assert!(!project.path("data/seen/j.json").exists());
}

#[test]
fn records_of_older_builds_are_read() {
    let project = project(3);
    let mut record = project.run_job("j");
    record = project.stored_record(&record["run"]);
    let path = format!("data/runs/{}.json", text(&record["run"]));
    // Records as they were written, with every field and every input.
    record["format"] = json!(2);
    for load in record["loads"].as_array_mut().unwrap() {
        load.as_object_mut().unwrap().remove("standing");
        load["inputs"].as_array_mut().unwrap().push(json!({ "path": "in/old.csv", "state": "unchanged" }));
    }
    project.write(&path, serde_json::to_string_pretty(&record).unwrap());
    let history = project.json(&["history"]);
    assert_eq!((&history[0]["outcome"], &history[0]["read"]), (&json!("ok"), &json!(8)));
    assert_eq!(project.json(&["status"])[0]["run"], record["run"]);
    let loads = project.sql("select inputs, inputs_unchanged from runs.loads where table_name = 'T'");
    assert_eq!(loads[0], json!({ "inputs": 4, "inputs_unchanged": 1 }));
    assert_eq!(project.sql("select count(*) as n from runs.inputs where table_name = 'T'")[0]["n"], 3);
    let links = project.json(&["lineage", "T"]);
    assert_eq!(links[0]["run"], record["run"]);
}

#[test]
fn run_is_found_by_a_prefix_of_its_name() {
    let project = project(2);
    project.write("in/bad.csv", "meter,ts,kwh\n9,2020-01-09T10:00:00Z,much\n8,2020-01-09T10:00:00Z,1\n");
    let record = project.run_job("j");
    let run = text(&record["run"]);
    let one = |args: &[&str]| project.json(args).remove(0);
    for name in [run, &run[..25], &run.to_lowercase()[..24], "last"] {
        assert_eq!(one(&["history", "--run", name])["run"], record["run"], "{name}");
        assert_eq!(one(&["rejects", "j", "--run", name])["run"], record["run"], "{name}");
        assert_eq!(one(&["lineage", "--run", name])["run"], record["run"], "{name}");
        let idle = project.run(&["retry", name]);
        assert!(idle.code == Some(0) && idle.stderr.contains(&format!("run {run} left nothing")), "{}", idle.stderr);
    }
    assert_eq!(one(&["history", "--run", "j"])["run"], record["run"], "a job stands for its last run");
    let shown = project.ok(&["history", "--run", "last"]);
    assert!(shown.contains("rejected rows") && shown.contains("published M: 2 months"), "{shown}");
    let copy = format!("{}{}", &run[..25], if run.ends_with('Z') { 'Y' } else { 'Z' });
    let mut other = project.stored_record(&record["run"]);
    other["run"] = json!(copy);
    project.write(&format!("data/runs/{copy}.json"), other.to_string());
    let said = project.fails(2, &["history", "--run", &run[..25]]);
    assert!(said.contains("2 runs begin with") && said.contains(&copy), "{said}");
    fs::remove_file(project.path(&format!("data/runs/{copy}.json"))).unwrap();
    let ran = project.run(&["replay", &run[..20]]);
    assert!(ran.code == Some(0) && ran.stderr.contains(&format!("of run {run} again")), "{}", ran.stderr);
    assert!(project.fails(2, &["retry", "02"]).contains("run 02 has no record"));
}

#[test]
fn retry_last_retries_the_last_run() {
    let project = project(3);
    project.write("jobs/j/job.toml", JOB.replace("select * from U", "select 1 / (meter - 1) as x from U"));
    let ran = project.run(&["run", "j"]);
    assert_eq!(ran.code, Some(4), "{}", ran.stderr);
    assert!(ran.stderr.contains("1 day not published"), "{}", ran.stderr);
    project.write("jobs/j/job.toml", JOB.replace("select * from U", "select meter from U"));
    project.ok(&["retry", "last"]);
    assert_eq!(project.sql("select count(*) as n from exports.E")[0]["n"], 2);
}

#[test]
fn select_includes_dependencies() {
    let project = project(3);
    let tables = |record: &Value| -> Vec<String> {
        record["loads"].as_array().unwrap().iter().map(|load| text(&load["table"]).to_owned()).collect()
    };
    let run = |args: &[&str]| project.json(&[&["run", "j"], args].concat()).remove(0);
    let planned = project.ok(&["plan", "j", "--select", "table:V"]);
    assert!(planned.contains(" V ") && !planned.contains(" T ") && !planned.contains("publish"), "{planned}");
    let first = run(&["--select", "table:V"]);
    assert_eq!((tables(&first), &first["exports"]), (vec!["V".to_owned()], &json!([])));
    assert_eq!(first["asked"]["select"], json!(["table:V"]));
    let second = run(&["--select", "export:E"]);
    assert_eq!(tables(&second), ["T", "U"]);
    assert!(second["exports"].as_array().unwrap().iter().all(|part| part["export"] == "E"), "{second}");
    assert_eq!(second["exports"].as_array().unwrap().len(), 2);
    // The rest is left to the next run.
    let third = run(&[]);
    assert_eq!(third["exports"].as_array().unwrap().iter().filter(|part| part["export"] == "M").count(), 3);
    assert_eq!(run(&["--select", "export:M,table:U"])["exports"], json!([]));
    let said = project.fails(2, &["run", "j", "--select", "export:X"]);
    assert!(said.contains("no such export; it has `E`, `M`"), "{said}");
    assert!(project.fails(2, &["run", "j", "--select", "E"]).contains("table:NAME or export:NAME"));
}

#[test]
fn all_jobs_are_planned_in_order() {
    let project = project(1);
    let reads = "name = \"a\"\n[exports.A]\nper = \"query\"\nname = \"A\"\nquery = { sql = \"select * from T\" }\n";
    project.write("jobs/a/job.toml", reads);
    // The source table of one job does not exist before the other job has run.
    let planned = project.run(&["plan", "--all", "--output", "json"]);
    assert_eq!(planned.code, Some(0), "{}", planned.stderr);
    assert!(json_lines(&planned.stdout).iter().any(|row| row["name"] == "T" && row["why"] == "missing"));
    assert!(planned.stderr.contains("a: what it does is known once j has run"), "{}", planned.stderr);
    project.fails(2, &["plan"]);
    project.ok(&["run", "j"]);
    let planned = project.json(&["plan", "--all"]);
    let of: Vec<&str> = planned.iter().map(|row| text(&row["of"])).collect();
    assert_eq!(of, ["j", "j", "j", "A"], "{planned:?}");
    project.ok(&["run", "--all", "--quiet"]);
    assert_eq!(project.ok(&["plan", "--all"]).matches("nothing to do").count(), 2);
}

#[test]
fn log_lines_without_a_terminal_have_time_and_run() {
    let project = project(2);
    let ran = project.run(&["run", "j"]);
    let run = fs::read_dir(project.path("data/runs")).unwrap().next().unwrap().unwrap().file_name();
    let run = run.to_str().unwrap().trim_end_matches(".json").to_owned();
    assert!(ran.stderr.lines().count() > 2);
    for line in ran.stderr.lines() {
        let (time, rest) = line.split_once(' ').unwrap();
        assert!(time.starts_with("20") && time.ends_with('Z') && time.len() == 24, "{line}");
        assert!(rest.starts_with(&run), "{line}");
    }
    // No next steps are suggested to a file; three tables give three lines.
    assert!(!ran.stdout.contains("Try next"), "{}", ran.stdout);
    assert_eq!(ran.stdout.lines().filter(|line| line.starts_with('│')).count(), 4, "{}", ran.stdout);
    assert!(ran.stdout.contains("published M: 2 months, exports/M_202001 to exports/M_202002"), "{}", ran.stdout);
    assert!(project.ok(&["run", "j", "--verbose"]).contains("bytes in"));
    // Every line of an error has them too.
    let ran = project.run(&["run", "nowhere"]);
    assert!(ran.stderr.lines().all(|line| line.starts_with("20")), "{}", ran.stderr);
    assert!(project.run(&["sql", "-c", "select"]).stderr.starts_with("error"), "others have none");

    write_input(&project, 2);
    let ran = project.run(&["run", "j", "--log", "json"]);
    let lines = json_lines(&ran.stderr);
    assert!(
        !lines.is_empty() && lines.iter().all(|line| line["ts"].is_string() && line["run"].is_string()),
        "{lines:?}"
    );
}

#[test]
fn overwritten_rows_are_reported() {
    let project = project(1);
    assert!(!project.ok(&["run", "j"]).contains("written over"));
    project.write("in/1.csv", "meter,ts,kwh\n7,2020-01-01T10:00:00Z,1\n7,2020-01-01T10:00:00Z,2\n");
    let said = project.ok(&["run", "j"]);
    assert!(said.contains("written over"), "{said}");
}

#[test]
fn quiet_run_reports_errors() {
    let project = project(2);
    let ran = project.run(&["run", "j", "-q"]);
    assert_eq!((ran.code, ran.stdout.as_str(), ran.stderr.as_str()), (Some(0), "", ""));
    project.write("in/bad.csv", "meter,ts,kwh\nx,y,z\nx,y,z\nx,y,z\nx,y,z\n");
    let ran = project.run(&["run", "j", "--quiet"]);
    assert_eq!((ran.code, ran.stderr.lines().count()), (Some(1), 1), "{}", ran.stderr);
    assert!(ran.stderr.contains("max_rejected"), "{}", ran.stderr);
    project.fails(2, &["run", "j", "--quiet", "--verbose"]);
}

#[test]
fn command_runs_in_the_given_directory() {
    let project = project(1);
    let other = tempfile::tempdir().unwrap();
    let here = project.path("");
    let at = |folder: &str, args: &[&str]| {
        let output = project.command(&["-C", folder]).args(args).current_dir(other.path()).output().unwrap();
        (output.status.code(), String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap())
    };
    let (code, _, said) = at(here.to_str().unwrap(), &["run", "j"]);
    assert_eq!(code, Some(0), "{said}");
    assert!(at(here.to_str().unwrap(), &["tables"]).1.contains('T'));
    let (code, _, said) = at("/nowhere/at/all", &["tables"]);
    assert!(code == Some(2) && said.contains("cannot work in /nowhere/at/all"), "{code:?} {said}");
}
