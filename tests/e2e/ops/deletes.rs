//! Deleting rows and cells, and compactions.

use std::collections::BTreeMap;
use std::fs;

use serde_json::{Value, json};

use crate::harness::Project;
use crate::harness::cells::micros;

const DAY: &str = "sample-data/smart-meters/2018-01-05.csv";

fn count(project: &Project) -> i64 {
    project.sql("select count(*) as n from SENSOR")[0]["n"].as_i64().unwrap()
}

/// Readings of one meter.
fn of_meter(project: &Project, meter: u64) -> i64 {
    project.sql(&format!("select count(*) as n from SENSOR where meter = {meter}"))[0]["n"].as_i64().unwrap()
}

/// Deletes without asking; what the command prints.
fn run_delete(project: &Project, args: &[&str]) -> Value {
    project.json(&[args, &["--yes"]].concat()).remove(0)
}

/// Every cell of a table, as `cells.T` shows it.
fn cells(project: &Project, table: &str) -> Vec<Value> {
    project.sql(&format!("select * from cells.{table} order by row_key, family, qualifier, timestamp desc"))
}

/// Every cell of a table, as `read` shows it.
fn read(project: &Project, table: &str, more: &[&str]) -> Vec<(String, String, i64, String)> {
    let mut out = Vec::new();
    for row in project.json(&[&["read", table], more].concat()) {
        for cell in row["cells"].as_array().unwrap() {
            let text = |name: &str| cell[name].as_str().unwrap().to_owned();
            let column = format!("{}:{}", text("family"), text("qualifier"));
            out.push((row["key"].as_str().unwrap().to_owned(), column, micros(&cell["timestamp"]), text("value")));
        }
    }
    out
}

/// Changes a row of 2018-01-05 of another meter than 42, so that the window is rebuilt.
fn change_the_fifth(project: &Project) {
    let mut lines: Vec<String> = project.read(DAY).lines().map(str::to_owned).collect();
    let at = lines.iter().position(|line| line.starts_with("77,")).unwrap();
    let cut = lines[at].rfind(',').unwrap();
    lines[at] = format!("{},98765.5", &lines[at][..cut]);
    project.write(DAY, lines.join("\n") + "\n");
}

fn smart_meters() -> Project {
    let project = Project::smart_meters();
    project.run_job("smart-meters");
    project
}

#[test]
fn dropped_rows_stay_deleted_after_reloads_and_rebuilds() {
    let project = smart_meters();
    let before = project.files("data/exports");
    let dropped = run_delete(&project, &["drop-rows", "SENSOR", "--prefix", "0000000042#"]);
    // 24 hourly readings per day and the meter's ID.
    assert_eq!((&dropped["rows"], &dropped["cells"]), (&json!(15), &json!(15 * 25)));
    assert_eq!(dropped["days"].as_array().unwrap().len(), 15);
    assert_eq!(count(&project), 7200 - 360);
    assert!(read(&project, "SENSOR", &["--prefix", "0000000042#"]).is_empty());
    assert!(!project.ok(&["read", "SENSOR", "--keys-only"]).contains("0000000042#"));
    assert_eq!(cells(&project, "SENSOR").len(), 7200 - 360 + 300 - 15);

    // Its days are published again, and only once.
    let record = project.run_job("smart-meters");
    assert_eq!(record["exports"].as_array().unwrap().len(), 30);
    assert_ne!(project.files("data/exports"), before);
    assert_eq!(project.sql("select count(*) as n from exports.SENSOR_20180105")[0]["n"], 480 - 24);
    assert!(project.run_job("smart-meters")["exports"].as_array().unwrap().is_empty());

    // After a rebuild of the window, and of the table. The changed input has readings of the meter: it is told.
    change_the_fifth(&project);
    let record = project.run_job("smart-meters");
    assert_eq!(record["loads"][0]["rows_hidden"], 24, "{record}");
    assert_eq!((of_meter(&project, 42), count(&project)), (0, 7200 - 360));
    let built = cells(&project, "SENSOR");
    project.ok(&["run", "smart-meters", "--rebuild"]);
    assert_eq!(cells(&project, "SENSOR"), built);

    // Changed content of a known input stays deleted.
    let text = project.read(DAY) + "42,2018-01-05T00:30:00Z,1.5\n";
    project.write(DAY, text);
    let record = project.run_job("smart-meters");
    assert_eq!(of_meter(&project, 42), 0);
    assert_eq!(record["loads"][0]["rows_hidden"], 1, "{record}");
    assert!(
        record["notes"].to_string().contains("SENSOR: 1 row of inputs that changed or grew stays hidden"),
        "{record}"
    );

    // A later input is not affected.
    project.write(
        "sample-data/smart-meters/later.csv",
        "meter,ts,kwh\n42,2018-01-05T00:00:00Z,1.5\n42,2018-01-06T00:00:00Z,2.5\n",
    );
    project.run_job("smart-meters");
    assert_eq!(of_meter(&project, 42), 2);
    change_the_fifth(&project);
    project.run_job("smart-meters");
    project.ok(&["run", "smart-meters", "--rebuild"]);
    assert_eq!(of_meter(&project, 42), 2, "and stays visible when it is read again");

    // A compaction removes the cells and changes no answer.
    let whole = cells(&project, "SENSOR");
    project.ok(&["compact", "SENSOR"]);
    assert_eq!(cells(&project, "SENSOR"), whole);
    assert_eq!(of_meter(&project, 42), 2);
}

#[test]
fn renamed_content_stays_deleted_in_a_rebuild() {
    let project = smart_meters();
    fs::copy(project.path(DAY), project.path("sample-data/smart-meters/2018-01-04-copy.csv")).unwrap();
    run_delete(&project, &["drop-rows", "SENSOR", "--prefix", "0000000042#"]);
    project.run_job("smart-meters");
    project.ok(&["run", "smart-meters", "--rebuild"]);
    assert_eq!(of_meter(&project, 42), 0);
}

#[test]
fn delete_removes_cells_of_one_row() {
    let project = smart_meters();
    let row = "0000000042#20180105";
    let before = project.files("data/exports");
    let of_row = || read(&project, "SENSOR", &["--row", row]).into_iter().map(|cell| cell.1).collect::<Vec<_>>();
    assert_eq!(of_row().len(), 25);

    let column = run_delete(&project, &["delete", "SENSOR", "--row", row, "--column", "METER:0300"]);
    let days = ["2018-01-05"];
    let deleted = json!({ "table": "SENSOR", "version": 2, "rows": 1, "cells": 1, "days": days, "sealed_days": [] });
    assert_eq!(column, deleted);
    assert!(!of_row().contains(&"METER:0300".to_owned()));
    assert_eq!(of_row().len(), 24);
    assert_eq!(
        project.sql("select kwh from SENSOR where meter = 42 and ts = '2018-01-05T03:00:00Z'"),
        [] as [Value; 0]
    );

    // Ranges of time are half-open.
    let range = |from: &str, to: &str| {
        let args = ["delete", "SENSOR", "--row", row, "--column", "METER:0400", "--from", from, "--to", to];
        run_delete(&project, &args)["cells"].clone()
    };
    assert_eq!(range("2018-01-05T04:00:01Z", "2018-01-06T00:00:00Z"), 0);
    assert_eq!(range("2018-01-05T00:00:00Z", "2018-01-05T04:00:00Z"), 0);
    // A tombstone without matches is kept.
    assert_eq!(project.files("data/tables").keys().filter(|name| name.contains("/manifest/")).count(), 4);
    assert_eq!(range("2018-01-05T04:00:00Z", "2018-01-05T04:00:01Z"), 1);
    assert_eq!(of_row().len(), 23);

    let record = project.run_job("smart-meters");
    let published: Vec<&str> =
        record["exports"].as_array().unwrap().iter().map(|part| part["part"].as_str().unwrap()).collect();
    assert_eq!(published, ["SENSOR_20180105", "SENSOR_ROLLUP_20180105"]);
    let changed = |after: &BTreeMap<String, Vec<u8>>| {
        after.iter().filter(|(name, bytes)| name.ends_with(".parquet") && before.get(*name) != Some(bytes)).count()
    };
    assert_eq!(changed(&project.files("data/exports")), 2);

    change_the_fifth(&project);
    project.run_job("smart-meters");
    assert_eq!(of_row().len(), 23, "the window was built anew");

    assert_eq!(run_delete(&project, &["delete", "SENSOR", "--row", row, "--column", "METER"])["cells"], 23);
    assert!(of_row().is_empty());
    let other = "0000000077#20180105";
    assert_eq!(run_delete(&project, &["delete", "SENSOR", "--row", other])["cells"], 25);
    assert!(!project.ok(&["read", "SENSOR", "--keys-only"]).contains(other));
    assert_eq!(count(&project), 7200 - 48);
}

#[test]
fn dry_run_lists_cells_and_deletes_nothing() {
    let project = smart_meters();
    let before = count(&project);
    let row = "0000000042#20180105";
    for args in [
        ["delete", "SENSOR", "--row", row].as_slice(),
        &["delete", "SENSOR", "--row", row, "--column", "METER:0300"],
        &["drop-rows", "SENSOR", "--prefix", "0000000042#"],
    ] {
        let would = project.json(&[args, &["--dry-run"]].concat()).remove(0);
        assert_eq!(would["version"], json!(null), "{args:?}");
        assert!(would["cells"].as_i64().unwrap() > 0 && !would["days"].as_array().unwrap().is_empty(), "{would}");
        assert_eq!(count(&project), before, "{args:?}");
        let text = project.ok(&[args, &["--dry-run"]].concat());
        assert!(text.contains(" would be hidden in "), "{text}");
    }
    project.fails(2, &["drop-rows", "SENSOR", "--prefix", "x", "--dry-run", "--yes"]);
    let would = project.json(&["drop-rows", "SENSOR", "--prefix", "0000000042#", "--dry-run"]).remove(0);
    let done = run_delete(&project, &["drop-rows", "SENSOR", "--prefix", "0000000042#"]);
    assert_eq!((&would["rows"], &would["cells"], &would["days"]), (&done["rows"], &done["cells"], &done["days"]));
}

#[test]
fn delete_asks_for_confirmation() {
    let project = smart_meters();
    let before = project.files("data");
    let refused = project.fails(2, &["drop-rows", "SENSOR", "--prefix", "0000000042#"]);
    assert!(refused.contains("--yes"), "{refused}");
    project.fails(2, &["delete", "SENSOR", "--row", "0000000042#20180105"]);
    project.fails(2, &["drop-rows", "SENSOR"]);
    let empty = project.fails(2, &["drop-rows", "SENSOR", "--prefix", "", "--yes"]);
    assert!(empty.contains("needs a row key"), "{empty}");
    let row = ["delete", "SENSOR", "--yes", "--row", "0000000042#20180105"];
    let with = |more: &[&'static str]| [&row, more].concat();
    assert!(project.fails(2, &with(&["--column", "METRE"])).contains("it has METER"));
    assert!(project.fails(2, &with(&["--column", "METER", "--from", "2018-01-05T00:00:00Z"])).contains("one column"));
    let backward = ["--column", "METER:0300", "--from", "2018-01-06T00:00:00Z", "--to", "2018-01-05T00:00:00Z"];
    project.fails(2, &with(&backward));
    let nothing = project.succeeds(&["drop-rows", "SENSOR", "--prefix", "x", "--yes"]);
    assert!(nothing.stdout.contains("0 rows"), "{}", nothing.stdout);
    assert!(nothing.stderr.contains("warning: no cell of SENSOR matches rows that begin with x"), "{}", nothing.stderr);
    let kept = project.files("data");
    let changed = kept.iter().filter(|(name, bytes)| before.get(*name) != Some(bytes)).map(|(name, _)| name);
    assert!(changed.clone().count() == 1 && changed.clone().all(|name| name.contains("/manifest/")), "it is kept");
    assert_eq!(run_delete(&project, &["drop-rows", "SENSOR", "--prefix", "x"])["rows"], 0);
    assert_eq!(project.files("data"), kept, "once is enough");
    assert!(project.fails(2, &["drop-rows", "NONE", "--prefix", "x", "--yes"]).contains("NONE"));
}

/// A table with a garbage-collection rule and a row per hour.
fn ruled(gc: &str) -> Project {
    let project = Project::new(
        "j",
        &format!(
            "name = \"j\"\n[sources.s]\nfiles = [\"in/*.csv\"]\ntime = \"ts\"\n[sources.s.columns]\nid = \"uint64\"\n\
             ts = \"timestamp\"\nv = \"int64\"\n[tables.T]\nrow_key = \"{{id:02}}#{{ts:%Y%m%d}}\"\n[tables.T.families.F]\n\
             gc = \"{gc}\"\ncolumns = [{{ qualifier = \"v\", value = \"{{v}}\" }}]\n\
             [exports.E]\nper = \"day\"\nname = \"E_{{day:%Y%m%d}}\"\nquery = {{ file = \"e.sql\" }}\n"
        ),
    );
    project.write("jobs/j/e.sql", "select id, v from T");
    project
}

fn run_at(project: &Project, now: &str) -> Value {
    project.json(&["run", "j", "--now", now]).remove(0)
}

/// Loads three files of two days with an event per hour.
fn three_files(project: &Project, now: &str) {
    for (file, hours) in [("a", [0, 3, 30]), ("b", [1, 3, 31]), ("c", [2, 4, 32])] {
        let line = |hour: &i32| {
            format!("1,2020-01-{:02}T{:02}:00:00Z,{}\n", 1 + hour / 24, hour % 24, hour * 10 + file.len() as i32)
        };
        project.write(
            &format!("in/{file}.csv"),
            "id,ts,v\n".to_owned()
                + &hours.iter().map(line).collect::<String>()
                + &format!("2,2020-01-01T00:00:00Z,{}\n", file.as_bytes()[0]),
        );
        run_at(project, now);
    }
}

#[test]
fn compaction_changes_no_answer() {
    for gc in ["never", "maxversions=2", "maxage=10h", "maxversions=1 or maxage=1d", "maxversions=1 and maxage=1d"] {
        let project = ruled(gc);
        let now = "2020-01-02T10:00:00Z";
        three_files(&project, now);
        let before = (cells(&project, "T"), read(&project, "T", &[]));
        let published = project.files("data/exports");
        let dry = project.ok(&["compact", "T", "--now", now, "--dry-run"]);
        assert!(dry.contains("2020-01-01") && dry.contains("several SSTs"), "{dry}");
        assert_eq!(before, (cells(&project, "T"), read(&project, "T", &[])));
        let done = project.json(&["compact", "T", "--now", now]).remove(0);
        assert_eq!((&done["ssts_before"], &done["windows"]), (&json!(6), &json!(2)), "{gc}");
        assert_eq!(before, (cells(&project, "T"), read(&project, "T", &[])), "{gc}");
        assert_eq!(read(&project, "T", &["--include-expired"]), before.1, "{gc}: what had expired is gone");
        assert!(project.ok(&["compact", "T", "--now", now]).contains("nothing to compact"));
        // No answer changed, so no day is published again.
        let record = run_at(&project, now);
        let quiet = |part: &Value| part["state"] == "empty" || part["state"] == "sealed";
        assert!(record["exports"].as_array().unwrap().iter().all(quiet), "{gc}: {record}");
        assert_eq!(project.files("data/exports"), published);
        // Later cells merge with compacted ones and win.
        project.write("in/d.csv", "id,ts,v\n1,2020-01-02T08:00:00Z,7\n1,2020-01-02T09:00:00Z,8\n");
        run_at(&project, now);
        let newest = project.sql("select v from T where id = 1 order by ts desc limit 1");
        assert_eq!(newest, [json!({ "v": 8 })], "{gc}");
        if gc == "never" {
            assert_eq!(project.sql("select v from T where ts = '2020-01-02T08:00:00Z'"), [json!({ "v": 7 })]);
        }
    }
}

#[test]
fn later_compaction_expires_more_cells() {
    let project = ruled("maxage=1d");
    three_files(&project, "2020-01-02T00:00:00Z");
    let (shown, all) = (read(&project, "T", &[]), read(&project, "T", &["--include-expired"]));
    assert_eq!(shown, all, "a day later nothing is older than a day");
    let later = "2020-01-02T12:00:00Z";
    let left = read(&project, "T", &["--now", later]);
    assert_eq!(left.len(), 3);
    assert_eq!(read(&project, "T", &[]), shown, "asking for another time changes nothing");
    project.ok(&["compact", "T", "--now", later]);
    assert_eq!(read(&project, "T", &[]), left);
    assert_eq!(read(&project, "T", &["--include-expired"]), left);
    // The day that lost cells is published again; the other is not.
    let record = run_at(&project, later);
    let parts: Vec<&str> =
        record["exports"].as_array().unwrap().iter().map(|part| part["part"].as_str().unwrap()).collect();
    assert_eq!(parts, ["E_20200101"]);
}

#[test]
fn full_compaction_rewrites_every_window() {
    let project = smart_meters();
    let before = cells(&project, "SENSOR");
    assert!(project.ok(&["compact", "SENSOR"]).contains("nothing to compact"), "one file a window is enough to read");
    let dry = project.ok(&["compact", "SENSOR", "--full", "--dry-run"]);
    assert!(dry.contains("2018-01-05") && dry.contains("as loaded"), "{dry}");
    assert_eq!(project.json(&["tables"])[0]["version"], json!(1));
    let done = project.json(&["compact", "SENSOR", "--full"]).remove(0);
    assert_eq!((&done["version"], &done["windows"], &done["cells_removed"]), (&json!(2), &json!(15), &json!(0)));
    assert_eq!(cells(&project, "SENSOR"), before);
    assert!(project.ok(&["compact", "SENSOR", "--full"]).contains("nothing to compact"));
}

#[test]
fn days_of_a_delete_are_those_of_the_job() {
    let export = "[exports.E]\nper = \"day\"\nname = \"E_{day:%Y%m%d}\"\nquery = { sql = \"select * from T\" }\n";
    let job = readings_job!("in/*.csv", "", "").replacen("name = \"j\"", "name = \"j\"\ntimezone = \"Asia/Tokyo\"", 1);
    let project = Project::new("j", &(job + export));
    project.write("in/a.csv", "meter,ts,kwh\n1,2020-01-01T20:00:00Z,1\n2,2020-01-01T20:00:00Z,1\n");
    project.run_job("j");

    // In Tokyo it was 5 in the morning of the second.
    let deleted = run_delete(&project, &["delete", "T", "--row", "001#20200101"]);
    assert_eq!(deleted["days"], json!(["2020-01-01", "2020-01-02"]), "{deleted}");
    project.ok(&["run", "j", "--from", "2020-01-01", "--to", "2020-01-02"]);
    assert_eq!(project.sql("select count(*) as n from exports.E")[0]["n"], 1);

    // A year without records is no success in silence.
    let told = project.ok(&["run", "j", "--day", "2027-01-02", "--force"]);
    assert!(told.contains("no records of 2027-01-02"), "{told}");
    let told = project.ok(&["run", "j", "--day", "2020-01-02", "--force"]);
    assert!(told.contains("unchanged E: 1 day"), "{told}");
}
