//! Roots that are gone, as when a disk is not mounted, and roots that were exchanged: a run does not begin anew in silence.

use std::fs;

use crate::harness::Project;
use crate::harness::bucket::InBucket;

const JOB: &str = readings_job!(
    "in/*.csv",
    "",
    "[exports.E]\nper = \"day\"\nname = \"E_{day:%Y%m%d}\"\n\
     query = { sql = \"select meter, ts, kwh from T order by meter, ts\" }\n"
);

fn project() -> Project {
    let project = Project::new("j", JOB);
    project.write("in/a.csv", "meter,ts,kwh\n1,2020-01-01T10:00:00Z,1.5\n");
    project
}

fn is_empty(project: &Project, folder: &str) -> bool {
    fs::read_dir(project.path(folder)).map_or(true, |mut entries| entries.next().is_none())
}

#[test]
fn a_lost_root_is_refused_until_a_new_one_is_meant() {
    let project = project();
    let hook = "\n[hooks]\nerror = [\"sh\", \"-c\", \"echo $TIDETABLE_ERROR >>told.txt\"]\n";
    project.write("jobs/j/job.toml", format!("{JOB}{hook}"));
    let run = project.run_job("j")["run"].as_str().unwrap().to_owned();
    assert_eq!(project.read(".tidetable/.gitignore"), "*\n");

    for is_mount_point in [false, true] {
        fs::remove_dir_all(project.path("data")).unwrap();
        if is_mount_point {
            fs::create_dir(project.path("data")).unwrap();
        }
        for args in [
            &["run", "j"][..],
            &["run", "--all"],
            &["run", "j", "--dry-run"],
            &["run", "j", "--rebuild"],
            &["run", "j", "--root", "data"],
            &["plan", "j"],
            &["status"],
            &["status", "--root", "data"],
            &["tables"],
            &["sql", "-c", "select 1 from T"],
        ] {
            let told = project.fails(2, args).replace("\n  ", " ");
            assert!(told.contains("/data is gone") && told.contains(&run), "{args:?}: {told}");
            assert!(told.contains("--new-root") && told.contains(" restore FOLDER`"), "{args:?}: {told}");
            assert!(is_empty(&project, "data"), "{args:?} writes nothing");
        }
        assert!(project.ok(&["plan", "j", "--new-root"]).contains("in/a.csv"));
        assert!(is_empty(&project, "data"), "a plan writes nothing");
        project.ok(&["run", "j", "--new-root"]);
        project.ok(&["run", "j"]);
        assert_eq!(project.sql("select count(*) as n from T")[0]["n"], 1);
        let told = project.read("told.txt");
        assert!(told.contains("is gone") && told.contains(&run), "{told}");
        // Who reads the message of a hook is elsewhere.
        let told = project.read("told.txt");
        assert!(told.contains("tidetable --root data restore FOLDER"), "{told}");
        if !is_mount_point {
            // The mark names the newest run from now on.
            let newest = project.run_job("j")["run"].as_str().unwrap().to_owned();
            assert!(project.read(&mark(&project)).contains(&newest));
            assert_ne!(newest, run);
            fs::write(project.path(&mark(&project)), project.read(&mark(&project)).replace(&newest, &run)).unwrap();
        }
    }
}

/// The file of the only mark.
fn mark(project: &Project) -> String {
    let roots: Vec<_> = fs::read_dir(project.path(".tidetable/roots")).unwrap().collect();
    assert_eq!(roots.len(), 1);
    format!(".tidetable/roots/{}/j.json", roots[0].as_ref().unwrap().file_name().to_str().unwrap())
}

#[test]
fn a_job_that_never_ran_does_not_begin_a_lost_root_anew() {
    let project = project();
    project.run_job("j");
    project.write(
        "jobs/k/job.toml",
        JOB.replace("\"j\"", "\"k\"")
            .replace("tables.T", "tables.U")
            .replace("exports.E", "exports.F")
            .replace("from T", "from U")
            .replace("E_{", "F_{"),
    );
    fs::remove_dir_all(project.path("data")).unwrap();
    assert!(project.fails(2, &["run", "k"]).contains("is gone"));
    project.ok(&["run", "k", "--new-root"]);
    // Whoever begins a new root means all jobs.
    project.ok(&["run", "j"]);
}

#[test]
fn a_root_with_another_store_is_refused() {
    let project = project();
    project.run_job("j");
    project.ok(&["run", "j", "--root", "other"]);
    fs::rename(project.path("data"), project.path("before")).unwrap();
    fs::rename(project.path("other"), project.path("data")).unwrap();
    for args in [&["run", "j"][..], &["plan", "j"]] {
        let told = project.fails(2, args).replace("\n  ", " ");
        assert!(told.contains("another store than before") && told.contains("table T"), "{args:?}: {told}");
    }
    project.ok(&["run", "j", "--new-root"]);
    project.ok(&["run", "j"]);
}

#[test]
fn a_lost_table_is_not_begun_anew() {
    let project = project();
    project.run_job("j");
    project.ok(&["backup", "vault"]);
    fs::remove_dir_all(project.path("data/tables/T")).unwrap();
    fs::remove_dir_all(project.path("data/exports")).unwrap();
    // A backup of the rest would in time take the place of the one that holds the table.
    for args in [&["run", "j"][..], &["backup", "vault", "--keep", "1"]] {
        let told = project.fails(2, args).replace("\n  ", " ");
        assert!(told.contains("table T, which does not exist any more") && told.contains("--rebuild"), "{told}");
    }
    for args in [&["verify", "--quiet"][..], &["verify", "--all"]] {
        let ran = project.run(args);
        assert_eq!(ran.code, Some(1), "{args:?}");
        assert!(ran.stdout.contains("T: lost; ") && ran.stdout.contains("table T, which does not exist"), "{args:?}");
    }
    let ran = project.run(&["verify", "--output", "json"]);
    let found: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!((&found["table"], &found["sound"]), (&"T".into(), &false.into()), "{found}");
    let status = project.succeeds(&["status"]).stderr;
    assert!(status.replace("\n  ", " ").contains("table T, which does not exist"), "{status}");
    let ran = project.run(&["doctor"]);
    let found = ran.stdout;
    assert_eq!(ran.code, Some(1), "{found}");
    assert!(found.contains("tables/T") && found.contains("the table is gone"), "{found}");
    assert_eq!(project.json(&["backup", "vault", "--list"])[0]["tables"], 1);

    project.ok(&["run", "j", "--rebuild"]);
    project.ok(&["doctor"]);
    project.ok(&["backup", "vault"]);
    project.ok(&["run", "j"]);
}

#[test]
fn restored_moved_and_unmarked_roots_are_no_loss() {
    let project = project();
    project.run_job("j");
    project.ok(&["backup", "vault"]);
    project.write("in/b.csv", "meter,ts,kwh\n1,2020-01-02T10:00:00Z,1.5\n");
    project.run_job("j");
    fs::remove_dir_all(project.path("data")).unwrap();
    project.ok(&["restore", "vault"]);
    // What was restored is missed, too.
    fs::remove_dir_all(project.path("data")).unwrap();
    assert!(project.fails(2, &["run", "j"]).contains("is gone"));
    project.ok(&["restore", "vault"]);
    project.run_job("j");

    // A project that is moved with its root keeps its mark.
    let moved = Project::empty();
    for name in ["data", "jobs", "in", ".tidetable", "tidetable.toml"] {
        let target = moved.path(name);
        let _ = fs::remove_file(&target);
        fs::rename(project.path(name), target).unwrap();
    }
    moved.run_job("j");
    fs::remove_dir_all(moved.path("data")).unwrap();
    assert!(moved.fails(2, &["run", "j"]).contains("is gone"));

    // Where nothing is remembered, a missing root is a new one.
    fs::remove_dir_all(moved.path(".tidetable")).unwrap();
    moved.run_job("j");
}

#[test]
fn a_project_that_cannot_be_written_runs_with_a_note() {
    let project = project();
    project.write(".tidetable", "a file in the way");
    let ran = project.succeeds(&["run", "j"]);
    assert!(ran.stderr.contains("will not be noticed"), "{}", ran.stderr);
}

#[test]
fn a_lost_root_in_a_bucket_is_refused() {
    let place = InBucket::new(project());
    place.ok(&["run", "j"]);
    place.ok(&["backup", "vault"]);
    let toml = place.project.read("tidetable.toml");
    place.root("elsewhere");
    place.ok(&["run", "j"]);
    // The names of the two prefixes are exchanged with those of others: one is empty, one holds another store.
    place.project.write("tidetable.toml", toml);
    let marks = place.project.path(".tidetable/roots");
    let folders: Vec<_> = fs::read_dir(&marks).unwrap().map(|entry| entry.unwrap().path()).collect();
    let of = |prefix: &str| {
        let holds = |folder: &&std::path::PathBuf| {
            fs::read_to_string(folder.join("j.json")).unwrap().contains(&format!("/{prefix}\""))
        };
        folders.iter().find(holds).unwrap().join("j.json")
    };
    fs::copy(of("elsewhere"), of("prod")).unwrap();
    let told = place.ends(2, &["run", "j"]).stderr.replace("\n  ", " ");
    assert!(told.contains("another store than before"), "{told}");

    let empty = || {
        let keys = place.server.keys("tidetable").into_iter().filter(|key| key.contains("prod/"));
        keys.for_each(|key| place.remove(&key));
    };
    empty();
    for args in [&["run", "j"][..], &["plan", "j"], &["status"]] {
        let told = place.ends(2, args).stderr.replace("\n  ", " ");
        assert!(told.contains("is gone"), "{args:?}: {told}");
    }
    // The lock of the refused run is no store.
    place.ok(&["restore", "vault"]);
    place.ok(&["run", "j"]);

    empty();
    place.ok(&["run", "j", "--new-root"]);
    place.ok(&["run", "j"]);
}
