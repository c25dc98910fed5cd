//! Failures are reported even if nothing can be written, a run does not begin, or a clock is wrong.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::sync::{Arc, Mutex};

use serde_json::json;

use crate::harness::system::{Mount, skipped};
use crate::harness::{Project, Ran, json_lines};

const EXPORT: &str = "\n[exports.E]\nper = \"day\"\nname = \"E_{day:%Y%m%d}\"\nquery = { sql = \"select * from T\" }\n";
const HOOKS: &str = r#"
[hooks]
success = ["./hook.sh"]
failure = ["./hook.sh"]
finish = ["./hook.sh"]
error = ["./hook.sh"]

[metrics]
file = "metrics/j.prom"
"#;

fn job() -> String {
    readings_job!("in/*.csv", "", "").to_owned() + EXPORT
}

fn project(more: &str) -> Project {
    let project = Project::new("j", &(job() + more));
    project.write("in/1.csv", "meter,ts,kwh\n1,2020-01-01T10:00:00Z,1\n");
    let script = "echo \"$TIDETABLE_HOOK $TIDETABLE_OUTCOME $TIDETABLE_EXIT_CODE ${TIDETABLE_RECORD:+recorded}\" >> hooks.log\n\
                  echo \"$TIDETABLE_ERROR\" >> errors.log\n";
    project.write("hook.sh", format!("#!/bin/sh\n{script}"));
    fs::set_permissions(project.path("hook.sh"), fs::Permissions::from_mode(0o755)).unwrap();
    project
}

/// What the hooks wrote since the last call.
fn hook_log(project: &Project) -> Vec<String> {
    let text = fs::read_to_string(project.path("hooks.log")).unwrap_or_default();
    let _ = fs::remove_file(project.path("hooks.log"));
    text.lines().map(str::to_owned).collect()
}

fn status(project: &Project) -> serde_json::Value {
    project.json(&["status"]).remove(0)
}

/// Runs a job whose first record cannot be written; message, hooks and log report the failure.
fn assert_failure_is_reported(project: &Project, told: &str) {
    let stderr = project.fails(1, &["run", "j"]);
    assert!(stderr.contains(told), "{stderr}");
    assert_eq!(hook_log(project), ["failure failed 1 ", "finish failed 1 "], "{stderr}");
    assert!(project.read("errors.log").contains(told));
    let metrics = project.read("metrics/j.prom");
    assert!(metrics.contains("tidetable_run_outcome{job=\"j\",outcome=\"failed\"} 1\n"), "{metrics}");
    assert!(metrics.contains("tidetable_run_exit_code{job=\"j\"} 1\n"), "{metrics}");
}

#[test]
fn run_without_a_record_still_alerts() {
    let project = project(HOOKS);
    project.ok(&["run", "j"]);
    assert_eq!(hook_log(&project), ["success ok 0 recorded", "finish ok 0 recorded"]);
    fs::rename(project.path("data/runs"), project.path("data/elsewhere")).unwrap();
    project.write("data/runs", "in the way");
    assert_failure_is_reported(&project, "runs");
    fs::remove_file(project.path("data/runs")).unwrap();
    fs::rename(project.path("data/elsewhere"), project.path("data/runs")).unwrap();
    let status = status(&project);
    assert_eq!(status["outcome"], "failed", "{status}");
    assert!(status["error"].as_str().unwrap().contains("runs"), "{status}");
    assert!(status["last_good"].is_string());
    project.ok(&["run", "j"]);
    assert_eq!(self::status(&project)["outcome"], "ok");
}

#[test]
fn hooks_learn_why_a_run_is_partial() {
    let error = |project: &Project| {
        let text = project.read("errors.log");
        fs::remove_file(project.path("errors.log")).unwrap();
        text.lines().next().unwrap_or_default().to_owned()
    };
    let check = "\n[checks.few]\non = \"E\"\nrows = { max = 1 }\n";
    let project = project(&format!("{HOOKS}{check}"));
    project.ok(&["run", "j"]);
    assert_eq!(error(&project), "");
    // A failed check, exit code 3.
    project.write("in/2.csv", "meter,ts,kwh\n1,2020-01-02T10:00:00Z,1\n2,2020-01-02T10:00:00Z,1\n");
    project.fails(3, &["run", "j"]);
    assert_eq!(error(&project), "check few failed for E of 2020-01-02: rows up to 1: 2");
    // A file where the folder of a part belongs, exit code 4.
    project.write("in/2.csv", "meter,ts,kwh\n1,2020-01-02T10:00:00Z,1\n");
    project.write("in/3.csv", "meter,ts,kwh\n1,2020-01-03T10:00:00Z,1\n");
    project.write("data/exports/E_20200103", "in the way");
    project.fails(4, &["run", "j"]);
    let told = error(&project);
    assert!(told.starts_with("E_20200103 was not published: "), "{told}");
    fs::remove_file(project.path("data/exports/E_20200103")).unwrap();
    project.ok(&["run", "j"]);
    fs::remove_file(project.path("errors.log")).unwrap();
    // A window that cannot be rebuilt, exit code 4.
    project.write("in/4.csv", "meter,ts,kwh\n1,2020-01-03T11:00:00Z,1\n1,2020-01-04T11:00:00Z,1\n");
    project.run(&["run", "j"]);
    fs::remove_file(project.path("in/3.csv")).unwrap();
    fs::remove_file(project.path("errors.log")).unwrap();
    project.write("in/4.csv", "meter,ts,kwh\n1,2020-01-03T12:00:00Z,1\n1,2020-01-04T11:00:00Z,1\n");
    project.fails(4, &["run", "j"]);
    let told = error(&project);
    assert!(told.starts_with("window 2020-01-03 of T cannot be rebuilt without the missing in/3.csv"), "{told}");
}

#[test]
fn full_disk_still_alerts() {
    let project = project(HOOKS);
    let Some(mount) = Mount::new(&project, "1m") else { return };
    let at = project.path("data");
    let text = project.read("jobs/j/job.toml").replace("metrics/j.prom", "data/j.prom");
    project.write("jobs/j/job.toml", text);
    project.ok(&["run", "j"]);
    hook_log(&project);
    let mut filler = fs::File::create(at.join("filler")).unwrap();
    while filler.write_all(&[0; 4096]).is_ok() {}
    let stderr = project.fails(1, &["run", "j"]);
    assert!(stderr.contains("No space left"), "{stderr}");
    assert_eq!(hook_log(&project), ["failure failed 1 ", "finish failed 1 "], "{stderr}");
    assert!(
        fs::read_to_string(at.join("j.prom")).unwrap().contains("outcome=\"failed\"} 1\n"),
        "the file has room for it"
    );
    assert_eq!(status(&project)["outcome"], "failed");
    // An open file keeps its space.
    drop(filler);
    fs::remove_file(at.join("filler")).unwrap();
    project.ok(&["run", "j"]);
    assert_eq!(status(&project)["outcome"], "ok");
    drop(mount);
}

#[test]
fn load_is_retried_when_the_disk_has_room() {
    let project = project("\n[stages.load]\nretries = 20\nwait = \"1s\"\n");
    let Some(mount) = Mount::new(&project, "4m") else { return };
    project.ok(&["run", "j"]);
    // There is space for the record of the run, and none for its SSTs.
    let filler = project.path("data/filler");
    let mut file = fs::File::create(&filler).unwrap();
    while file.write_all(&[0; 4096]).is_ok() {}
    file.set_len(file.metadata().unwrap().len() - 65_536).unwrap();
    drop(file);
    let mut value = 1_u64;
    let rows = (0..60_000).map(|row| {
        value = value.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        format!("{},2020-01-02T{:02}:{:02}:00Z,{}\n", row % 999, row / 2_500 % 24, row / 60 % 60, value >> 12)
    });
    project.write("in/2.csv", format!("meter,ts,kwh\n{}", rows.collect::<String>()));
    let mut command = project.command(&["run", "j", "--log", "json"]);
    let mut run = command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::piped()).spawn().unwrap();
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(run.stderr.take().unwrap()));
    assert!(lines.any(|line| line.unwrap().contains("No space left")), "it fails first");
    fs::remove_file(&filler).unwrap();
    let rest: Vec<String> = lines.map(Result::unwrap).collect();
    assert!(run.wait().unwrap().success(), "{rest:?}");
    assert_eq!(project.sql("select count(*) > 10000 as loaded from T")[0]["loaded"], true);
    drop(mount);
}

#[test]
fn run_that_does_not_begin_has_its_own_hook() {
    let project = project(HOOKS);
    project.ok(&["run", "j"]);
    hook_log(&project);
    let lock = fs::OpenOptions::new().write(true).open(project.path("data/locks/j.lock")).unwrap();
    lock.lock().unwrap();
    project.fails(75, &["run", "j"]);
    assert_eq!(hook_log(&project), ["error failed 75 "]);
    project.ok(&["run", "j", "--if-locked", "skip"]);
    drop(lock);
    let good = project.read("jobs/j/job.toml");
    project.write("jobs/j/job.toml", good.replace("time = \"ts\"", "time = \"ts\"\nsurprise = 1"));
    project.fails(2, &["run", "j", "--dry-run"]);
    assert_eq!(hook_log(&project), Vec::<String>::new());
    for line in [&["run", "j"][..], &["run", "--all"], &["run", "j", "--catch-up"]] {
        project.fails(2, line);
        assert_eq!(hook_log(&project), ["error failed 2 "], "{line:?}");
        let told = project.read("errors.log");
        let told = told.lines().last().unwrap();
        assert!(told.contains("job.toml has 1 mistake: line ") && told.contains("surprise"), "{line:?}: {told}");
    }
    project.write("jobs/j/job.toml", good.replace("error = [\"./hook.sh\"]\n", "") + "surprise = 1\n");
    project.fails(2, &["run", "j"]);
    assert_eq!(hook_log(&project), Vec::<String>::new(), "only if it is asked for");
}

/// A server on this machine that answers each request with `answer` (not at all if that is empty), and its requests.
fn server(answer: &'static str) -> (String, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let asked: Arc<Mutex<Vec<String>>> = Arc::default();
    let seen = Arc::clone(&asked);
    std::thread::spawn(move || {
        let mut silent = Vec::new();
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut bytes = [0; 4096];
            let length = stream.read(&mut bytes).unwrap();
            let text = String::from_utf8_lossy(&bytes[..length]).into_owned();
            seen.lock().unwrap().push(text.lines().next().unwrap_or_default().to_owned());
            if answer.is_empty() {
                silent.push(stream);
            } else {
                let _ = write!(stream, "HTTP/1.1 {answer}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
            }
        }
    });
    (format!("http://{address}/ping/1d2e"), asked)
}

fn asked(requests: &Arc<Mutex<Vec<String>>>) -> Vec<String> {
    std::mem::take(&mut *requests.lock().unwrap())
}

#[test]
fn heartbeat_reports_outcomes() {
    let (url, requests) = server("200 OK");
    let project = project(&format!("\n[hooks]\nheartbeat = \"{url}\"\n"));
    project.ok(&["run", "j"]);
    assert_eq!(asked(&requests), ["GET /ping/1d2e HTTP/1.1"]);
    project.ok(&["plan", "j"]);
    project.write("in/2.csv", "meter,ts,kwh\nx,y,z\n");
    project.fails(1, &["run", "j"]);
    assert_eq!(asked(&requests), ["GET /ping/1d2e/fail HTTP/1.1"]);
    let good = project.read("jobs/j/job.toml");
    project.write("jobs/j/job.toml", good.clone() + "surprise = 1\n");
    project.fails(2, &["run", "j"]);
    assert_eq!(asked(&requests), ["GET /ping/1d2e/fail HTTP/1.1"]);
    project.write("jobs/j/job.toml", &good);
    let lock = fs::OpenOptions::new().write(true).open(project.path("data/locks/j.lock")).unwrap();
    lock.lock().unwrap();
    project.fails(75, &["run", "j"]);
    assert_eq!(asked(&requests), [""; 0], "the run that goes on has its own");
}

#[test]
fn failed_heartbeat_changes_nothing_and_hides_its_url() {
    let (refused, tries) = server("404 Not Found");
    let (failing, more_tries) = server("503 Service Unavailable");
    let (silent, _) = server("");
    for (url, told) in [(&refused, "404"), (&failing, "503"), (&silent, "no answer within 1 s")] {
        let project = project("\n[hooks]\nheartbeat = { env = \"PING\" }\ntimeout = \"1s\"\n");
        let ran = project.command(&["run", "j", "--verbose"]).env("PING", url).output().unwrap();
        let stderr = String::from_utf8(ran.stderr).unwrap();
        assert_eq!(ran.status.code(), Some(0), "{stderr}");
        assert!(stderr.contains("the heartbeat was not sent") && stderr.contains(told), "{stderr}");
        assert!(!stderr.contains("1d2e"), "{stderr}");
        let notes = project.sql("select * from runs.runs");
        assert!(!notes[0].to_string().contains("1d2e"), "{notes:?}");
    }
    assert_eq!(asked(&tries).len(), 1, "it will not change its mind");
    assert!(asked(&more_tries).len() > 1, "it may pass");
    let project = project("\n[hooks]\nheartbeat = { env = \"NO_SUCH_VARIABLE\" }\n");
    assert!(project.run(&["run", "j"]).stderr.contains("NO_SUCH_VARIABLE is not set"));
    let project = Project::new("j", &(job() + "\n[hooks]\nheartbeat = \"hc-ping.com\"\n"));
    assert!(project.fails(2, &["check", "j"]).contains("`heartbeat` is not a URL"));
}

#[test]
fn future_logical_time_is_reported_and_ignored_by_status() {
    let project = project("");
    let ran = project.run(&["run", "j", "--now", "2036-01-01T00:00:00Z"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stderr.contains("2036-01-01") && ran.stderr.contains("is in the future"), "{}", ran.stderr);
    let told = project.run(&["status", "--output", "json"]);
    let status = json_lines(&told.stdout).remove(0);
    assert_eq!(status["last_good"].as_str().unwrap()[..19], status["started"].as_str().unwrap()[..19]);
    assert!(told.stderr.contains("2036-01-01"), "{}", told.stderr);
    let doctor = project.ok(&["doctor"]);
    assert!(doctor.contains("in the future"), "{doctor}");
}

#[test]
fn record_with_a_future_clock_is_not_the_last_run() {
    let project = project("");
    project.ok(&["run", "j"]);
    let runs = fs::read_dir(project.path("data/runs")).unwrap().map(|file| file.unwrap().path()).collect::<Vec<_>>();
    let mut record: serde_json::Value = serde_json::from_slice(&fs::read(&runs[0]).unwrap()).unwrap();
    // A run in 2036 by its clock.
    let future = 2_082_758_400_000_000_i64;
    for key in ["now", "started", "finished"] {
        record[key] = json!(future);
    }
    record["run"] = json!("01WK0000000000000000000000");
    project.write("data/runs/01WK0000000000000000000000.json", record.to_string());
    project.write("in/2.csv", "meter,ts,kwh\nx,y,z\n");
    project.fails(1, &["run", "j"]);
    let told = project.run(&["status", "--output", "json"]);
    let status = json_lines(&told.stdout).remove(0);
    assert_eq!(status["outcome"], "failed", "{status}");
    assert!(!status["last_good"].as_str().unwrap().starts_with("2036"), "{status}");
    assert!(told.stderr.contains("01WK0000000000000000000000"), "{}", told.stderr);
    let history = project.json(&["history"]);
    let outcomes: Vec<&str> = history.iter().map(|run| run["outcome"].as_str().unwrap()).collect();
    assert_eq!(outcomes, ["failed", "ok", "ok"], "in the order in which they were recorded");
}

/// A library that sets the clock of one command back to 1969.
const CLOCK_OF_1969: &str = r#"
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t clock, struct timespec *at) {
    long failed = syscall(SYS_clock_gettime, clock, at);
    if (!failed && clock == CLOCK_REALTIME) at->tv_sec = -86400;
    return (int)failed;
}
"#;

#[test]
fn a_clock_before_1970_is_named_by_every_command() {
    let project = project("");
    project.ok(&["run", "j"]);
    project.write("clock.c", CLOCK_OF_1969);
    let library = project.path("clock.so");
    let compiler = std::process::Command::new("cc")
        .args(["-shared", "-fPIC", "-o"])
        .args([&library, &project.path("clock.c")])
        .status();
    if !compiler.is_ok_and(|ended| ended.success()) {
        return skipped("no C compiler");
    }

    for args in [&["run", "j"][..], &["status"], &["sql", "-c", "select 1"], &["plan", "j"], &["check", "j"]] {
        let ran = Ran::of(project.command(args).env("LD_PRELOAD", &library));
        assert_eq!(ran.code, Some(1), "{args:?}: {}{}", ran.stdout, ran.stderr);
        assert!(ran.stderr.contains("1969-12-31"), "{args:?}: {}", ran.stderr);
    }
    project.ok(&["run", "j"]);
}

#[test]
fn owed_windows_hold_back_no_other_job() {
    let project = project("");
    project.write("in/3.csv", "meter,ts,kwh\n1,2020-01-03T10:00:00Z,1\n");
    project.write("in/4.csv", "meter,ts,kwh\n1,2020-01-03T11:00:00Z,1\n");
    project.run_job("j");
    let other = EXPORT.replace("exports.E", "exports.B").replace("E_", "B_");
    project.write("jobs/b/job.toml", format!("name = \"b\"\n{other}"));
    fs::remove_file(project.path("in/3.csv")).unwrap();
    project.write("in/4.csv", "meter,ts,kwh\n1,2020-01-03T12:00:00Z,1\n");
    project.write("in/5.csv", "meter,ts,kwh\n1,2020-01-05T12:00:00Z,1\n");

    let ran = project.run(&["run", "--all"]);
    assert_eq!(ran.code, Some(4), "{}", ran.stderr);
    assert!(!ran.stderr.contains("is not run"), "{}", ran.stderr);
    assert!(project.path("data/exports/B_20200105").is_dir());
}

#[test]
fn a_withdrawn_part_that_another_job_reads_is_a_warning() {
    let project = project("");
    project.write("in/2.csv", "meter,ts,kwh\n1,2020-01-02T10:00:00Z,1\n");
    project.run_job("j");
    let reader = readings_job!("data/exports/E_*/*.parquet", "", "")
        .replacen("\"j\"", "\"b\"", 1)
        .replace("tables.T", "tables.B");
    project.write("jobs/b/job.toml", reader);
    project.run_job("b");

    project.write("in/2.csv", "meter,ts,kwh\n1,2020-01-03T10:00:00Z,1\n");
    project.run_job("j");
    let told = project.succeeds(&["run", "b", "--quiet"]).stderr;
    assert!(told.contains("E_20200102/part-0.parquet, published before, is withdrawn"), "{told}");
}
