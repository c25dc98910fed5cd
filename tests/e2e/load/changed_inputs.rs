//! Inputs that change after they were loaded.

use std::collections::BTreeMap;
use std::fs;

use serde_json::Value;

use crate::harness::Project;

const DAY: &str = "sample-data/smart-meters/2018-01-05.csv";

/// All cells and records of the table, as SQL shows them.
fn contents(project: &Project) -> Vec<Value> {
    let mut all = project.sql("select * from cells.SENSOR order by row_key, family, qualifier, timestamp desc");
    all.extend(project.sql("select * from SENSOR order by meter, ts, kwh"));
    assert!(all.len() > 14_000);
    all
}

/// Which published files differ.
fn republished(before: &BTreeMap<String, Vec<u8>>, after: &BTreeMap<String, Vec<u8>>) -> Vec<String> {
    let changed = after.iter().filter(|(name, bytes)| before.get(*name) != Some(bytes));
    changed
        .filter_map(|(name, _)| name.strip_suffix("/part-0.parquet"))
        .filter_map(|n| n.rsplit('/').next())
        .map(str::to_owned)
        .collect()
}

/// Loads the sample, changes one of its files and loads again. The store must equal a fresh load of
/// the new files, and only `days` may be published again.
fn check_change(change: impl Fn(&str) -> String, days: &[&str]) {
    let project = Project::smart_meters();
    project.run_job("smart-meters");
    let before = project.files("data/exports");
    let text = change(&project.read(DAY));
    project.write(DAY, &text);
    let record = project.run_job("smart-meters");
    assert_eq!(record["loads"][0]["inputs"][0]["state"], "changed");

    let fresh = Project::smart_meters();
    fresh.write(DAY, &text);
    fresh.run_job("smart-meters");
    assert_eq!(contents(&project), contents(&fresh));

    let mut expected: Vec<String> = days.iter().map(|day| format!("SENSOR_{day}")).collect();
    expected.extend(days.iter().map(|day| format!("SENSOR_ROLLUP_{day}")));
    assert_eq!(republished(&before, &project.files("data/exports")), expected);
    let published = |project: &Project| {
        let files = project.files("data/exports");
        files.into_iter().filter(|(name, _)| name.ends_with(".parquet")).collect::<BTreeMap<_, _>>()
    };
    assert_eq!(published(&project), published(&fresh));
}

#[test]
fn changed_row_republishes_its_day() {
    check_change(
        |text| {
            let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
            let cut = lines[7].rfind(',').unwrap();
            lines[7] = format!("{},98765.5", &lines[7][..cut]);
            lines.join("\n") + "\n"
        },
        &["20180105"],
    );
}

#[test]
fn removed_row_republishes_its_day() {
    check_change(
        |text| text.lines().enumerate().filter(|(at, _)| *at != 9).map(|(_, line)| format!("{line}\n")).collect(),
        &["20180105"],
    );
}

#[test]
fn row_moved_to_another_day_republishes_both_days() {
    check_change(
        |text| {
            let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
            lines[11] = lines[11].replace("2018-01-05T", "2018-01-20T");
            lines.join("\n") + "\n"
        },
        &["20180105", "20180120"],
    );
}

#[test]
fn day_that_lost_its_rows_is_published_without_rows() {
    let project = Project::smart_meters();
    project.run_job("smart-meters");
    // An emptied file alone takes nothing out.
    project.write(DAY, "meter,ts,kwh\n");
    project.run_job("smart-meters");
    assert_eq!(project.sql("select count(*) as n from SENSOR")[0]["n"], 7200);
    project.ok(&["run", "smart-meters", "--without", DAY]);
    assert_eq!(project.sql("select count(*) as n from SENSOR")[0]["n"], 7200 - 480);
    assert_eq!(project.sql("select count(*) as n from exports.SENSOR_20180105")[0]["n"], 0);
    assert_eq!(project.sql("select count(*) as n from exports.SENSOR_DAY")[0]["n"], 7200 - 480);
}

#[test]
fn late_file_adds_rows_to_its_days() {
    let project = Project::smart_meters();
    project.run_job("smart-meters");
    let before = project.files("data/exports");
    project.write(
        "sample-data/smart-meters/late.csv",
        "meter,ts,kwh\n42,2018-01-07T03:30:00Z,1.5\n42,2018-01-07T04:00:00Z,2.5\n",
    );
    let record = project.run_job("smart-meters");
    assert_eq!(record["loads"][0]["rows_read"], 2);
    assert_eq!(record["loads"][0]["rebuilt"].as_array().unwrap().len(), 0);
    // Of two SSTs of a window the later file wins; its other row is new.
    let rows = project.sql("select ts, kwh from SENSOR where meter = 42 and ts >= '2018-01-07T03:00:00Z' and ts <= '2018-01-07T04:00:00Z' order by ts");
    let kwh: Vec<f64> = rows.iter().map(|row| row["kwh"].as_f64().unwrap()).collect();
    assert_eq!(kwh[1..], [1.5, 2.5]);
    assert_eq!(project.sql("select count(*) as n from SENSOR")[0]["n"], 7201);
    assert_eq!(republished(&before, &project.files("data/exports")), ["SENSOR_20180107", "SENSOR_ROLLUP_20180107"]);
}

#[test]
fn copy_of_an_input_is_not_loaded() {
    let project = Project::smart_meters();
    project.run_job("smart-meters");
    let files = |project: &Project| {
        let mut files = project.files("data");
        files.retain(|name, _| !name.contains("/manifest/"));
        files
    };
    let before = files(&project);
    fs::copy(project.path(DAY), project.path("sample-data/smart-meters/again.csv")).unwrap();
    let ran = project.run(&["run", "smart-meters"]);
    assert_eq!(ran.code, Some(0));
    assert!(ran.stderr.contains("same content"), "{}", ran.stderr);
    // Only the name is stored.
    assert_eq!(files(&project), before);
    let all = project.files("data");
    project.run_job("smart-meters");
    assert_eq!(project.files("data"), all);
}

#[test]
fn missing_input_keeps_its_cells_until_its_window_is_rebuilt() {
    let project = Project::smart_meters();
    project.write("sample-data/smart-meters/zz.csv", "meter,ts,kwh\n42,2018-01-05T03:30:00Z,1.5\n");
    project.run_job("smart-meters");
    let count = || project.sql("select count(*) as n from SENSOR")[0]["n"].clone();
    fs::remove_file(project.path("sample-data/smart-meters/zz.csv")).unwrap();
    let ran = project.run(&["run", "smart-meters"]);
    assert!(ran.stderr.contains("zz.csv is gone: its cells stay"), "{}", ran.stderr);
    assert_eq!(count(), 7201);

    let text = project.read(DAY).lines().take(400).map(|line| format!("{line}\n")).collect::<String>();
    project.write(DAY, text);
    let said = project.fails(4, &["run", "smart-meters"]);
    assert!(said.contains("zz.csv") && said.contains("--without"), "{said}");
    assert_eq!(count(), 7201);
    project.ok(&["run", "smart-meters", "--without", "sample-data/smart-meters/zz.csv"]);
    assert_eq!(count(), 7200 - 480 + 399);
}

#[test]
fn changed_layout_requires_rebuild() {
    let project = Project::smart_meters();
    project.run_job("smart-meters");
    let job = project.read("jobs/smart-meters/job.toml").replace("{meter:010}", "{meter:012}");
    project.write("jobs/smart-meters/job.toml", job);
    assert!(project.fails(2, &["run", "smart-meters"]).contains("--rebuild"));
    project.ok(&["run", "smart-meters", "--rebuild"]);
    assert!(project.ok(&["read", "SENSOR", "--limit", "1", "--keys-only"]).contains("000000000002#20180102"));
    assert_eq!(project.sql("select count(*) as n from SENSOR")[0]["n"], 7200);
}

#[test]
fn rotated_file_is_loaded() {
    let project = Project::smart_meters();
    project.run_job("smart-meters");
    // A rotated log: its former content has another name.
    fs::copy(project.path(DAY), project.path("sample-data/smart-meters/rotated.csv")).unwrap();
    project.write(DAY, "meter,ts,kwh\n42,2018-01-25T00:00:00Z,1.5\n");
    project.run_job("smart-meters");
    assert_eq!(project.sql("select count(*) as n from SENSOR")[0]["n"], 7201);
}

#[test]
fn excluded_input_can_be_loaded_again() {
    let project = Project::smart_meters();
    let late = "meter,ts,kwh\n42,2018-01-05T03:30:00Z,1.5\n42,2018-01-07T03:30:00Z,2.5\n";
    let path = "sample-data/smart-meters/zz.csv";
    project.write(path, late);
    project.run_job("smart-meters");
    fs::remove_file(project.path(path)).unwrap();
    let text = project.read(DAY).replace("2018-01-05T00:00:00Z", "2018-01-05T00:15:00Z");
    project.write(DAY, text);
    project.ok(&["run", "smart-meters", "--without", path]);
    assert_eq!(project.sql("select count(*) as n from SENSOR")[0]["n"], 7200, "it goes from all its windows");
    project.write(path, late);
    project.run_job("smart-meters");
    assert_eq!(project.sql("select count(*) as n from SENSOR")[0]["n"], 7202);
}

#[test]
fn rebuild_refuses_to_drop_missing_inputs() {
    let project = Project::smart_meters();
    project.run_job("smart-meters");
    fs::remove_file(project.path(DAY)).unwrap();
    let said = project.fails(1, &["run", "smart-meters", "--rebuild"]);
    assert!(said.contains("2018-01-05.csv") && said.contains("--without"), "{said}");
    assert_eq!(project.sql("select count(*) as n from SENSOR")[0]["n"], 7200);
    project.ok(&["run", "smart-meters", "--rebuild", "--without", DAY]);
    assert_eq!(project.sql("select count(*) as n from SENSOR")[0]["n"], 7200 - 480);
}

#[test]
fn rebuild_keeps_the_order_of_inputs() {
    let project = Project::smart_meters();
    let cell = |kwh: &str| format!("meter,ts,kwh\n42,2018-02-01T00:00:00Z,{kwh}\n");
    project.write("sample-data/smart-meters/zz.csv", cell("2"));
    project.run_job("smart-meters");
    project.write("sample-data/smart-meters/aa.csv", cell("1"));
    project.run_job("smart-meters");
    let value = || project.sql("select kwh from SENSOR where meter = 42 and ts >= '2018-02-01'")[0]["kwh"].clone();
    assert_eq!(value(), 1.0);
    project.ok(&["run", "smart-meters", "--rebuild"]);
    assert_eq!(value(), 1.0, "the later input wins, whatever its name");
}

#[test]
fn changed_source_format_requires_rebuild() {
    let project = Project::smart_meters();
    project.run_job("smart-meters");
    let job = project.read("jobs/smart-meters/job.toml");
    project.write(
        "jobs/smart-meters/job.toml",
        job.replace("time = \"ts\"", "time = \"ts\"\ncsv = { null = [\"53.0\"] }"),
    );
    assert!(project.fails(2, &["run", "smart-meters"]).contains("--rebuild"));
}

#[test]
fn rejected_rows_are_written_before_the_commit() {
    let project = Project::smart_meters();
    let text = project.read(DAY) + "x,y,z\n";
    project.write(DAY, text);
    project.write("data/rejected", "a file where a folder should be");
    assert!(project.fails(1, &["run", "smart-meters"]).contains("rejected"));
    assert!(!project.path("data/tables/SENSOR/manifest").exists());
    assert!(project.files("data/tables").is_empty(), "nothing is left of a load that was not committed");
}

#[test]
fn file_that_becomes_a_copy_counts_once() {
    let job = "name = \"j\"\n[sources.s]\nfiles = [\"in/*.csv\"]\ntime = \"ts\"\n[sources.s.columns]\nh = \"text\"\n\
        ts = \"timestamp\"\nv = \"int64\"\n[tables.A]\nrow_key = \"{h}\"\n[tables.A.families.F]\nkind = \"sum\"\n\
        columns = [{ qualifier = \"v\", value = \"{v}\", timestamp = 0 }]\n";
    let project = Project::new("j", job);
    let write =
        |file: &str, v: u32| project.write(&format!("in/{file}.csv"), format!("h,ts,v\na,2020-01-01T00:00:00Z,{v}\n"));
    let total = || project.sql("SELECT v FROM A")[0]["v"].clone();
    write("1", 1);
    write("2", 2);
    project.run_job("j");
    assert_eq!(total(), 3);
    write("2", 1);
    project.run_job("j");
    assert_eq!(total(), 1);
    // When it changes, it is no copy any more.
    write("2", 5);
    project.run_job("j");
    assert_eq!(total(), 6);
    // Both change, into each other's content and into one content.
    write("1", 5);
    write("2", 1);
    project.run_job("j");
    assert_eq!(total(), 6);
    write("1", 7);
    write("2", 7);
    project.run_job("j");
    assert_eq!(total(), 7);
}

#[test]
fn of_files_that_come_together_the_last_name_wins() {
    let correction = "meter,ts,kwh\n2,2018-01-05T00:00:00Z,1.5\n";
    let query = "select kwh from SENSOR where meter = 2 and ts = '2018-01-05T00:00:00Z'";
    let original = 274.15;

    for (name, kwh) in [("2018-01-05_again", 1.5), ("2018-01-05-again", original), ("2018-01-05.again", original)] {
        let project = Project::smart_meters();
        project.write(&format!("sample-data/smart-meters/{name}.csv"), correction);
        let ran = project.run(&["run", "smart-meters"]);
        assert!(ran.stderr.contains("1 cell was replaced"), "{}", ran.stderr);
        assert_eq!(project.sql(query)[0]["kwh"], kwh, "{name}");

        // Again under a name that no run has seen.
        project.write("sample-data/smart-meters/2018-01-05-2nd.csv", format!("{correction}\n"));
        project.run_job("smart-meters");
        assert_eq!(project.sql(query)[0]["kwh"], 1.5, "{name}");
    }
}
