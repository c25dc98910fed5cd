//! Tables and exports that a job declared before, and declares no more.

use crate::harness::Project;

const JOB: &str = readings_job!(
    "in/*.csv",
    "",
    "[exports.E]\nper = \"day\"\nname = \"E_{day:%Y%m%d}\"\nquery = { sql = \"select meter, ts, kwh from T\" }\n"
);

fn project() -> Project {
    let project = Project::new("j", JOB);
    project.write("in/a.csv", "meter,ts,kwh\n1,2020-01-01T00:00:00Z,1.5\n1,2020-01-02T00:00:00Z,2.5\n");
    project.ok(&["run", "j"]);
    project
}

#[test]
fn an_export_cannot_take_the_directories_of_one_with_another_name() {
    let project = project();
    project.write("jobs/j/job.toml", JOB.replace("[exports.E]", "[exports.F]"));
    for args in [&["run", "j"][..], &["plan", "j"]] {
        let told = project.fails(2, args);
        assert!(told.contains("E_20200101 was published by the export E, which the job no longer declares"), "{told}");
    }
    assert!(project.ok(&["doctor"]).contains("sound"));
    assert_eq!(project.sql("select count(*) as n from exports.E")[0]["n"], 2);
    // With directories of its own it is published beside what stays of the other.
    project.write("jobs/j/job.toml", JOB.replace("[exports.E]", "[exports.F]").replace("\"E_{day", "\"F_{day"));
    project.ok(&["run", "j"]);
    assert!(project.ok(&["doctor"]).contains("sound"));
    project.ok(&["backup", project.path("vault").to_str().unwrap()]);
}

#[test]
fn a_table_that_the_job_no_longer_declares_is_told() {
    let project = project();
    project.write("jobs/j/job.toml", JOB.replace("[tables.T", "[tables.N"));
    project.write("in/b.csv", "meter,ts,kwh\n1,2020-01-03T00:00:00Z,1.5\n");
    let told = "made by this job, which no longer declares it: no run adds to it";
    let checked = project.ok(&["check", "j"]);
    assert!(checked.lines().any(|line| line.contains("T") && line.contains(told)), "{checked}");
    let ran = project.succeeds(&["run", "j"]);
    assert!(ran.stderr.contains("warning: E reads T, which job j made and no longer declares"), "{}", ran.stderr);
    // With its old name nothing is told.
    project.write("jobs/j/job.toml", JOB);
    assert!(!project.messages(&["run", "j"]).contains("no longer declares it"), "T is declared");
}

#[test]
fn readings_older_than_their_retention_are_told() {
    let job = JOB.replacen("columns = [{", "gc = \"maxage=5d\"\ncolumns = [{", 1);
    let project = Project::new("j", &job);
    project.write("in/a.csv", "meter,ts,kwh\n1,2020-01-20T00:00:00Z,1.5\n");
    let now = ["--now", "2020-01-21T00:00:00Z"];
    let young = project.succeeds(&[&["run", "j"][..], &now].concat());
    assert!(!young.stderr.contains("older than"), "{}", young.stderr);
    project.write("in/b.csv", "meter,ts,kwh\n1,2020-01-02T00:00:00Z,7.5\n");
    let old = project.succeeds(&[&["run", "j"][..], &now].concat());
    let wanted = "T: readings of in/b.csv of 2020-01-02 are older than family";
    assert!(old.stderr.contains(wanted) && old.stderr.contains("maxage=5d"), "{}", old.stderr);
}
