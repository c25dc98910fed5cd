//! `vacuum`, `repair`, older versions, and concurrent loads and compactions.

use std::fs;
use std::process::Stdio;

use crate::harness::{Project, flip_bit};

const JOB: &str = readings_job!("in/{day:%Y-%m-%d}.csv", "", "");

fn write_day(project: &Project, day: u32, rows: u32) {
    let mut text = "meter,ts,kwh\n".to_owned();
    for row in 0..rows {
        text.push_str(&format!("{},2020-01-{day:02}T{:02}:00:00Z,{day}.{row}\n", row % 7, row % 24));
    }
    project.write(&format!("in/2020-01-{day:02}.csv"), text);
}

/// A project of three days, each loaded by a run of its own.
fn project() -> Project {
    let project = Project::new("j", JOB);
    for day in 1..=3 {
        write_day(&project, day, 20);
        project.ok(&["run", "j", "--now", &format!("2020-02-0{day}T00:00:00Z")]);
    }
    project
}

fn count(project: &Project, options: &[&str]) -> u64 {
    project.json(&[&["sql", "-c", "select count(*) as n from T"], options].concat())[0]["n"].as_u64().unwrap()
}

fn ssts(project: &Project) -> Vec<String> {
    project.files("data/tables/T/sst").into_keys().collect()
}

#[test]
fn older_versions_are_readable_until_vacuum() {
    let project = project();
    assert_eq!(count(&project, &[]), 60);
    assert_eq!(count(&project, &["--version", "1"]), 20);
    assert_eq!(count(&project, &["--version", "T=2"]), 40);
    assert_eq!(count(&project, &["--as-of-commit", "2020-02-02T12:00:00Z"]), 40);
    let both = "select (select count(*) from T) + (select count(*) from cells.T) as n";
    let sum = project.json(&["sql", "-c", both, "--version", "1"]);
    assert_eq!(sum[0]["n"], 40);
    assert!(project.fails(1, &["sql", "-c", "select * from T", "--version", "9"]).contains("the newest is 3"));
    assert!(project.fails(2, &["sql", "-c", "select 1", "--version", "1"]).contains("--version must name"));
    let early = project.fails(1, &["sql", "-c", "select * from T", "--as-of-commit", "2020-01-01T00:00:00Z"]);
    assert!(early.contains("no version of that time"), "{early}");

    // An input changes, and with it the SST of its window.
    write_day(&project, 1, 19);
    project.run_job("j");
    let files = ssts(&project);
    // A week is not over yet.
    assert!(project.ok(&["vacuum"]).contains("T: nothing to remove"));
    let rows = project.json(&["vacuum", "T", "--older-than", "0s"]);
    assert!(rows.len() >= 2 && rows.iter().all(|row| row["removed"] == false), "{rows:?}");
    assert_eq!(ssts(&project), files, "a dry run removes nothing");
    let said = project.ok(&["vacuum", "T", "--older-than", "0s", "--yes"]);
    assert!(said.contains("removed") && said.contains("1 unused SST"), "{said}");
    assert_eq!((count(&project, &[]), files.len() - ssts(&project).len()), (59, 1));
    let gone = project.fails(1, &["sql", "-c", "select * from T", "--version", "1"]);
    assert!(gone.contains("is not kept") && gone.contains("removed by vacuum"), "{gone}");
    assert!(project.ok(&["verify", "--all-versions"]).starts_with("T: sound"));
    // The version before the one that records what was removed is not old enough yet.
    project.ok(&["vacuum", "--older-than", "0s", "--yes"]);
    assert!(project.ok(&["vacuum", "--older-than", "0s", "--yes"]).contains("T: nothing to remove"));
    assert_eq!(project.files("data/tables/T/manifest").len(), 1);
    // Loads continue.
    write_day(&project, 4, 20);
    project.run_job("j");
    assert_eq!(count(&project, &[]), 79);
}

#[test]
fn repair_removes_a_damaged_sst_and_reloads_its_rows() {
    let project = project();
    let before = project.csv("select * from T order by meter, ts");
    assert!(project.ok(&["repair", "T"]).contains("no SST is damaged"));
    let broken = ssts(&project).remove(1);
    flip_bit(project.path(&broken));
    let bytes = fs::read(project.path(&broken)).unwrap();
    project.fails(1, &["verify", "T"]);

    let said = project.ok(&["repair", "T"]);
    assert!(said.contains("1 damaged SST") && said.contains("in/2020-01-02.csv"), "{said}");
    assert!(said.contains("keys     000#20200102 to 006#20200102"), "{said}");
    assert!(said.contains("times    2020-01-02T00:00:00Z to 2020-01-02T19:00:00Z"), "{said}");
    // An input that is gone cannot be loaded again: that is said before anything is removed.
    fs::rename(project.path("in/2020-01-02.csv"), project.path("aside.csv")).unwrap();
    let warned = project.run(&["repair", "T"]).stderr;
    assert!(warned.contains("warning: in/2020-01-02.csv is missing or empty"), "{warned}");
    fs::rename(project.path("aside.csv"), project.path("in/2020-01-02.csv")).unwrap();
    assert_eq!(project.run(&["repair", "T"]).stderr, "");
    project.fails(1, &["verify", "T"]);
    let id = broken.rsplit('/').next().unwrap().strip_suffix(".sst").unwrap();
    let row = project.json(&["repair", "T", "--drop", id]).remove(0);
    assert_eq!((row["sst"].as_str(), row["window"].as_str()), (Some(id), Some("2020-01-02")));
    assert_eq!((&row["version"], &row["rows"]), (&4.into(), &7.into()));
    assert_eq!(row["inputs"], serde_json::json!(["in/2020-01-02.csv"]));
    project.ok(&["verify", "T"]);
    assert_eq!(count(&project, &[]), 40);
    let record = project.run_job("j");
    assert_eq!(record["loads"][0]["rebuilt"], serde_json::json!(["2020-01-02"]));
    assert_eq!(project.csv("select * from T order by meter, ts"), before);
    assert_eq!(fs::read(project.path(&format!("data/tables/T/quarantine/{id}.sst"))).unwrap(), bytes);
    assert!(project.fails(1, &["repair", "T", "--drop", id]).contains("not a damaged SST"));
}

#[test]
fn concurrent_load_and_compaction_both_commit() {
    let project = Project::new("j", JOB);
    for day in 1..=6 {
        write_day(&project, day, 2_000);
    }
    project.ok(&["run", "j", "--day", "2020-01-01"]);
    for day in 2..=5 {
        let day = format!("2020-01-0{day}");
        let both: [&[&str]; 2] = [&["run", "j", "--day", &day], &["compact", "T", "--full"]];
        let landed = both.map(|args| {
            let mut command = project.command(args);
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
        });
        let landed = landed.map(|run| {
            let done = run.wait_with_output().unwrap();
            let said = String::from_utf8(done.stderr).unwrap();
            let refused = said.contains("changed T at the same time") && said.contains("nothing was committed");
            assert!(done.status.success() || refused, "{said}");
            done.status.success()
        });
        assert!(landed.contains(&true));
    }
    let days = "select distinct date_trunc('day', ts) as day from T";
    project.run_job("j");
    assert_eq!(project.sql(days).len(), 6);
    let fresh = Project::new("j", JOB);
    for day in 1..=6 {
        write_day(&fresh, day, 2_000);
    }
    fresh.run_job("j");
    let all = "select row_key, qualifier, value from cells.T order by row_key, qualifier";
    assert_eq!(project.sql(all), fresh.sql(all));
    assert!(project.ok(&["verify", "--all-versions"]).starts_with("T: sound"));
}
