//! Shared scans publish the same files as scans of single days.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::harness::Project;

const JOB: &str = readings_job!(
    "in/*.csv",
    "",
    r#"
[exports.DAY]
per = "day"
name = "DAY_{day:%Y%m%d}"
query = { sql = "SELECT meter, ts, kwh FROM T ORDER BY meter, ts" }

[exports.ROLLUP]
per = "day"
name = "rollup/dt={day:%Y-%m-%d}"
delta = true
query = { sql = "SELECT $day AS day, CAST(meter AS BIGINT) AS meter, sum(kwh) AS kwh, count(*) AS n FROM T WHERE meter > 2 GROUP BY meter ORDER BY meter" }

[exports.CSV]
per = "day"
name = "CSV_{day:%Y%m%d}"
format = "csv"
query = { sql = "SELECT a.meter, a.kwh, b.kwh AS half FROM T a JOIN T b ON a.meter = b.meter AND a.ts = b.ts WHERE a.kwh > 0.2" }

[checks.some]
on = "T"
rows = { min = 1 }
not_null = ["kwh"]
unique = ["meter", "ts"]

[checks.days]
on = "ROLLUP"
rows = { min = 1 }
query = { sql = "SELECT * FROM T WHERE ts < $from OR ts >= $to" }
"#
);

/// January, and as much of February as it takes until January is settled.
fn project() -> Project {
    let project = Project::new("j", JOB);
    for day in 0..39 {
        let date = if day < 31 { format!("2020-01-{:02}", day + 1) } else { format!("2020-02-{:02}", day - 30) };
        let mut text = "meter,ts,kwh\n".to_owned();
        for hour in 0..24 {
            for meter in 1..6 {
                text.push_str(&format!("{meter},{date}T{hour:02}:00:00Z,{}.{meter}\n", (day * hour) % 11));
            }
        }
        project.write(&format!("in/{date}.csv"), text);
    }
    project
}

/// For each export, in which states its days are.
fn states(record: &Value) -> BTreeMap<(String, String), usize> {
    let mut states = BTreeMap::new();
    let text = |part: &Value, key: &str| part[key].as_str().unwrap().to_owned();
    for part in record["exports"].as_array().unwrap() {
        *states.entry((text(part, "export"), text(part, "state"))).or_default() += 1;
    }
    states
}

fn all(state: &str) -> BTreeMap<(String, String), usize> {
    ["DAY", "ROLLUP", "CSV"].map(|export| ((export.to_owned(), state.to_owned()), 39)).into()
}

fn run(project: &Project, options: &[&str]) -> (Value, String) {
    let ran = project.run(&[&["run", "j", "--verbose", "--output", "json"], options].concat());
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    (serde_json::from_str(ran.stdout.lines().last().unwrap()).unwrap(), ran.stderr)
}

#[test]
fn shared_scan_publishes_the_same_days() {
    let project = project();
    // Each day has a file of its own until the end of this run.
    let (record, said) = run(&project, &[]);
    assert_eq!(states(&record), all("published"));
    assert!(!said.contains("were read"), "{said}");
    assert_eq!(record["compactions"][0]["windows"], 1, "January is joined");
    let checks = record["checks"].as_array().unwrap().len();

    let alone = project.files("data/exports");
    let (record, said) = run(&project, &["--force"]);
    for export in ["DAY", "ROLLUP", "CSV"] {
        assert!(said.contains(&format!("{export}: files that 31 parts share were read")), "{said}");
    }
    // For two queries of checks and for the export's own.
    assert!(said.contains("DAY: files that 31 parts share were read 3 times"), "{said}");
    assert_eq!(states(&record), all("unchanged"));
    assert_eq!(record["checks"].as_array().unwrap().len(), checks);
    let files = |files: &BTreeMap<String, Vec<u8>>| -> BTreeMap<String, Vec<u8>> {
        files.clone().into_iter().filter(|(name, _)| !name.ends_with(".json")).collect()
    };
    assert!(files(&alone) == files(&project.files("data/exports")), "files differ");

    // A single day shares no scan.
    let (record, said) = run(&project, &["--force", "--day", "2020-01-15"]);
    assert_eq!(record["exports"].as_array().unwrap().len(), 3);
    assert!(!said.contains("were read"), "{said}");
}

#[test]
fn failed_check_stops_only_its_day() {
    let project = project();
    let job = JOB.replace("rows = { min = 1 }\nnot_null", "range = { kwh = { max = 10.4 } }\nnot_null");
    project.run_job("j");
    project.write("jobs/j/job.toml", job);
    let ran = project.run(&["run", "j", "--force", "--verbose", "--output", "json"]);
    assert_eq!(ran.code, Some(3), "{}", ran.stderr);
    assert!(ran.stderr.contains("DAY: files that 31 parts share were read"), "{}", ran.stderr);
    let record: Value = serde_json::from_str(ran.stdout.lines().last().unwrap()).unwrap();
    let found = states(&record);
    assert_eq!(found.values().sum::<usize>(), 3 * 39);
    let refused = |export: &str| found[&(export.to_owned(), "checks".to_owned())];
    assert!((1..39).contains(&refused("DAY")), "{found:?}");
    assert_eq!(refused("DAY"), refused("CSV"));
}
