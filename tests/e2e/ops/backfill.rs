//! Backfills of a year, killed and continued; days with clock changes; ISO weeks.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::process::Stdio;
use std::time::Duration;

use chrono::{Datelike, NaiveDate};

use crate::harness::Project;

/// Hourly readings of a few meters for every day of `year`, a file a day.
fn year(project: &Project, year: i32, zone: &str) {
    let job = crate::harness::repository().join("jobs/smart-meters");
    let text = std::fs::read_to_string(job.join("job.toml")).unwrap();
    let text = text
        .replace(
            r#"["sample-data/smart-meters/*.csv", "sample-data/smart-meters/*.parquet"]"#,
            r#"["in/{day:%Y-%m-%d}.csv"]"#,
        )
        .replace(r#"timezone = "UTC""#, &format!("timezone = \"{zone}\""));
    project.write("jobs/smart-meters/job.toml", text);
    for query in ["sensor_day.sql", "sensor_rollup.sql"] {
        project.write(&format!("jobs/smart-meters/{query}"), std::fs::read(job.join(query)).unwrap());
    }
    let first = NaiveDate::from_ymd_opt(year, 1, 1).unwrap();
    for day in first.iter_days().take_while(|day| day.year() == year) {
        let mut rows = String::from("meter,ts,kwh\n");
        for (meter, hour) in (1..=3).flat_map(|meter| (0..24).map(move |hour| (meter, hour))) {
            let kwh = (day.ordinal() * 7 + meter * 31 + hour * 3) % 97;
            writeln!(rows, "{meter},{day}T{hour:02}:00:00Z,{}.{}", kwh / 10, kwh % 10).unwrap();
        }
        project.write(&format!("in/{day}.csv"), rows);
    }
}

/// The published files, and what the table holds.
fn state(project: &Project) -> (BTreeMap<String, Vec<u8>>, String) {
    let mut files = project.files("data/exports");
    files.retain(|name, _| name.ends_with(".parquet"));
    let cells = "select family, qualifier, count(*) as n, max(row_key) as last, sum(cast(cast(value as varchar) as decimal(18, 6))) as total from cells.SENSOR group by family, qualifier order by family, qualifier";
    (files, project.csv(cells))
}

#[test]
fn backfill_killed_five_times_equals_an_uninterrupted_one() {
    let (quiet, killed) = (Project::new("smart-meters", ""), Project::new("smart-meters", ""));
    let run = ["run", "smart-meters", "--now", "2025-01-05T00:00:00Z"];
    for project in [&quiet, &killed] {
        year(project, 2024, "UTC");
    }
    quiet.ok(&run);
    // The time of the kill differs between machines; the result must not.
    let mut random = 0x2024_u64;
    for _ in 0..5 {
        let mut child = killed.command(&run).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        std::thread::sleep(Duration::from_millis(100 + (random >> 33) % 1_500));
        child.kill().unwrap();
        child.wait().unwrap();
    }
    killed.ok(&run);
    let (files, cells) = state(&quiet);
    assert_eq!(files.len(), 2 * 366);
    let (after, same) = state(&killed);
    assert_eq!(cells, same);
    let differ: Vec<&String> =
        files.iter().filter(|(name, bytes)| after.get(*name) != Some(bytes)).map(|(name, _)| name).collect();
    assert!(differ.is_empty() && after.len() == files.len(), "{differ:?}");
    assert!(killed.ok(&["plan", "smart-meters"]).contains("nothing to do"));
    assert!(killed.ok(&["verify"]).starts_with("SENSOR: sound"));
}

#[test]
fn days_with_clock_changes_have_23_or_25_hours() {
    for (zone, of_year, odd) in [
        ("Europe/Paris", 2026, [("2026-03-29", 23), ("2026-10-25", 25), ("2026-12-31", 24)]),
        ("America/Sao_Paulo", 2018, [("2018-02-17", 25), ("2018-11-04", 23), ("2018-12-30", 24)]),
    ] {
        let project = Project::new("smart-meters", "");
        year(&project, of_year, zone);
        project.ok(&["run", "smart-meters"]);
        for (day, hours) in odd {
            let rows = format!("select count(*) as n from exports.SENSOR_{} where meter = 2", day.replace('-', ""));
            assert_eq!(project.sql(&rows)[0]["n"], hours, "{zone} {day}");
        }
        let all = project.sql("select count(*) as n from exports.SENSOR_DAY")[0]["n"].as_u64();
        assert_eq!(all, Some(365 * 72), "{zone}");
    }
}

#[test]
fn iso_weeks_and_leap_days_are_published() {
    let project = Project::new("smart-meters", "");
    year(&project, 2024, "UTC");
    let text = project.read("jobs/smart-meters/job.toml").replace("SENSOR_{day:%Y%m%d}", "SENSOR_{day:%GW%V-%u}");
    project.write("jobs/smart-meters/job.toml", text);
    project.ok(&["run", "smart-meters", "--from", "2024-12-28"]);
    let names: Vec<String> =
        project.files("data/exports").into_keys().filter(|name| name.contains("/SENSOR_2")).collect();
    let folders: Vec<&str> = names.iter().filter_map(|name| name.split('/').nth(2)).collect();
    assert_eq!(folders, ["SENSOR_2024W52-6", "SENSOR_2024W52-7", "SENSOR_2025W01-1", "SENSOR_2025W01-2"]);
    let plan = project.ok(&["plan", "smart-meters", "--day", "2024-02-29"]);
    assert!(plan.contains("SENSOR_2024W09-4"), "{plan}");
    project.ok(&["run", "smart-meters", "--day", "2024-02-29"]);
    assert_eq!(project.sql("select count(*) as n from exports.\"SENSOR_2024W09-4\"")[0]["n"], 72);
}
