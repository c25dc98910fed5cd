//! Hooks and the metrics file follow a run and do not change its result.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::harness::system::{signal, wait_for};
use crate::harness::{Project, json_lines};

const JOB: &str = readings_job!(
    "in/*.csv",
    r#"max_rejected = "40%""#,
    r#"
[exports.E]
per = "day"
name = "E_{day:%Y%m%d}"
query = { sql = "select meter, ts, kwh from T order by meter, ts" }
"#
);

const ALL: &str = r#"
[hooks]
success = ["./hook.sh", "one argument", "$HOME"]
warning = ["./hook.sh"]
failure = ["./hook.sh"]
interrupt = ["./hook.sh"]
finish = ["./hook.sh"]
"#;

const LOG: &str = "echo \"$TIDETABLE_HOOK $TIDETABLE_OUTCOME $TIDETABLE_EXIT_CODE $#\" >> hooks.log\n";

fn project(more: &str, script: &str) -> Project {
    let project = Project::new("j", &format!("{JOB}{more}"));
    write_day(&project, 1, "1");
    hook(&project, script);
    project
}

fn hook(project: &Project, script: &str) {
    project.write("hook.sh", format!("#!/bin/sh\n{script}"));
    fs::set_permissions(project.path("hook.sh"), fs::Permissions::from_mode(0o755)).unwrap();
}

fn write_day(project: &Project, day: u32, kwh: &str) {
    let text = format!("meter,ts,kwh\n1,2020-01-{day:02}T10:00:00Z,1\n2,2020-01-{day:02}T10:00:00Z,{kwh}\n");
    project.write(&format!("in/{day}.csv"), text + &format!("3,2020-01-{day:02}T10:00:00Z,1\n"));
}

/// What the hooks wrote since the last call.
fn hook_log(project: &Project) -> Vec<String> {
    let text = fs::read_to_string(project.path("hooks.log")).unwrap_or_default();
    let _ = fs::remove_file(project.path("hooks.log"));
    text.lines().map(str::to_owned).collect()
}

fn record_of(project: &Project) -> Value {
    let mut paths: Vec<_> = fs::read_dir(project.path("data/runs")).unwrap().map(|file| file.unwrap().path()).collect();
    paths.sort();
    serde_json::from_slice(&fs::read(paths.last().unwrap()).unwrap()).unwrap()
}

#[test]
fn matching_hook_runs_before_the_finish_hook() {
    let project = project(ALL, LOG);
    project.ok(&["run", "j"]);
    assert_eq!(hook_log(&project), ["success ok 0 2", "finish ok 0 0"]);
    // An input that lost rows, which is whole again after that.
    hook(&project, &format!("{LOG}echo \"$TIDETABLE_ERROR\" > error.txt\n"));
    project.write("in/1.csv", "meter,ts,kwh\n1,2020-01-01T10:00:00Z,1\n");
    project.ok(&["run", "j"]);
    assert_eq!(hook_log(&project), ["warning ok 0 0", "finish ok 0 0"]);
    let told = project.read("error.txt");
    assert!(told.contains("in/1.csv has 1 of the 3 rows that it had"), "{told}");
    write_day(&project, 1, "1");
    project.ok(&["run", "j"]);
    assert_eq!(hook_log(&project), ["success ok 0 2", "finish ok 0 0"]);
    assert_eq!(project.read("error.txt"), "\n");
    write_day(&project, 2, "none");
    project.ok(&["run", "j"]);
    assert_eq!(hook_log(&project), ["warning ok 0 0", "finish ok 0 0"]);
    project.write("in/3.csv", "meter,ts,kwh\nx,y,z\nx,y,z\n");
    project.fails(1, &["run", "j"]);
    assert_eq!(hook_log(&project), ["failure failed 1 0", "finish failed 1 0"]);
    fs::remove_file(project.path("in/3.csv")).unwrap();

    let check = "\n[checks.few]\non = \"T\"\nrows = { max = 1 }\n";
    project.write("jobs/j/job.toml", format!("{JOB}{ALL}{check}"));
    project.fails(3, &["run", "j", "--force"]);
    assert_eq!(hook_log(&project), ["failure checks 3 0", "finish checks 3 0"]);
    project.write("jobs/j/job.toml", format!("{JOB}{ALL}{check}severity = \"warn\"\n"));
    project.ok(&["run", "j", "--force"]);
    assert_eq!(hook_log(&project), ["warning ok 0 0", "finish ok 0 0"]);
    project
        .write("jobs/j/job.toml", format!("{JOB}{ALL}").replace("select meter", "select 1 / (meter - 1) as x, meter"));
    project.fails(4, &["run", "j", "--force"]);
    assert_eq!(hook_log(&project), ["failure partial 4 0", "finish partial 4 0"]);
}

#[test]
fn run_that_did_not_begin_has_no_hooks() {
    let project = project(ALL, LOG);
    project.ok(&["plan", "j"]);
    project.ok(&["run", "j", "--dry-run"]);
    project.fails(2, &["run", "j", "--from", "2020-02-02", "--to", "2020-01-01"]);
    project.write("jobs/j/job.toml", format!("{JOB}{ALL}surprise = 1\n"));
    project.fails(2, &["run", "j"]);
    assert_eq!(hook_log(&project), Vec::<String>::new());
}

#[test]
fn hook_receives_the_run_and_writes_to_standard_error() {
    let script =
        "cat\necho out; echo err >&2\nenv | grep ^TIDETABLE_ > env.txt\ncp \"$TIDETABLE_RECORD\" record.json\n";
    let project = project("\n[hooks]\nfinish = [\"./hook.sh\"]\n", script);
    let ran = project.run(&["run", "j", "--output", "json", "--log", "json", "--now", "2020-02-02T00:00:00Z"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let record = &json_lines(&ran.stdout)[0];
    let copied: Value = serde_json::from_str(&project.read("record.json")).unwrap();
    assert_eq!((&copied["run"], &copied["outcome"]), (&record["run"], &json!("ok")));
    assert_eq!(copied["loads"][0]["inputs"], json!([{ "path": "in/1.csv", "state": "new" }]));
    let text = project.read("env.txt");
    let told: BTreeMap<&str, &str> = text.lines().filter_map(|line| line.split_once('=')).collect();
    assert_eq!((told["TIDETABLE_JOB"], told["TIDETABLE_NOW"]), ("j", "2020-02-02T00:00:00Z"));
    assert_eq!(told["TIDETABLE_RUN"], record["run"].as_str().unwrap());
    assert_eq!(told["TIDETABLE_ROOT"], project.path("data").to_str().unwrap());
    let lines: Vec<Value> = json_lines(&ran.stderr);
    let has = |text: &str| lines.iter().any(|line| line["message"] == text);
    assert!(has("hook finish: out") && has("hook finish: err"), "{}", ran.stderr);
}

#[test]
fn rows_that_an_unfinished_run_rejected_are_told_by_the_next() {
    for outcome in ["running", "failed", "interrupted"] {
        let project = project(ALL, &format!("{LOG}echo \"$TIDETABLE_ERROR\" > error.txt\n"));
        write_day(&project, 1, "much");
        project.ok(&["run", "j"]);
        assert_eq!(hook_log(&project)[0], "warning ok 0 0");

        // As if it had not come to its end, after its commit.
        let mut record = record_of(&project);
        let run = record["run"].as_str().unwrap().to_owned();
        record["outcome"] = json!(outcome);
        project.write(&format!("data/runs/{run}.json"), record.to_string());

        let told = project.messages(&["run", "j"]);
        let rejects = format!("run {run} did not finish, and rejected 1 row before: tidetable rejects j --run {run}");
        assert!(told.contains(&rejects), "{outcome}: {told}");
        assert_eq!(hook_log(&project)[0], "warning ok 0 0", "{outcome}");
        assert!(project.read("error.txt").contains(&rejects), "{outcome}: {}", project.read("error.txt"));

        assert!(!project.messages(&["run", "j"]).contains("did not finish"), "{outcome}: once");
        assert_eq!(hook_log(&project)[0], "success ok 0 2", "{outcome}");
    }

    // Rows of what was not committed are read and rejected again.
    let project = project(ALL, LOG);
    write_day(&project, 1, "much\nx,y,z");
    project.fails(1, &["run", "j"]);
    write_day(&project, 1, "1");
    assert!(!project.messages(&["run", "j"]).contains("rejected"));
}

#[test]
fn failed_hooks_change_nothing() {
    for (hooks, script, told) in [
        ("success = [\"./hook.sh\"]", "exit 3\n", "ended with exit code 3"),
        ("success = [\"./no-such-hook\"]", "", "cannot be started"),
        ("success = [\"./hook.sh\"]\ntimeout = \"1s\"", "sleep 600 & sleep 600\n", "took longer than 1 s"),
        ("success = [\"./hook.sh\"]", "echo broken > \"$TIDETABLE_RECORD\"\n", "a hook changed runs/"),
        ("success = [\"./hook.sh\"]", "rm \"$TIDETABLE_RECORD\"\n", "a hook changed runs/"),
        ("success = [\"./hook.sh\"]", "kill -9 $$\n", "was ended"),
    ] {
        let project = project(&format!("\n[hooks]\n{hooks}\n"), script);
        let ran = project.run(&["run", "j"]);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        assert!(ran.stderr.contains("warning: ") && ran.stderr.contains(told), "{}", ran.stderr);
        let record = record_of(&project);
        assert_eq!(record["outcome"], "ok");
        assert!(record["notes"].to_string().contains(told), "{record}");
        assert_eq!(project.sql("select count(*) as n from T")[0]["n"], 3);
    }
    let project = project("\n[hooks]\nfailure = [\"./hook.sh\"]\n", "exit 0\n");
    project.write("in/2.csv", "meter,ts,kwh\nx,y,z\nx,y,z\nx,y,z\n");
    project.fails(1, &["run", "j"]);
}

#[test]
fn long_hook_output_is_truncated() {
    let script = "i=0\nwhile [ $i -lt 5000 ]; do echo line $i; i=$((i+1)); done\n";
    let project = project("\n[hooks]\nsuccess = [\"./hook.sh\"]\n", script);
    let ran = project.run(&["run", "j"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(ran.stderr.matches("hook success: line").count(), 100);
    assert!(ran.stderr.contains("its other lines are left out"), "{}", ran.stderr);
}

#[test]
fn interrupted_run_has_its_own_hook() {
    let slow = "select a.meter from T a cross join T b cross join T c cross join T d cross join T e cross join T f";
    let text =
        JOB.replace("select meter, ts, kwh from T order by meter, ts", &format!("select count(*) as n from ({slow})"));
    let project = Project::new("j", &format!("{text}{ALL}"));
    hook(&project, LOG);
    let rows: Vec<String> = (0..40).map(|meter| format!("{meter},2020-01-01T10:00:00Z,1")).collect();
    project.write("in/1.csv", format!("meter,ts,kwh\n{}\n", rows.join("\n")));
    let mut command = project.command(&["run", "j"]);
    let run = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    wait_for("the table", || project.path("data/tables/T/manifest").exists());
    signal(run.id(), "-INT");
    let done = run.wait_with_output().unwrap();
    assert_eq!(done.status.code(), Some(130), "{}", String::from_utf8_lossy(&done.stderr));
    assert_eq!(hook_log(&project), ["interrupt interrupted 130 0", "finish interrupted 130 0"]);
}

#[test]
fn hook_errors_have_a_position() {
    for (text, told) in [
        ("[hooks]\nsuccess = []", "`success` names no program"),
        ("[hooks]\nsuccess = [\"\"]", "`success` names no program"),
        ("[hooks]\nsuccess = \"notify\"", "`success` takes a list of strings"),
        ("[hooks]\nsucess = [\"a\"]", "did you mean `success`?"),
        ("[hooks]\ntimeout = \"0s\"", "`timeout` cannot be `0s`"),
        ("[hooks]\ntimeout = \"soon\"", "as in `90s`"),
        ("[metrics]\nfile = \"\"", "`file` is empty"),
        ("[metrics]\nfile = \"s3://b/x.prom\"", "s3://b/x.prom is a URL"),
    ] {
        let project = project(&format!("\n{text}\n"), "");
        let found = project.fails(2, &["check", "j"]);
        assert!(found.contains(told), "{text}: {found}");
    }
}

/// Name with labels, and value, of each sample; panics where the text is not as the format has it: for each metric HELP,
/// then TYPE, then its samples together, each once.
fn samples(text: &str) -> BTreeMap<String, f64> {
    let (mut samples, mut seen) = (BTreeMap::new(), Vec::new());
    let (mut helped, mut current) = (String::new(), String::new());
    assert!(text.ends_with('\n'));
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            let (name, help) = rest.split_once(' ').unwrap();
            assert!(!help.is_empty() && !help.contains('\\'), "{line}");
            helped = name.to_owned();
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').unwrap();
            assert_eq!((name, kind), (helped.as_str(), "gauge"));
            assert!(!seen.contains(&helped), "{line}: twice");
            seen.push(helped.clone());
            current.clone_from(&helped);
        } else {
            let (name, rest) = line.split_once('{').unwrap();
            assert_eq!(name, current, "{line}");
            assert!(name.chars().all(|c| c.is_ascii_lowercase() || c == '_'), "{line}");
            let (labels, value) = rest.rsplit_once("} ").unwrap();
            for label in labels.split("\",") {
                let (key, value) = label.split_once("=\"").unwrap();
                assert!(key.chars().all(|c| c.is_ascii_lowercase()), "{line}");
                assert!(!value.trim_end_matches('"').contains(['"', '\n']), "{line}");
            }
            assert!(labels.ends_with('"'), "{line}");
            let value: f64 = value.parse().unwrap();
            assert!(value.is_finite(), "{line}");
            assert!(samples.insert(line.rsplit_once(' ').unwrap().0.to_owned(), value).is_none(), "{line}: twice");
        }
    }
    samples
}

#[test]
fn metrics_file_describes_the_last_run() {
    let check = "\n[checks.few]\non = \"E\"\nseverity = \"warn\"\nrows = { max = 1 }\n";
    let project = project(&format!("\n[metrics]\nfile = \"metrics/j.prom\"\n{check}"), "");
    write_day(&project, 2, "none");
    project.ok(&["run", "j"]);
    let first = samples(&project.read("metrics/j.prom"));
    let rows = |state: &str| first[&format!("tidetable_table_rows{{job=\"j\",table=\"T\",state=\"{state}\"}}")];
    assert_eq!((rows("read"), rows("accepted"), rows("filtered"), rows("rejected")), (6.0, 5.0, 0.0, 1.0));
    assert_eq!(first["tidetable_run_exit_code{job=\"j\"}"], 0.0);
    assert_eq!(first["tidetable_run_outcome{job=\"j\",outcome=\"ok\"}"], 1.0);
    assert_eq!(first["tidetable_export_parts{job=\"j\",export=\"E\",state=\"published\"}"], 2.0);
    assert_eq!(first["tidetable_checks_failed{job=\"j\",severity=\"warn\"}"], 2.0);
    let newest = "tidetable_export_newest_day_timestamp_seconds{job=\"j\",export=\"E\"}";
    assert_eq!(first[newest], 1_577_923_200.0);
    let success = "tidetable_last_success_timestamp_seconds{job=\"j\"}";
    assert_eq!(first[success], first["tidetable_run_finish_timestamp_seconds{job=\"j\"}"]);
    let bytes: u64 = ["in/1.csv", "in/2.csv"].iter().map(|file| fs::metadata(project.path(file)).unwrap().len()).sum();
    assert_eq!(first["tidetable_table_bytes{job=\"j\",table=\"T\",direction=\"in\"}"], bytes as f64);

    // A failed run keeps the time of the last good run, even if that record is missing.
    project.write("in/3.csv", "meter,ts,kwh\n4,2020-01-03T10:00:00Z,1\nx,y,z\n");
    project.fails(1, &["run", "j"]);
    let failed = samples(&project.read("metrics/j.prom"));
    assert_eq!((failed["tidetable_run_outcome{job=\"j\",outcome=\"failed\"}"], failed[success]), (1.0, first[success]));
    assert_eq!((failed["tidetable_run_exit_code{job=\"j\"}"], failed[newest]), (1.0, first[newest]));
    // Nothing of it was committed, so nothing counts as written.
    assert_eq!(failed["tidetable_table_rows{job=\"j\",table=\"T\",state=\"read\"}"], 2.0);
    assert_eq!(failed["tidetable_table_rows{job=\"j\",table=\"T\",state=\"written\"}"], 0.0);
    assert_eq!(failed["tidetable_table_bytes{job=\"j\",table=\"T\",direction=\"out\"}"], 0.0);
    let failed_run = project.json(&["history", "--run", "last"]).remove(0);
    let load = &failed_run["loads"][0];
    assert_eq!(
        (&load["rows_read"], &load["cells"], &load["bytes_out"]),
        (&json!(2), &json!(0), &json!(0)),
        "{failed_run}"
    );
    fs::remove_dir_all(project.path("data/runs")).unwrap();
    project.fails(1, &["run", "j"]);
    assert_eq!(samples(&project.read("metrics/j.prom"))[success], first[success]);
    let files: Vec<_> = fs::read_dir(project.path("metrics")).unwrap().map(|file| file.unwrap().file_name()).collect();
    assert_eq!(files, ["j.prom"]);
}

#[test]
fn unwritable_metrics_file_changes_nothing() {
    let project = project("\n[metrics]\nfile = \"hook.sh/j.prom\"\n", "");
    let ran = project.run(&["run", "j"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stderr.contains("warning: the metrics are not written"), "{}", ran.stderr);
    assert!(record_of(&project)["notes"][0].as_str().unwrap().contains("metrics are not written"));
}
