//! Runs: plans, days, checks, locks, signals, failed days and retries.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use serde_json::{Value, json};

use crate::harness::system::{signal, status_at_the_end, wait_for};
use crate::harness::{Project, Ran, json_lines};

const JOB: &str = readings_job!(
    "in/{day:%Y-%m-%d}*.csv",
    r#"max_rejected = "50%""#,
    r#"
[exports.E]
per = "day"
name = "E_{day:%Y%m%d}"
query = { sql = "select meter, ts, kwh, $now as run_at, $day as day from T order by meter, ts" }
"#
);

fn project(more: &str) -> Project {
    let project = Project::new("j", &format!("{JOB}{more}"));
    (1..=4).for_each(|day| write_day(&project, day, 1.0));
    project
}

fn write_day(project: &Project, day: u32, kwh: f64) {
    let rows: Vec<String> =
        (0..3).map(|meter| format!("{meter},2020-01-{day:02}T10:00:00Z,{}", kwh * f64::from(day))).collect();
    project.write(&format!("in/2020-01-{day:02}.csv"), format!("meter,ts,kwh\n{}\n", rows.join("\n")));
}

/// Kind, name and reason of each row of a plan.
fn plan(project: &Project, args: &[&str]) -> Vec<(String, String, String)> {
    let text = project.ok(&[&["plan", "j", "--output", "json"], args].concat());
    let said = |row: &Value, key: &str| row[key].as_str().unwrap().to_owned();
    json_lines(&text).iter().map(|row| (said(row, "kind"), said(row, "name"), said(row, "why"))).collect()
}

fn publishes(project: &Project, args: &[&str]) -> Vec<(String, String)> {
    plan(project, args).into_iter().filter(|(kind, ..)| kind == "publish").map(|(_, name, why)| (name, why)).collect()
}

fn pair(name: &str, why: &str) -> (String, String) {
    (name.to_owned(), why.to_owned())
}

fn spawn(project: &Project, args: &[&str]) -> Child {
    let mut command = project.command(args);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn records(project: &Project) -> Vec<Value> {
    let mut paths: Vec<_> = fs::read_dir(project.path("data/runs")).unwrap().map(|file| file.unwrap().path()).collect();
    paths.sort();
    paths.iter().map(|path| serde_json::from_slice(&fs::read(path).unwrap()).unwrap()).collect()
}

#[test]
fn plan_lists_days_and_reasons_and_writes_nothing() {
    let project = project("");
    let missing: Vec<_> = (1..=4).map(|day| pair(&format!("E_2020010{day}"), "missing")).collect();
    assert_eq!(publishes(&project, &[]), missing);
    assert_eq!(publishes(&project, &["--from", "2020-01-03"]), missing[2..]);
    assert!(!project.path("data").exists(), "a plan writes nothing");
    assert_eq!(project.ok(&["run", "j", "--dry-run"]), project.ok(&["plan", "j"]));
    assert!(!project.path("data").exists());

    project.run_job("j");
    assert!(project.ok(&["plan", "j"]).contains("nothing to do"));
    write_day(&project, 2, 7.0);
    write_day(&project, 5, 1.0);
    assert_eq!(publishes(&project, &[]), [pair("E_20200102", "T changed"), pair("E_20200105", "missing")]);
    assert_eq!(publishes(&project, &["--only", "missing"]), [pair("E_20200105", "missing")]);
    assert_eq!(
        publishes(&project, &["--day", "2020-01-03", "--force"]),
        [pair("E_20200103", "forced"), pair("E_20200102", "T changed")][..1]
    );
    // The run does what the plan lists.
    let record = project.run_job("j");
    let done: Vec<_> = record["exports"].as_array().unwrap().iter().map(|part| part["part"].clone()).collect();
    assert_eq!(done, ["E_20200102", "E_20200105"]);
    assert_eq!(
        (&record["outcome"], &record["notes"][0]),
        (&json!("ok"), &json!("in/2020-01-02.csv changed: the windows it touches are rebuilt"))
    );
}

#[test]
fn inputs_without_a_day_in_the_path_have_unknown_days() {
    let project = Project::new("j", &JOB.replace("in/{day:%Y-%m-%d}*.csv", "in/*.csv"));
    write_day(&project, 1, 1.0);
    assert_eq!(publishes(&project, &[]), [pair("E", "days of inputs not yet read")]);
    let ran = project.run(&["run", "j"]);
    assert!(ran.stderr.contains("plan: T: missing, inputs: 1 new; days unknown until read"), "{}", ran.stderr);
    assert_eq!(publishes(&project, &[]), []);
    write_day(&project, 1, 2.0);
    assert_eq!(publishes(&project, &[]), [pair("E_20200101", "T changed"), pair("E", "days of inputs not yet read")]);
}

#[test]
fn rows_outside_the_day_of_their_path_are_reported() {
    let project = project("");
    project.run_job("j");
    project.write("in/2020-01-05.csv", "meter,ts,kwh\n1,2020-01-05T00:00:00Z,1\n1,2020-01-06T00:00:00Z,1\n");
    let record = project.run_job("j");
    assert_eq!(record["notes"], json!(["E: inputs had rows of other days than planned: 2020-01-06"]));
}

#[test]
fn query_parameters_hold_day_and_logical_time() {
    let project = project("");
    project.ok(&["run", "j", "--now", "2020-02-02T00:00:00Z"]);
    let rows = project.sql("select distinct run_at, day from exports.E order by day");
    assert_eq!(rows.len(), 4);
    assert_eq!((&rows[0]["run_at"], &rows[3]["day"]), (&json!("2020-02-02T00:00:00Z"), &json!("2020-01-04")));
}

#[test]
fn failed_day_is_retried_and_others_are_published() {
    let project = project("");
    let divide = JOB.replace("$day as day", "100 / (extract(day from ts) - 2) as day");
    project.write("jobs/j/job.toml", &divide);
    let ran = project.run(&["run", "j", "--output", "json", "--now", "2020-02-02T00:00:00Z"]);
    assert_eq!(ran.code, Some(4), "{}", ran.stderr);
    let record = &json_lines(&ran.stdout)[0];
    let states: Vec<_> = record["exports"].as_array().unwrap().iter().map(|part| part["state"].clone()).collect();
    assert_eq!(states, ["published", "failed", "published", "published"]);
    assert_eq!(record["outcome"], "partial");
    let run = record["run"].as_str().unwrap();
    assert!(ran.stderr.contains(&format!("tidetable retry {run}")), "{}", ran.stderr);
    assert!(ran.stderr.to_lowercase().contains("divide by zero"), "{}", ran.stderr);
    assert_eq!(publishes(&project, &["--only", "failed"]), [pair("E_20200102", "missing")]);

    project.write("jobs/j/job.toml", JOB);
    let again = project.json(&["retry", run]).remove(0);
    let done: Vec<_> = again["exports"].as_array().unwrap().iter().map(|part| part["label"].clone()).collect();
    assert_eq!((done, &again["now"]), (vec![json!("2020-01-02")], &record["now"]));
    let idle = project.run(&["retry", again["run"].as_str().unwrap()]);
    assert!(idle.code == Some(0) && idle.stderr.contains("nothing to try again"), "{}", idle.stderr);
    assert!(project.fails(2, &["retry", "01XXXXXXXXXXXXXXXXXXXXXXXX"]).contains("has no record"));
}

#[test]
fn fail_fast_stops_after_the_first_failed_day() {
    let project = project("");
    project.write("jobs/j/job.toml", JOB.replace("$day as day", "1 / (extract(day from ts) - 1) as day"));
    let ran = project.run(&["run", "j", "--fail-fast", "--jobs", "1", "--output", "json"]);
    assert_eq!(ran.code, Some(4), "{}", ran.stderr);
    assert_eq!(json_lines(&ran.stdout)[0]["exports"].as_array().unwrap().len(), 1);
    assert!(!project.path("data/exports/E_20200104").exists());
}

#[test]
fn failed_checks_prevent_publication() {
    let checks = r#"
[checks.sane]
on = "T"
range = { kwh = { min = 0, max = 3.5 } }
rows = { min = 1, max = 3 }

[checks.keys]
on = "E"
not_null = ["meter", "kwh"]
unique = ["meter", "ts"]
query = { sql = "select * from T where meter > 100" }

[checks.high]
on = "E"
severity = "warn"
range = { kwh = { max = 1.5 } }
"#;
    let project = project(checks);
    let ran = project.run(&["run", "j", "--output", "json"]);
    assert_eq!(ran.code, Some(3), "{}", ran.stderr);
    let record = &json_lines(&ran.stdout)[0];
    assert_eq!(record["outcome"], "checks");
    let states: Vec<_> = record["exports"].as_array().unwrap().iter().map(|part| part["state"].clone()).collect();
    assert_eq!(states, ["published", "published", "published", "checks"]);
    assert!(!project.path("data/exports/E_20200104").exists());
    let found: Vec<&Value> =
        record["checks"].as_array().unwrap().iter().filter(|check| check["passed"] == false).collect();
    let said: Vec<_> = found
        .iter()
        .map(|check| {
            (check["check"].as_str().unwrap(), check["label"].as_str().unwrap(), check["measured"].as_i64().unwrap())
        })
        .collect();
    assert_eq!(
        said,
        [("high", "2020-01-02", 3), ("high", "2020-01-03", 3), ("sane", "2020-01-04", 3), ("high", "2020-01-04", 3)]
    );
    let rows = record["checks"].as_array().unwrap().iter().find(|check| check["rule"] == "rows 1 to 3").unwrap();
    assert_eq!((&rows["measured"], &rows["passed"]), (&json!(3), &json!(true)));
    let said = project.run(&["run", "j"]);
    assert!(said.stdout.contains("check sane failed for T of 2020-01-04: kwh 0 to 3.5: 3"), "{}", said.stdout);
    // Repaired days are published.
    write_day(&project, 4, 0.1);
    project.ok(&["run", "j"]);
    assert!(project.path("data/exports/E_20200104").exists());
}

#[test]
fn checks_of_unread_tables_are_measured() {
    let text = JOB.split("[exports.E]").next().unwrap().to_owned();
    let project = project("");
    project.write("jobs/j/job.toml", text + "[checks.sane]\non = \"T\"\nrange = { kwh = { max = 3.5 } }\n");
    let ran = project.run(&["run", "j", "--output", "json"]);
    assert_eq!(ran.code, Some(3), "{}", ran.stderr);
    let checks = json_lines(&ran.stdout)[0]["checks"].as_array().unwrap().clone();
    let said: Vec<_> = checks.iter().map(|check| (check["label"].as_str().unwrap(), check["passed"] == true)).collect();
    assert_eq!(said, [("2020-01-01", true), ("2020-01-02", true), ("2020-01-03", true), ("2020-01-04", false)]);
    // Unchanged parts are not measured again, except those still to be published.
    let again = project.run(&["run", "j", "--output", "json"]);
    assert_eq!(again.code, Some(3), "{}", again.stderr);
    let checks = json_lines(&again.stdout)[0]["checks"].as_array().unwrap().clone();
    let said: Vec<_> = checks.iter().map(|check| check["label"].as_str().unwrap()).collect();
    assert_eq!(said, ["2020-01-04"]);
    write_day(&project, 4, 0.1);
    project.run_job("j");
    assert_eq!(project.run_job("j")["checks"], json!([]));
}

#[test]
fn check_errors_have_a_position() {
    for (text, said) in [
        ("on = \"X\"\nnot_null = [\"a\"]", "neither a table nor an export `X`"),
        ("on = \"T\"", "the check has no rule"),
        ("on = \"T\"\nrows = {}", "neither `min` nor `max`"),
        ("on = \"T\"\nrows = { min = 1.5 }", "a number of rows is a whole number"),
        ("on = \"T\"\nrange = { kwh = { least = 1 } }", "unknown key `least`"),
        ("on = \"T\"\nseverity = \"fatal\"\nrows = { min = 1 }", "`severity` cannot be `fatal`"),
    ] {
        let project = project(&format!("\n[checks.c]\n{text}\n"));
        let found = project.fails(2, &["check", "j"]);
        assert!(found.contains(said), "{found}");
    }
    let project = project("\n[checks.c]\non = \"T\"\nnot_null = [\"gone\"]\n");
    let found = project.fails(2, &["check", "j"]);
    assert!(found.contains("check c") && found.contains("gone"), "{found}");
}

#[test]
fn check_refuses_what_a_run_refuses_of_the_store() {
    let project = project("");
    project.run_job("j");
    let text = fs::read_to_string(project.path("jobs/j/job.toml")).unwrap();
    let refused = |job: &str| {
        let by_run = project.fails(2, &["run", job]);
        let by_check = project.fails(2, &["check", job]);
        let error = by_check.lines().next().unwrap_or_default();
        assert!(by_run.contains(error), "{by_run}\n{by_check}");
        by_check
    };

    let (before, after) = text.split_once("row_key = \"").unwrap();
    project.write("jobs/j/job.toml", format!("{before}row_key = \"x{after}"));
    let told = refused("j").replace("\n  │ ", " ");
    assert!(told.contains("the layout of T changed: row_key is \"x") && told.contains("undo that"), "{told}");

    project.write("jobs/k/job.toml", text.replace("name = \"j\"", "name = \"k\""));
    fs::remove_dir_all(project.path("jobs/j")).unwrap();
    assert!(refused("k").contains("table T belongs to job j"));
}

#[test]
fn missing_list_requires_adopt() {
    let project = project("");
    project.run_job("j");
    let before = project.files("data/exports");
    fs::remove_file(project.path("data/exports/E.json")).unwrap();
    let said = project.fails(2, &["run", "j"]);
    assert!(said.contains("--adopt") && said.contains("exports/E.json"), "{said}");
    project.fails(2, &["plan", "j"]);
    for table in ["exports.E", "exports.E_20200101"] {
        let said = project.fails(1, &["sql", "-c", &format!("select * from {table}")]);
        assert!(said.contains("exports/E.json") && said.contains("tidetable run j --adopt"), "{said}");
    }
    assert!(project.fails(2, &["sql", "-c", "select * from exports.F"]).contains("not found"));
    let found = project.run(&["doctor", "--output", "json"]);
    assert_eq!(found.code, Some(1), "{}", found.stdout);
    assert!(found.stdout.contains("exports/E.json") && found.stdout.contains("run j --adopt"), "{}", found.stdout);
    let record = project.json(&["run", "j", "--adopt"]).remove(0);
    project.ok(&["doctor"]);
    assert_eq!(record["exports"], json!([]));
    let after = project.files("data/exports");
    let parts = |files: &std::collections::BTreeMap<String, Vec<u8>>| {
        files
            .iter()
            .filter(|(name, _)| name.ends_with(".parquet"))
            .map(|(name, bytes)| (name.clone(), bytes.clone()))
            .collect::<Vec<_>>()
    };
    assert_eq!(parts(&before), parts(&after));
    assert_eq!(project.sql("select count(*) as n from exports.E")[0]["n"], 12);

    fs::remove_file(project.path("data/exports/E.json")).unwrap();
    fs::write(project.path("data/exports/E_20200101/part-0.parquet"), "mine").unwrap();
    project.fails(1, &["run", "j", "--adopt"]);
    assert_eq!(fs::read(project.path("data/exports/E_20200101/part-0.parquet")).unwrap(), b"mine");
}

#[test]
fn a_lost_list_of_csv_is_found_and_in_no_backup() {
    let project = project("");
    project.write("jobs/j/job.toml", JOB.replace("[exports.E]\n", "[exports.E]\nformat = \"csv\"\n"));
    project.run_job("j");
    // The newest record says that its parts are unchanged.
    project.ok(&["run", "j", "--force"]);
    project.ok(&["doctor"]);
    project.ok(&["backup", "bk"]);
    fs::remove_file(project.path("data/exports/E.json")).unwrap();
    let said = project.fails(1, &["sql", "-c", "select * from exports.E"]);
    assert!(said.contains("move the folders of E") && !said.contains("--adopt"), "{said}");
    let found = project.run(&["doctor", "--output", "json"]);
    assert_eq!(found.code, Some(1), "{}", found.stdout);
    assert!(
        found.stdout.contains("exports/E.json") && found.stdout.contains("move the folders of E"),
        "{}",
        found.stdout
    );
    let said = project.fails(1, &["backup", "bk"]);
    assert!(said.contains("lost: exports/E.json") && said.contains("are in no backup"), "{said}");

    // As it says.
    for day in 1..=4 {
        let folder = format!("E_2020010{day}");
        fs::rename(project.path("data/exports").join(&folder), project.path(&folder)).unwrap();
    }
    project.run_job("j");
    assert_eq!(project.sql("select count(*) as n from exports.E")[0]["n"], 12);
    project.ok(&["doctor"]);
    project.ok(&["backup", "bk"]);
}

#[test]
fn a_run_killed_before_its_first_part_was_listed_needs_no_decision() {
    let project = project("");
    project.run_job("j");
    let before = project.files("data/exports");
    // The list as it is before the first part.
    let path = project.path("data/exports/E.json");
    let mut list: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    list["parts"] = json!({});
    list["empty"] = json!({});
    fs::write(&path, list.to_string()).unwrap();
    project.run_job("j");
    let after = project.files("data/exports");
    assert_eq!(before.keys().collect::<Vec<_>>(), after.keys().collect::<Vec<_>>());
    assert_eq!(project.sql("select count(*) as n from exports.E")[0]["n"], 12);
}

/// A job that publishes slow days one at a time, so that a test can interrupt its run.
fn slow() -> Project {
    let slow = "select a.meter from T a cross join T b cross join T c cross join T d cross join T e cross join T f";
    let text = JOB.replace(
        "select meter, ts, kwh, $now as run_at, $day as day from T order by meter, ts",
        &format!("select count(*) as n from ({slow})"),
    );
    let project = Project::new("j", &text);
    for day in 1..=6 {
        let rows: Vec<String> = (0..40).map(|meter| format!("{meter},2020-01-{day:02}T10:00:00Z,1")).collect();
        project.write(&format!("in/2020-01-{day:02}.csv"), format!("meter,ts,kwh\n{}\n", rows.join("\n")));
    }
    project
}

#[test]
fn second_run_of_a_job_is_refused_or_skipped() {
    let project = slow();
    let mut first = spawn(&project, &["run", "j"]);
    wait_for("the first run", || project.path("data/runs").exists());
    let said = project.fails(75, &["run", "j"]);
    assert!(said.contains("is already running") && said.contains(&first.id().to_string()), "{said}");
    let skipped = project.run(&["run", "j", "--if-locked", "skip"]);
    assert_eq!((skipped.code, skipped.stderr.contains("skipped")), (Some(0), true));
    let said = project.fails(75, &["run", "j", "--if-locked", "wait=0s"]);
    assert!(!said.contains("waiting"), "{said}");
    let said = project.fails(75, &["run", "j", "--if-locked", "wait=3s"]);
    assert_eq!(said.matches("waiting for the end of run").count(), 1, "{said}");
    assert!(project.fails(2, &["run", "j", "--if-locked", "often"]).contains("wait=10m"));
    signal(first.id(), "-KILL");
    first.wait().unwrap();
    // A killed process holds no lock.
    project.write("jobs/j/job.toml", JOB);
    let ran = project.run(&["run", "j", "--output", "json"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stderr.contains("did not finish"), "{}", ran.stderr);
    let killed = &records(&project)[0];
    assert_eq!((&killed["outcome"], &killed["finished"]), (&json!("running"), &Value::Null));
    assert_eq!(json_lines(&ran.stdout)[0]["continues"], killed["run"]);
}

#[test]
fn first_signal_stops_a_run_in_order_and_the_second_at_once() {
    for (name, code) in [("-INT", 130), ("-TERM", 143)] {
        let project = slow();
        let run = spawn(&project, &["run", "j"]);
        wait_for("the table", || project.path("data/tables/T/manifest").exists());
        signal(run.id(), name);
        let done = run.wait_with_output().unwrap();
        assert_eq!(done.status.code(), Some(code), "{}", String::from_utf8_lossy(&done.stderr));
        assert!(String::from_utf8_lossy(&done.stderr).contains("interrupted"));
        let record = &records(&project)[0];
        assert_eq!(record["outcome"], "interrupted");
        assert!(record["finished"].is_i64());
        let half: Vec<String> = project.files("data").into_keys().filter(|name| name.contains(".tmp")).collect();
        assert_eq!(half, Vec::<String>::new());
        project.write("jobs/j/job.toml", JOB);
        assert_eq!(project.run_job("j")["continues"], record["run"]);
    }
}

#[test]
fn query_of_a_derived_table_stops_on_a_signal() {
    let project = slow();
    let every = "T a cross join T b cross join T c cross join T d cross join T e cross join T f";
    let table = format!(
        "[tables.SLOW]\nfrom = {{ query = {{ sql = \"select a.meter as meter, a.ts as ts, count(*) as n from {every} group by 1, 2\" }} }}\n\
         row_key = \"{{meter:03}}#{{ts:%Y%m%d}}\"\n[tables.SLOW.families.M]\ncolumns = [{{ qualifier = \"n\", value = \"{{n}}\" }}]\n"
    );
    project.write("jobs/j/job.toml", format!("{JOB}{table}"));
    let mut run = spawn(&project, &["run", "j"]);
    wait_for("the table", || project.path("data/tables/T/manifest").exists());
    signal(run.id(), "-INT");
    let status = status_at_the_end(&mut run);
    let done = run.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&done.stderr);
    assert_eq!(status.code(), Some(130), "{said}");
    // It may have ended before it could report that it is stopping.
    assert!(said.contains("interrupted"), "{said}");
    assert_eq!(records(&project)[0]["outcome"], "interrupted");
}

#[test]
fn jobs_run_in_dependency_order() {
    let project = project("");
    let reads = "name = \"a\"\n\n[exports.A]\nper = \"day\"\nname = \"A_{day:%Y%m%d}\"\nquery = { sql = \"select * from T\" }\n";
    project.write("jobs/a/job.toml", reads);
    let ran = project.run(&["run", "--all", "--output", "json"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let jobs: Vec<_> = json_lines(&ran.stdout).iter().map(|record| record["job"].clone()).collect();
    assert_eq!(jobs, ["j", "a"]);
    project.write("jobs/a/job.toml", format!("after = [\"b\"]\n{reads}"));
    assert!(project.fails(2, &["run", "--all"]).contains("not a job of the project"));
    project.write("jobs/j/job.toml", format!("after = [\"a\"]\n{JOB}"));
    project.write("jobs/a/job.toml", reads);
    assert!(project.fails(2, &["run", "--all"]).contains("in a circle: a, j"));
    project.write("jobs/j/job.toml", JOB.replace("in/", "nowhere/"));
    project.write("jobs/a/job.toml", reads.replace("select *", "select 1 as one"));
    fs::remove_dir_all(project.path("data")).unwrap();
    let ran = project.run(&["run", "--all", "--new-root"]);
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    assert!(ran.stderr.contains("a is not run: j, which it depends on, failed"), "{}", ran.stderr);
    let quiet = project.run(&["run", "--all", "--new-root", "--quiet"]);
    assert!(quiet.stderr.contains("a is not run: j, which it depends on, failed"), "{}", quiet.stderr);
}

#[test]
fn retry_measures_failed_table_checks_again() {
    let check = "\n[checks.sane]\non = \"T\"\nrange = { kwh = { max = 3.5 } }\n";
    let job = format!("{}{check}", JOB.split("[exports.E]").next().unwrap());
    let project = project("");
    project.write("jobs/j/job.toml", &job);
    let ran = project.run(&["run", "j", "--output", "json"]);
    assert_eq!(ran.code, Some(3), "{}", ran.stderr);
    let first = json_lines(&ran.stdout).remove(0);
    assert_eq!(first["exports"], json!([]));
    let again = project.run(&["retry", "last", "--output", "json"]);
    assert_eq!(again.code, Some(3), "the rows are as they were: {}", again.stderr);
    let checks = &json_lines(&again.stdout)[0]["checks"];
    let labels: Vec<&Value> = checks.as_array().unwrap().iter().map(|check| &check["label"]).collect();
    assert_eq!(labels, [&json!("2020-01-04")], "only the day that failed");
    project.write("jobs/j/job.toml", job.replace("3.5", "4.5"));
    let done = project.json(&["retry", first["run"].as_str().unwrap()]).remove(0);
    assert_eq!(done["outcome"], "ok");
    let left = plan(&project, &[]);
    assert!(left.iter().all(|(_, _, why)| why == "up to date"), "nothing is left: {left:?}");
    let idle = project.run(&["retry", done["run"].as_str().unwrap()]);
    assert!(idle.code == Some(0) && idle.stderr.contains("nothing to try again"), "{}", idle.stderr);
}

#[test]
fn signal_stops_a_compaction_in_order() {
    for (name, code) in [("-INT", 130), ("-TERM", 143)] {
        let project = project("");
        project.write("jobs/j/job.toml", JOB.split("[exports.E]").next().unwrap());
        // A file for each day and load, and days enough that the first is done long before the last.
        for load in 0..2 {
            let row = |row: u32| {
                let (month, day) = (row / 28 % 12 + 1, row % 28 + 1);
                format!("{},2021-{month:02}-{day:02}T{:02}:00:00Z,{load}\n", row % 1000, row / 336 % 24)
            };
            let rows: String = (0..100_000).map(row).collect();
            project.write(&format!("in/2021-01-0{}.csv", load + 1), format!("meter,ts,kwh\n{rows}"));
            project.run_job("j");
        }
        let sum = || project.sql("select count(*) as n, sum(kwh) as kwh, sum(meter) as meter from T");
        let (before, rows) = (project.files("data/tables"), sum());
        let names = || fs::read_dir(project.path("data/tables/T/sst")).unwrap().count();
        let files = names();
        let mut compaction = spawn(&project, &["compact", "T"]);
        wait_for("its first file", || names() > files || compaction.try_wait().unwrap().is_some());
        signal(compaction.id(), name);
        let done = compaction.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&done.stderr);
        assert_eq!(done.status.code(), Some(code), "{said}");
        assert!(said.contains("interrupted; T is intact"), "{said}");
        assert_eq!((project.files("data/tables"), names(), sum()), (before, files, rows));
        assert!(project.ok(&["verify"]).contains("T: sound"));
        project.ok(&["compact", "T"]);
        assert!(names() < files || project.ok(&["tables"]).contains('T'));
    }
}

/// What `run` decided, by `--verbose` or `RUST_LOG`, as the events of its log: their names.
fn events(project: &Project, args: &[&str], rust_log: &str) -> Vec<Value> {
    let ran = Ran::of(project.command(&[args, &["--log", "json"]].concat()).env("RUST_LOG", rust_log));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    json_lines(&ran.stderr).into_iter().filter(|line| line["target"].is_string()).collect()
}

#[test]
fn events_of_the_log_name_table_window_and_reason() {
    let project = project("");
    assert_eq!(events(&project, &["run", "j"], ""), Vec::<Value>::new(), "nothing without --verbose");
    write_day(&project, 2, 5.0);
    let told = events(&project, &["run", "j", "--verbose"], "");
    let of =
        |name: &str| told.iter().find(|event| event["message"] == name).unwrap_or_else(|| panic!("{name}: {told:?}"));
    let commit = of("commit");
    assert_eq!((&commit["table"], &commit["window"]), (&json!("T"), &json!("2020-01-02")), "{commit}");
    assert_eq!((&commit["reason"], &commit["level"]), (&json!("load"), &json!("debug")), "{commit}");
    assert_eq!(of("part_stale")["part"], "2020-01-02");
    assert_eq!(of("compaction_not_picked")["window"], "2020-01-01..2020-01-04");
    let told = events(&project, &["vacuum", "--older-than", "0s", "--yes"], "tidetable_upkeep=debug");
    assert!(told.iter().any(|event| event["message"] == "vacuum_planned" && event["table"] == "T"), "{told:?}");
}

#[test]
fn reads_tell_the_log_what_they_skipped_and_why() {
    // Enough rows for a key filter. Odd meters are absent.
    let project = Project::new("j", JOB);
    let rows: String = (0..998).step_by(2).map(|meter| format!("{meter},2020-01-01T10:00:00Z,{meter}\n")).collect();
    project.write("in/2020-01-01.csv", format!("meter,ts,kwh\n{rows}"));
    project.run_job("j");

    let skipped = |args: &[&str], name: &str| {
        let told = events(&project, args, "tidetable_store=debug");
        let event = told.iter().find(|event| event["message"] == name).unwrap_or_else(|| panic!("{name}: {told:?}"));
        assert_eq!((&event["table"], &event["window"]), (&json!("T"), &json!("2020-01-01")), "{event}");
        event["reason"].as_str().unwrap().to_owned()
    };
    let absent = ["read", "T", "--row", "003#20200101"];
    assert_eq!(skipped(&absent, "sst_skipped"), "the key filter excludes the row");
    let large = ["sql", "-c", "select * from T where kwh > 5000"];
    assert_eq!(skipped(&large, "stripes_skipped"), "statistics exclude the filter");
}

#[test]
fn the_guide_lists_every_event_of_the_log() {
    let root =
        Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().find(|above| above.join("docs/guide").is_dir()).unwrap();
    let guide = fs::read_to_string(root.join("docs/guide/operations.md")).unwrap();
    let section = guide.split("## Following a run in the log").nth(1).unwrap().split("\n## ").next().unwrap();
    let listed: BTreeSet<&str> =
        section.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next()).collect();
    let mut logged = BTreeSet::new();
    for file in sources(&root.join("crates")) {
        let text = fs::read_to_string(file).unwrap();
        for event in text.split("tracing::debug!(").skip(1) {
            // The last argument is the message; a sentence is no name.
            let arguments = event.split(");").next().unwrap();
            let name = arguments.rsplit('"').nth(1).unwrap_or_default();
            if !name.contains(' ') {
                logged.insert(name.to_owned());
            }
        }
    }
    assert_eq!(listed, logged.iter().map(String::as_str).collect());
}

/// The Rust files below `folder`, except tests.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.ends_with("tests") {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            found.push(path);
        }
    }
    found
}
