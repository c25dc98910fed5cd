//! Parts of several files: published, queried, read by other engines, replaced and restored.

use serde_json::json;

use crate::harness::Project;
use crate::interop::readers::check;

const JOB: &str = readings_job!(
    "in/*.csv",
    "",
    r#"
[exports.DAY]
per = "day"
name = "DAY_{day:%Y%m%d}"
file_size = "16 KiB"
query = { sql = "SELECT meter, ts, kwh FROM T ORDER BY meter, ts" }

[exports.HIVE]
per = "day"
name = "HIVE/dt={day:%Y-%m-%d}"
delta = true
file_size = "16KiB"
query = { sql = "SELECT CAST(meter AS BIGINT) AS meter, ts, kwh FROM T ORDER BY meter, ts" }
"#
);

const METERS: usize = 250;
const ROWS: usize = METERS * 96;

/// A large day and a small one.
fn project(kwh: u64) -> Project {
    let project = Project::new("j", JOB);
    write(&project, kwh);
    project
}

fn write(project: &Project, kwh: u64) {
    let mut text = "meter,ts,kwh\n".to_owned();
    for at in 0..96 {
        for meter in 1..=METERS {
            let value = (meter * 7 + at) as u64 * kwh;
            text.push_str(&format!("{meter},2020-01-01T{:02}:{:02}:00Z,{value}\n", at / 4, at % 4 * 15));
        }
    }
    project.write("in/1.csv", text);
    project.write("in/2.csv", "meter,ts,kwh\n1,2020-01-02T00:00:00Z,5\n");
}

/// Names of the files of a part.
fn names(project: &Project, folder: &str) -> Vec<String> {
    let files = project.files(&format!("data/exports/{folder}"));
    files.into_keys().map(|path| path.rsplit('/').next().unwrap().to_owned()).collect()
}

#[test]
fn large_day_has_several_files() {
    let project = project(1);
    project.run_job("j");
    let large = names(&project, "DAY_20200101");
    assert!(large.len() > 1 && large.iter().all(|name| name.ends_with(".parquet")), "{large:?}");
    assert!(large[0].ends_with("-00000.parquet"), "{large:?}");
    assert_eq!(names(&project, "DAY_20200102"), ["part-0.parquet"]);
    let counted = |table: &str| project.sql(&format!("select count(*) as n, sum(kwh) as kwh from exports.{table}"));
    let expected = project.sql("select count(*) as n, sum(kwh) as kwh from T");
    assert_eq!((counted("DAY"), counted("HIVE")), (expected.clone(), expected));
    assert_eq!(counted("DAY_20200101")[0]["n"], ROWS);
    assert!(project.ok(&["plan", "j"]).contains("nothing to do"));
    // A second run changes nothing.
    project.ok(&["run", "j", "--force"]);
    assert_eq!(names(&project, "DAY_20200101"), large);

    // A restated day has only new files; the other keeps its own.
    write(&project, 2);
    project.run_job("j");
    let restated = names(&project, "DAY_20200101");
    assert!(restated.len() == large.len() && restated.iter().all(|name| !large.contains(name)), "{restated:?}");
    let doubled = project.sql("select sum(kwh) as kwh from T");
    assert_eq!(project.sql("select sum(kwh) as kwh from exports.DAY"), doubled);
    assert_eq!(project.sql("select sum(kwh) as kwh from exports.HIVE"), doubled);

    // Another file size publishes all days again.
    project.write("jobs/j/job.toml", JOB.replace("file_size = \"16 KiB\"\n", ""));
    assert!(project.ok(&["plan", "j"]).contains("DAY"), "{}", project.ok(&["plan", "j"]));
    project.run_job("j");
    assert_eq!(names(&project, "DAY_20200101"), ["part-0.parquet"]);
    assert_eq!(project.sql("select sum(kwh) as kwh from exports.DAY"), doubled);
}

#[test]
fn other_engines_read_all_files_of_a_day() {
    let project = project(1);
    project.run_job("j");
    let Some(said) = check(&project, "several", &project.path("data/exports/DAY_20200101")) else { return };
    assert_eq!((&said[0]["rows"], &said[0]["sorted"]), (&json!(ROWS), &json!(true)));
    assert!(said.iter().all(|said| said["rows"] == ROWS), "{said:?}");
    write(&project, 3);
    project.run_job("j");
    // Both versions of the Delta log.
    let said = check(&project, "delta", &project.path("data/exports/HIVE")).unwrap();
    assert!(said.len() == 2 && said.iter().all(|said| said["rows"] == ROWS + 1), "{said:?}");
}

#[test]
fn lost_file_or_list_of_a_large_day_is_restored() {
    let project = project(1);
    project.run_job("j");
    let before = names(&project, "DAY_20200101");
    std::fs::remove_file(project.path(&format!("data/exports/DAY_20200101/{}", before[1]))).unwrap();
    project.run_job("j");
    let after = names(&project, "DAY_20200101");
    assert!(after.len() == before.len() && !after.contains(&before[0]), "{after:?}");
    assert_eq!(project.sql("select count(*) as n from exports.DAY")[0]["n"], ROWS + 1);

    // Without its list the part is refused, or adopted as it is.
    std::fs::remove_file(project.path("data/exports/DAY.json")).unwrap();
    let refused = project.fails(2, &["run", "j"]);
    assert!(refused.contains("--adopt"), "{refused}");
    project.ok(&["run", "j", "--adopt"]);
    assert_eq!(names(&project, "DAY_20200101"), after);
    assert_eq!(project.sql("select count(*) as n from exports.DAY")[0]["n"], ROWS + 1);
    assert!(project.ok(&["plan", "j"]).contains("nothing to do"));
}

#[test]
fn run_stopped_before_listing_a_day_loses_and_repeats_no_row() {
    for (mode, wanted) in [("append", 2 * ROWS + 1), ("upsert\"\nkeys = [\"meter\", \"ts\"]\n#", ROWS + 1)] {
        let job = JOB.replace("file_size = \"16 KiB\"", &format!("file_size = \"16 KiB\"\nmode = \"{mode}\""));
        let job = job[..job.find("[exports.HIVE]").unwrap()].to_owned();
        let project = Project::new("j", &job);
        write(&project, 1);
        project.run_job("j");
        let list = project.read("data/exports/DAY.json");
        write(&project, 2);
        project.run_job("j");
        let files = names(&project, "DAY_20200101");
        let count = || project.sql("select count(*) as n from exports.DAY")[0]["n"].clone();
        assert_eq!(count(), wanted, "{mode}");
        // The files are new, the list is the one before.
        project.write("data/exports/DAY.json", &list);
        assert!(project.fails(1, &["sql", "-c", "select count(*) from exports.DAY"]).contains("run its job"));
        project.run_job("j");
        assert_eq!((count(), names(&project, "DAY_20200101")), (json!(wanted), files), "{mode}");
        // Again, with rows that arrived since.
        project.write("data/exports/DAY.json", &list);
        write(&project, 3);
        project.run_job("j");
        let wanted = if mode == "append" { 3 * ROWS + 1 } else { ROWS + 1 };
        assert_eq!(count(), wanted, "{mode}");
        // The remaining files of an appended day are kept.
        let files = names(&project, "DAY_20200101");
        std::fs::remove_file(project.path(&format!("data/exports/DAY_20200101/{}", files[0]))).unwrap();
        let refused = project.run(&["run", "j"]);
        assert!(refused.code != Some(0) && refused.stderr.contains("not all of them"), "{}", refused.stderr);
        assert_eq!(names(&project, "DAY_20200101"), files[1..]);
    }
}
