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

#[test]
fn a_table_that_no_job_declares_is_dropped() {
    let project = project();
    let declared = project.fails(2, &["drop", "T", "--yes"]);
    assert!(declared.contains("jobs/j/job.toml declares T, and its next run would make it again"), "{declared}");

    let renamed = JOB.replace("[tables.T", "[tables.N").replace("from T", "from N");
    project.write("jobs/j/job.toml", renamed);
    project.ok(&["run", "j"]);
    let checked = project.ok(&["check", "j"]);
    assert!(checked.contains("tidetable drop T"), "{checked}");

    let would = project.json(&["drop", "T", "--dry-run"]).remove(0);
    assert_eq!((&would["what"], &would["job"], &would["removed"]), (&"table".into(), &"j".into(), &false.into()));
    assert!(project.ok(&["tables"]).contains('T'));
    let told = project.ok(&["drop", "T", "--yes"]);
    assert!(told.starts_with("table T: ") && told.ends_with(" removed\n"), "{told}");
    assert!(!project.path("data/tables/T").exists());

    // The rest of the store is sound, and nobody misses the table.
    assert!(project.ok(&["doctor"]).contains("sound"));
    assert_eq!(project.sql("select count(*) as n from N")[0]["n"], 2);
    assert!(project.fails(2, &["drop", "T", "--yes"]).contains("there is no table or export T"));
    // The name is free: a run makes the table anew.
    project.write("jobs/j/job.toml", JOB);
    project.ok(&["run", "j"]);
    assert_eq!(project.sql("select count(*) as n from T")[0]["n"], 2);
}

#[test]
fn an_export_that_no_job_declares_is_dropped() {
    let project = project();
    project.write("jobs/j/job.toml", JOB.replace("[exports.E]", "[exports.F]"));
    assert!(project.fails(2, &["run", "j"]).contains("`tidetable drop E`"));
    let told = project.ok(&["drop", "E", "--yes"]);
    assert!(told.starts_with("export E: 3 files of "), "{told}");
    project.ok(&["run", "j"]);
    assert_eq!(project.sql("select count(*) as n from exports.F")[0]["n"], 2);
    assert!(project.ok(&["doctor"]).contains("sound"));
}

#[test]
fn the_logs_and_replaced_files_of_an_export_are_dropped_with_it() {
    for log in ["delta", "iceberg"] {
        let name = format!("name = \"E/dt={{day:%Y-%m-%d}}\"\n{log} = true\n");
        let job = JOB.replace("name = \"E_{day:%Y%m%d}\"\n", &name);
        let project = Project::new("j", &job);
        project.write("in/a.csv", "meter,ts,kwh\n1,2020-01-01T00:00:00Z,1.5\n1,2020-01-02T00:00:00Z,2.5\n");
        project.ok(&["run", "j"]);
        project.write("in/a.csv", "meter,ts,kwh\n1,2020-01-01T00:00:00Z,1.5\n");
        project.ok(&["run", "j"]);

        let exports = job.find("[exports.E]").unwrap();
        project.write("jobs/j/job.toml", &job[..exports]);
        project.ok(&["drop", "E", "--yes"]);
        assert!(!project.path("data/exports/E").exists() && !project.path("data/exports/E.json").exists(), "{log}");
        assert!(project.ok(&["doctor"]).contains("sound"), "{log}");
    }
}

#[test]
fn a_removal_that_was_killed_is_done_again() {
    let project = project();
    project.write(
        "jobs/j/job.toml",
        JOB.replace("[tables.T", "[tables.N").replace("from T", "from N").replace(".E]", ".F]"),
    );
    // As far as a kill may leave them: manifests without the oldest, SSTs without manifests, an export without a file.
    std::fs::remove_dir_all(project.path("data/tables/T/manifest")).unwrap();
    std::fs::remove_file(project.path("data/exports/E_20200101/part-0.parquet")).unwrap();
    for name in ["T", "E"] {
        project.ok(&["drop", name, "--yes"]);
    }
    assert!(!project.path("data/tables/T").exists() && !project.path("data/exports/E_20200102").exists());
    project.ok(&["run", "j"]);
    assert!(project.ok(&["doctor"]).contains("sound"));
}

#[test]
fn what_others_list_or_put_there_stays() {
    let exports = JOB.find("[exports.E]").unwrap();
    let export = |name: &str, more: &str| {
        format!("[exports.{name}]\nper = \"day\"\n{more}query = {{ sql = \"select meter, ts, kwh from T\" }}\n")
    };
    let project = Project::new(
        "j",
        &(JOB[..exports].to_owned() + &export("A", "delta = true\nname = \"E/k=a/dt={day:%Y-%m-%d}\"\n")),
    );
    project.write("in/a.csv", "meter,ts,kwh\n1,2020-01-01T00:00:00Z,1.5\n1,2020-01-02T00:00:00Z,2.5\n");
    project.ok(&["run", "j"]);
    project.write("jobs/j/job.toml", JOB[..exports].to_owned() + &export("B", "name = \"E/k=b/dt={day:%Y-%m-%d}\"\n"));
    project.ok(&["run", "j"]);
    // A note, and a link out of the store.
    project.write("data/exports/E/notes/README", "of a person");
    project.write("elsewhere/kept", "of another");
    std::os::unix::fs::symlink(project.path("elsewhere"), project.path("data/exports/E/archive")).unwrap();

    project.ok(&["drop", "A", "--yes"]);
    assert_eq!(project.sql("select count(*) as n from exports.B")[0]["n"], 2);
    for kept in ["data/exports/E/notes/README", "elsewhere/kept", "data/exports/E/archive"] {
        assert!(project.path(kept).exists(), "{kept}");
    }
    assert!(!project.path("data/exports/E/k=a").exists() && !project.path("data/exports/E/_delta_log").exists());
    assert!(project.ok(&["doctor"]).contains("sound"));
}

#[test]
fn a_table_that_something_is_made_from_is_not_dropped() {
    let project = project();
    project.write("jobs/j/job.toml", JOB.replace("[tables.T", "[tables.N"));
    let refused = project.fails(2, &["drop", "T", "--yes"]);
    assert!(refused.contains("export E of job j is made from T"), "{refused}");
    assert!(project.path("data/tables/T/manifest").exists());
}

#[test]
fn a_table_is_dropped_for_all_projects_of_its_store() {
    let project = project();
    let data = project.path("data").display().to_string();
    let other = ["-C", "other", "--root", &data];
    project.write("other/tidetable.toml", "root = \"data\"\n");
    project.write("other/jobs/j/job.toml", JOB.replace("in/*.csv", "../in/*.csv"));
    project.run(&[&other[..], &["run", "j"]].concat());

    project.write("jobs/j/job.toml", JOB.replace("[tables.T", "[tables.N").replace("from T", "from N"));
    project.ok(&["run", "j"]);
    project.ok(&["drop", "T", "--yes"]);
    let sound = project.ok(&[&other[..], &["doctor"]].concat());
    assert!(sound.contains("sound"), "{sound}");

    // Without a project nobody knows what is declared.
    let outside = tempfile::tempdir().unwrap();
    let mut command = project.command(&["-C", outside.path().to_str().unwrap(), "--root", &data, "drop", "N", "--yes"]);
    let ran = crate::harness::Ran::of(&mut command);
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);
    assert!(ran.stderr.contains("only its job files say"), "{}", ran.stderr);
}
