//! `tidetable run --catch-up`: what the schedule asked for since the last run, at its own logical times.

use std::process::Command;

use serde_json::Value;

use crate::harness::{Project, Ran, json_lines};

/// A job at 01:15 of each day, whose published table holds the logical time of the run that made it.
fn project(keys: &str) -> Project {
    let project = Project::new(
        "j",
        &format!(
            "name = \"j\"\nschedule = \"15 1 * * *\"\n{keys}\n[sources.s]\nfiles = [\"in/*.csv\"]\ntime = \"ts\"\n\
             columns = {{ ts = \"timestamp\", v = \"int64\" }}\n[tables.T]\nrow_key = \"{{ts:ms}}\"\n\
             [tables.T.families.F]\ncolumns = [{{ qualifier = \"v\", value = \"{{v}}\" }}]\n\
             [exports.E]\nper = \"day\"\nname = \"E_{{day:%Y%m%d}}\"\n\
             query = {{ sql = \"select ts, 100 / v as share, $now as made from T\" }}\n"
        ),
    );
    project.write("in/1.csv", "ts,v\n2020-01-01T00:00:00Z,1\n");
    project
}

fn catch_up(project: &Project, now: &str) -> Ran {
    project.run(&["run", "j", "--catch-up", "--now", now])
}

/// Logical time and outcome of each run, the oldest first.
fn runs(project: &Project) -> Vec<(String, String)> {
    let mut rows = json_lines(&project.ok(&["history", "--output", "json", "--limit", "0"]));
    rows.reverse();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    rows.iter().map(|row| (text(&row["now"]), text(&row["outcome"]))).collect()
}

fn run(now: &str, outcome: &str) -> (String, String) {
    (now.to_owned(), outcome.to_owned())
}

/// The moments that would be run.
fn dry(project: &Project, now: &str) -> Vec<(String, String)> {
    let listed = project.ok(&["run", "j", "--catch-up", "--dry-run", "--output", "json", "--now", now]);
    let rows = json_lines(&listed);
    rows.iter().map(|row| run(row["time"].as_str().unwrap(), row["why"].as_str().unwrap())).collect()
}

#[test]
fn each_missed_moment_is_run_at_its_time() {
    let project = project("catch_up = \"all\"");
    // It never ran, so it has missed nothing; and nothing is written.
    let none = catch_up(&project, "2026-03-27T01:16:00Z");
    assert_eq!(none.code, Some(0), "{}", none.stderr);
    let told = " j is not due, and has no missed run to make up for; next is 2026-03-28T01:15:00Z\n";
    assert!(none.stderr.ends_with(told), "{}", none.stderr);
    assert!(none.stdout.is_empty() && !project.path("data/runs").exists());
    // Cron is a second late.
    project.ok(&["run", "j", "--catch-up", "--now", "2026-03-27T01:15:01Z"]);
    assert!(dry(&project, "2026-03-27T01:15:59Z").is_empty());
    assert_eq!(
        dry(&project, "2026-03-30T01:15:00Z"),
        [
            run("2026-03-28T01:15:00Z", "missed"),
            run("2026-03-29T01:15:00Z", "missed"),
            run("2026-03-30T01:15:00Z", "due")
        ]
    );
    assert_eq!(runs(&project).len(), 1);
    project.write("in/2.csv", "ts,v\n2020-01-02T00:00:00Z,2\n");
    let made_up = catch_up(&project, "2026-03-30T01:14:59Z");
    assert_eq!(made_up.code, Some(0), "{}", made_up.stderr);
    assert!(made_up.stderr.contains("j as of 2026-03-29T01:15:00Z (2 of 2)\n"), "{}", made_up.stderr);
    let expected = ["27", "28", "29"].map(|day| run(&format!("2026-03-{day}T01:15:00Z"), "ok"));
    assert_eq!(runs(&project), expected);
    // What was new was taken in by the first of them, at its logical time.
    let made = project.sql("select made from exports.E_20200102");
    assert_eq!(made[0]["made"], "2026-03-28T01:15:00Z");
    catch_up(&project, "2026-03-30T01:14:59Z");
    assert_eq!(runs(&project).len(), 3);
    // A window of two days.
    let window = "catch_up = \"all\"\ncatch_up_window = \"2d\"";
    project.write("jobs/j/job.toml", project.read("jobs/j/job.toml").replace("catch_up = \"all\"", window));
    let listed = dry(&project, "2026-04-09T12:00:00Z");
    assert_eq!(listed, [run("2026-04-08T01:15:00Z", "missed"), run("2026-04-09T01:15:00Z", "missed")]);
}

#[test]
fn one_run_makes_up_for_all_or_none_does() {
    for (keys, late) in [("", 1), ("catch_up = \"latest\"", 1), ("catch_up = \"none\"", 0)] {
        let project = project(keys);
        catch_up(&project, "2026-03-27T01:15:01Z");
        catch_up(&project, "2026-03-30T12:00:00Z");
        let mut expected = vec![run("2026-03-27T01:15:00Z", "ok")];
        expected.extend((0..late).map(|_| run("2026-03-30T01:15:00Z", "ok")));
        assert_eq!(runs(&project), expected, "{keys}");
        catch_up(&project, "2026-04-02T01:15:30Z");
        expected.push(run("2026-04-02T01:15:00Z", "ok"));
        assert_eq!(runs(&project), expected, "{keys}");
        catch_up(&project, "2026-04-02T01:15:45Z");
        assert_eq!(runs(&project), expected, "{keys}");
    }
}

#[test]
fn a_run_by_hand_counts_if_nobody_limited_it() {
    let project = project("catch_up = \"all\"");
    project.ok(&["run", "j", "--now", "2026-03-27T12:00:00Z"]);
    for limited in [&["--day", "2020-01-01"][..], &["--to", "2020-01-01"], &["--only", "missing"]] {
        project.ok(&[&["run", "j", "--now", "2026-03-29T12:00:00Z"], limited].concat());
    }
    // Nor does what has a time to come.
    project.ok(&["run", "j", "--now", "2026-12-01T00:00:00Z"]);
    let both = [run("2026-03-28T01:15:00Z", "missed"), run("2026-03-29T01:15:00Z", "missed")];
    assert_eq!(dry(&project, "2026-03-29T13:00:00Z"), both);
    let check = project.ok(&["schedule", "--check", "--now", "2026-03-29T13:00:00Z"]);
    assert_eq!(check.matches("missed, to be made up").count(), 2, "{check}");
    project.ok(&["run", "j", "--now", "2026-03-29T12:59:00Z"]);
    assert!(dry(&project, "2026-03-29T13:00:00Z").is_empty());
    // A person was a second earlier than cron.
    project.ok(&["run", "j", "--now", "2026-03-30T01:15:00Z"]);
    assert!(dry(&project, "2026-03-30T01:15:01Z").is_empty());
    let check = project.ok(&["schedule", "--check", "--now", "2026-03-31T01:15:01Z"]);
    assert!(check.contains("due now") && !check.contains("missed"), "{check}");
}

#[test]
fn a_moment_that_failed_stops_the_later_ones_and_keeps_its_time() {
    let project = project("catch_up = \"all\"");
    let good = project.read("in/1.csv");
    project.write("in/1.csv", "ts,v\nnever,1\n");
    // The first run of all fails, and is made up for too.
    assert_eq!(catch_up(&project, "2026-03-27T01:15:01Z").code, Some(1));
    assert_eq!(dry(&project, "2026-03-27T08:00:00Z"), [run("2026-03-27T01:15:00Z", "missed")]);
    project.write("in/1.csv", &good);
    assert_eq!(catch_up(&project, "2026-03-27T08:00:00Z").code, Some(0));
    project.write("in/2.csv", "ts,v\nnever,1\n");
    let failed = catch_up(&project, "2026-03-30T12:00:00Z");
    assert_eq!(failed.code, Some(1), "{}", failed.stderr);
    let left =
        "not run after that: 2 scheduled times, 2026-03-29T01:15:00Z to 2026-03-30T01:15:00Z; run --catch-up again";
    assert!(failed.stderr.contains(left), "{}", failed.stderr);
    let mut expected = vec![
        run("2026-03-27T01:15:00Z", "failed"),
        run("2026-03-27T01:15:00Z", "ok"),
        run("2026-03-28T01:15:00Z", "failed"),
    ];
    assert_eq!(runs(&project), expected);
    project.write("in/2.csv", "ts,v\n2020-01-02T00:00:00Z,2\n");
    // Killed in the middle: its record says that it goes on, and nobody holds the lock.
    let (name, text) = newest(&project);
    project.write(&name, text.replace("\"failed\"", "\"running\""));
    assert_eq!(catch_up(&project, "2026-03-30T12:00:00Z").code, Some(0));
    expected[2].1 = "killed".to_owned();
    expected.extend(["28", "29", "30"].map(|day| run(&format!("2026-03-{day}T01:15:00Z"), "ok")));
    assert_eq!(runs(&project), expected);
    assert_eq!(project.sql("select made from exports.E_20200102")[0]["made"], "2026-03-28T01:15:00Z");
}

/// The newest record.
fn newest(project: &Project) -> (String, String) {
    let names = std::fs::read_dir(project.path("data/runs")).unwrap();
    let name = names.map(|entry| entry.unwrap().file_name().into_string().unwrap()).max().unwrap();
    let path = format!("data/runs/{name}");
    let text = project.read(&path);
    (path, text)
}

#[test]
fn days_that_could_not_be_published_do_not_hold_up_later_moments() {
    let project = project("catch_up = \"all\"");
    catch_up(&project, "2026-03-27T01:15:01Z");
    project.write("in/2.csv", "ts,v\n2020-01-02T00:00:00Z,0\n");
    let told = catch_up(&project, "2026-03-29T12:00:00Z");
    assert_eq!(told.code, Some(4), "{}", told.stderr);
    let outcomes: Vec<String> = runs(&project).into_iter().map(|(_, outcome)| outcome).collect();
    assert_eq!(outcomes, ["ok", "partial", "partial"]);
    assert!(dry(&project, "2026-03-29T12:00:00Z").is_empty());
    let told = project.run(&["run", "j", "--catch-up", "--fail-fast", "--now", "2026-03-31T12:00:00Z"]);
    assert_eq!(told.code, Some(4), "{}", told.stderr);
    assert!(told.stderr.contains("not run after that: 2026-03-31T01:15:00Z"), "{}", told.stderr);
}

#[test]
fn what_cannot_be_caught_up() {
    let project = project("");
    project.write(
        "jobs/k/job.toml",
        project.read("jobs/j/job.toml").replace("\"j\"", "\"k\"").replace("schedule", "description"),
    );
    assert!(project.fails(2, &["run", "k", "--catch-up"]).contains("job k has no `schedule`"));
    for other in [&["--all"][..], &["j", "--day", "2020-01-01"], &["j", "--force"], &["j", "--rebuild"]] {
        project.fails(2, &[&["run", "--catch-up"], other].concat());
    }
    // A reader that goes away ends nothing.
    project.ok(&["run", "j", "--now", "2026-03-27T12:00:00Z"]);
    project.write(
        "jobs/j/job.toml",
        project.read("jobs/j/job.toml").replace("schedule =", "catch_up = \"all\"\nschedule ="),
    );
    let binary = project.command(&[]).get_program().to_owned();
    let piped = "\"$0\" run j --catch-up --now 2026-03-29T12:00:00Z 2>errors | true; wait";
    let done = Command::new("sh").args(["-c", piped]).arg(binary).current_dir(project.path("")).status().unwrap();
    assert!(done.success());
    assert_eq!(runs(&project).len(), 3, "{}", project.read("errors"));
}
