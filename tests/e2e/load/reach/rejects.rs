//! Runs that end because too many rows are rejected, and the floor below which they do not.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

use super::{count, job, rows};
use crate::harness::Project;

#[test]
fn the_first_rejects_are_shown_wherever_the_failure_is() {
    let hook = "[hooks]\nfailure = [\"./hook.sh\"]\n";
    let project = Project::new("j", &format!("{}{hook}", job("\"in/*.csv\"", "")));
    project.write("hook.sh", "#!/bin/sh\necho \"$TIDETABLE_ERROR\" > told\n");
    fs::set_permissions(project.path("hook.sh"), Permissions::from_mode(0o755)).unwrap();
    project.write("in/1.csv", rows(0, 100));
    project.write("in/2.csv", rows(100, 100).replace(".5", " kW"));
    let wanted = "First: in/2.csv:2 v: \"100 kW\" is no float64; in/2.csv:3 v: \"101 kW\" is no float64; in/2.csv:4 v:";
    let error = project.fails(1, &["run", "j"]);
    assert!(error.contains(wanted) && error.contains("`tidetable rejects j`"), "{error}");
    let first = "in/2.csv:2 v:";
    assert!(project.ok(&["status", "j"]).contains(first));
    assert!(project.ok(&["history", "--output", "json"]).contains(first));
    assert!(project.read("told").contains(first));
}

#[test]
fn single_bad_rows_do_not_fail_a_load_with_a_floor() {
    let bad = |count: usize| rows(0, 384).replacen(".5\n", " kW\n", count);
    let run = |floor: &str, text: &str| {
        let project = Project::new("j", &job("\"in/*.csv\"", floor));
        project.write("in/1.csv", text);
        let code = project.run(&["run", "j"]).code;
        (code, code.filter(|code| *code == 0).map(|_| count(&project)))
    };
    assert_eq!(run("", &bad(1)), (Some(1), None));
    assert_eq!(run("rejected_floor = 10", &bad(1)), (Some(0), Some(383)));
    assert_eq!(run("rejected_floor = 10", &bad(10)), (Some(0), Some(374)));
    assert_eq!(run("rejected_floor = 10", &bad(11)), (Some(1), None));
    // Most rows of an input: it is the input that is wrong.
    let small = rows(0, 8).replacen(".5\n", " kW\n", 5);
    assert_eq!(run("rejected_floor = 10", &small), (Some(1), None));

    let project = Project::empty();
    project.write("a.csv", rows(0, 384));
    project.ok(&["new", "a", "--from", "a.csv"]);
    assert!(project.read("jobs/a/job.toml").contains("rejected_floor = 10"));
}
