//! `tidetable new` on files with a few broken lines, and the first runs of what it proposed.

use serde_json::{Value, json};

use crate::harness::{Project, json_lines};

/// A file of `rows` readings of five meters, with `broken` in place of one line.
fn file(rows: usize, broken: &str) -> String {
    let readings = (0..rows).map(|row| match row {
        _ if row == rows / 2 => broken.to_owned(),
        _ => format!("2020-06-{:02} {:02}:00,INV-{:02},{row}.5", 1 + row / 5 / 24, row / 5 % 24, row % 5),
    });
    format!("ts,inverter,watts\n{}\n", readings.collect::<Vec<_>>().join("\n"))
}

#[test]
fn broken_lines_are_rejected() {
    let project = Project::empty();
    project.write("solar.csv", file(2400, "not-a-time,INV-05,abc"));
    let said = project.json(&["new", "solar", "--from", "solar.csv"]).remove(0);
    assert_eq!(said["row_key"], "{inverter}#{ts:%Y%m%d}");
    let notes: Vec<&str> = said["notes"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    assert!(notes.contains(&"ts, line 1202: 'not-a-time' is no time; its row will be rejected."), "{notes:?}");
    assert!(notes.contains(&"watts, line 1202: 'abc' is no number; its row will be rejected."), "{notes:?}");
    let job = project.read("jobs/solar/job.toml");
    assert!(
        job.contains("max_rejected = \"0.1%\"\n") && job.contains("# watts, line 1202: 'abc' is no number"),
        "{job}"
    );
    let ran = project.run_job("solar");
    assert_eq!(ran["rows_rejected"], 1);
    assert_eq!(project.sql("SELECT max(watts) AS most FROM SOLAR")[0]["most"].as_f64(), Some(2399.5));
    // A short file tolerates one row, and so does its job.
    project.write("short.csv", file(150, "2020-06-01 00:00,INV-05,7 W"));
    let said = project.ok(&["new", "short", "--from", "short.csv"]);
    assert!(said.contains("note: watts, line 77: '7 W' is no number; its row will be rejected.\n"), "{said}");
    assert!(project.read("jobs/short/job.toml").contains("max_rejected = \"1%\" # 1 of 150 rows do not fit\n"));
    assert_eq!(project.run_job("short")["rows_rejected"], 1);
    let quiet = project.ok(&["new", "short", "--from", "short.csv", "--force", "-q"]);
    assert!(quiet.contains("wrote ") && !quiet.contains("note:"), "{quiet}");
}

#[test]
fn a_reference_table_is_rebuilt_with_an_event_time() {
    let project = Project::empty();
    project.write("solar.csv", file(240, "not-a-time,INV-05,1.5"));
    project.ok(&["new", "solar", "--from", "solar.csv", "--timezone", "Europe/Paris"]);
    let timed = project.read("jobs/solar/job.toml");
    // As if no column held times.
    let names = file(240, "x,INV-05,1.5").replace("2020-06-", "name ").replace(":00", "");
    project.write("solar.csv", names);
    project.ok(&["new", "solar", "--from", "solar.csv", "--timezone", "Europe/Paris", "--force"]);
    assert!(project.read("jobs/solar/job.toml").contains("to_timestamp_seconds(0)"));
    project.ok(&["run", "solar"]);
    project.write("solar.csv", file(240, "not-a-time,INV-05,1.5"));
    project.write("jobs/solar/job.toml", timed);
    let refused = project.run(&["run", "solar"]);
    assert!(refused.code != Some(0) && refused.stderr.contains("--rebuild"), "{}", refused.stderr);
    let rebuilt = project.run(&["run", "solar", "--rebuild", "--output", "json"]);
    assert_eq!(rebuilt.code, Some(0), "{}", rebuilt.stderr);
    // The run before was refused, not killed.
    assert!(json_lines(&rebuilt.stdout)[0]["continues"].is_string(), "{}", rebuilt.stdout);
    assert!(!rebuilt.stderr.contains("did not finish"), "{}", rebuilt.stderr);
    let days = project.sql("SELECT count(DISTINCT CAST(ts AS DATE)) AS days, count(*) AS n FROM SOLAR");
    assert_eq!((&days[0]["n"], days[0]["days"].as_u64() > Some(1)), (&json!(239), true));
}
