//! The smart-meters job on its sample data.

use std::fs::{self, File};

use arrow::array::{AsArray, RecordBatchReader};
use arrow::datatypes::{Float64Type, UInt64Type};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use serde_json::{Value, json};

use crate::harness::Project;
use crate::harness::cells::micros;

/// (meter, time as text or microseconds, kwh) of every reading of the source files.
fn source_rows(project: &Project) -> Vec<(u64, f64)> {
    let mut rows = Vec::new();
    for file in fs::read_dir(project.path("sample-data/smart-meters")).unwrap() {
        let path = file.unwrap().path();
        if path.extension().is_some_and(|ending| ending == "csv") {
            for line in fs::read_to_string(&path).unwrap().lines().skip(1) {
                let fields: Vec<&str> = line.split(',').collect();
                rows.push((fields[0].parse().unwrap(), fields[2].parse().unwrap()));
            }
        } else {
            let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(&path).unwrap()).unwrap().build().unwrap();
            assert_eq!(reader.schema().field(2).name(), "kwh");
            for batch in reader {
                let batch = batch.unwrap();
                let meters = batch.column(0).as_primitive::<UInt64Type>();
                let kwh = batch.column(2).as_primitive::<Float64Type>();
                rows.extend(meters.values().iter().copied().zip(kwh.values().iter().copied()));
            }
        }
    }
    rows
}

#[test]
fn sql_agrees_with_the_source_files() {
    let project = Project::smart_meters();
    let record = project.run_job("smart-meters");
    let rows = source_rows(&project);
    assert!(rows.len() >= 20 * 24 * 15);
    assert_eq!(record["loads"][0]["rows_read"], rows.len());
    assert_eq!(record["loads"][0]["rows_accepted"], rows.len());
    assert_eq!(record["outcome"], "ok");

    let answer = &project.sql("select count(*) as n, sum(kwh) as total from SENSOR")[0];
    let total: f64 = rows.iter().map(|row| row.1).sum();
    assert_eq!(answer["n"], rows.len());
    assert!((answer["total"].as_f64().unwrap() - total).abs() <= total * 1e-12, "{answer} against {total}");

    let by_meter =
        project.sql("select meter, count(*) as n, max(kwh) as peak from SENSOR group by meter order by meter");
    let mut meters: Vec<u64> = rows.iter().map(|row| row.0).collect();
    meters.sort_unstable();
    meters.dedup();
    assert_eq!(by_meter.len(), meters.len());
    for (answer, meter) in by_meter.iter().zip(meters) {
        let peak = rows.iter().filter(|row| row.0 == meter).map(|row| row.1).fold(f64::MIN, f64::max);
        let count = rows.iter().filter(|row| row.0 == meter).count();
        assert_eq!(*answer, json!({ "meter": meter, "n": count, "peak": peak }));
    }
}

#[test]
fn row_holds_a_meter_and_day_with_a_cell_per_hour() {
    let project = Project::smart_meters();
    project.run_job("smart-meters");
    let rows = project.json(&["read", "SENSOR", "--limit", "1"]);
    assert_eq!(rows.len(), 1);
    let row = &rows[0];
    assert_eq!(row["key"], "0000000002#20180102");
    let cells = row["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 25);
    let ids: Vec<&Value> = cells.iter().filter(|cell| cell["qualifier"] == "ID").collect();
    assert_eq!(
        ids,
        [&json!({ "family": "METER", "qualifier": "ID", "timestamp": "1970-01-01T00:00:00Z", "value": "2" })]
    );
    let midnight = 1_514_851_200_000_000i64;
    for (hour, cell) in cells.iter().filter(|cell| cell["qualifier"] != "ID").enumerate() {
        assert_eq!(cell["family"], "METER");
        assert_eq!(cell["qualifier"], format!("{hour:02}00"));
        assert_eq!(micros(&cell["timestamp"]), midnight + hour as i64 * 3_600_000_000);
        assert!(cell["value"].as_str().unwrap().parse::<f64>().is_ok());
    }
    // Cells are ordered by the bytes of the qualifier: digits before letters.
    assert_eq!(cells.last().unwrap()["qualifier"], "ID");
    let first: f64 = cells[0]["value"].as_str().unwrap().parse().unwrap();
    let expected = &project.sql("select kwh from SENSOR where meter = 2 order by ts limit 1")[0]["kwh"];
    assert_eq!(first, expected.as_f64().unwrap());
}

#[test]
fn rows_are_read_by_key_prefix_and_range() {
    let project = Project::smart_meters();
    project.run_job("smart-meters");
    let keys = |args: &[&str]| -> Vec<String> {
        let rows = project.json(&[&["read", "SENSOR", "--keys-only"], args].concat());
        rows.iter().map(|row| row["key"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(keys(&["--row", "0000000042#20180105"]), ["0000000042#20180105"]);
    assert!(keys(&["--row", "0000000041#20180105"]).is_empty());
    let prefix = keys(&["--prefix", "0000000042#"]);
    assert_eq!(prefix.len(), 15);
    assert!(prefix.is_sorted());
    let range = keys(&["--start", "0000000042#20180105", "--end", "0000000042#20180108"]);
    assert_eq!(range, ["0000000042#20180105", "0000000042#20180106", "0000000042#20180107"]);
    let all = keys(&[]);
    assert_eq!(all.len(), 20 * 15);
    assert!(all.is_sorted());
    assert_eq!(keys(&["--limit", "7"]), all[..7]);
}

#[test]
fn second_run_changes_nothing() {
    let project = Project::smart_meters();
    project.run_job("smart-meters");
    let before = project.files("data");
    let said = project.ok(&["run", "smart-meters"]);
    assert!(said.contains("0 new rows"), "{said}");
    assert_eq!(project.files("data"), before);
}

#[test]
fn predicate_on_meter_and_time_reads_fewer_rows() {
    let project = Project::smart_meters();
    project.run_job("smart-meters");
    let plan = |query: &str| project.csv(&format!("explain {query}"));
    let narrow = "select kwh from SENSOR where meter = 42 \
                  and ts between '2018-01-05T00:00:00Z' and '2018-01-06T23:00:00Z'";
    let text = plan(narrow);
    assert!(text.contains("0000000042#20180105"), "{text}");
    assert!(text.contains("slices=2"), "{text}");
    assert!(plan("select kwh from SENSOR").contains("slices=15"));
    assert_eq!(project.sql(narrow).len(), 48);
}

#[test]
fn published_days_are_tables() {
    let project = Project::smart_meters();
    project.run_job("smart-meters");
    let count = |table: &str| project.sql(&format!("select count(*) as n from {table}"))[0]["n"].clone();
    assert_eq!(count("exports.SENSOR_20180105"), 480);
    assert_eq!(count("exports.SENSOR_DAY"), 7200);
    assert_eq!(count("exports.SENSOR_ROLLUP_20180105"), 20);
    assert_eq!(count("exports.SENSOR_ROLLUP"), 300);
    assert!(project.path("data/exports/SENSOR_20180116/part-0.parquet").is_file());
    let rollup = project.sql(
        "select r.meter from exports.SENSOR_ROLLUP r join \
         (select meter, cast(ts as date) as day, sum(kwh) as total from SENSOR group by 1, 2) s \
         on r.meter = s.meter and r.day = s.day where abs(r.total_kwh - s.total) > 1e-6 or r.readings <> 24",
    );
    assert!(rollup.is_empty(), "{rollup:?}");
}

#[test]
fn only_selected_days_are_published() {
    let project = Project::smart_meters();
    project.ok(&["run", "smart-meters", "--from", "2018-01-04", "--to", "2018-01-05"]);
    let exports = project.files("data/exports");
    let folders: Vec<&str> =
        exports.keys().filter_map(|name| name.split('/').nth(2)).filter(|n| !n.ends_with("json")).collect();
    assert_eq!(folders, ["SENSOR_20180104", "SENSOR_20180105", "SENSOR_ROLLUP_20180104", "SENSOR_ROLLUP_20180105"]);
    project.ok(&["run", "smart-meters", "--day", "2018-01-10"]);
    assert!(project.path("data/exports/SENSOR_20180110").is_dir());
    assert!(!project.path("data/exports/SENSOR_20180111").is_dir());
    assert!(
        project.fails(2, &["run", "smart-meters", "--from", "2018-01-05", "--to", "2018-01-04"]).contains("--from")
    );
}

#[test]
fn commands_list_tables_and_files() {
    let project = Project::smart_meters();
    project.run_job("smart-meters");
    let tables = project.json(&["tables"]);
    let names: Vec<&str> = tables.iter().map(|row| row["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["SENSOR", "SENSOR_DAY", "SENSOR_ROLLUP"]);
    assert_eq!(tables[0]["rows"], 300);
    assert_eq!(tables[0]["cells"], 7200 + 300);
    let described = project.ok(&["describe", "SENSOR"]);
    assert!(described.contains("{meter:010}#{ts:%Y%m%d}") && described.contains("2018-01-16"), "{described}");
    let sst = project.files("data/tables").into_keys().find(|name| name.ends_with(".sst")).unwrap();
    let inspected: Value = serde_json::from_str(&project.ok(&["inspect", &sst, "--output", "json"])).unwrap();
    assert!(inspected.to_string().contains("stripes"), "{inspected}");
    assert!(project.ok(&["inspect", &sst]).contains("METER"));
    assert!(project.ok(&["check", "smart-meters"]).contains("reads back meter, ts, kwh"));
    assert!(project.fails(2, &["read", "SENSR"]).contains("SENSOR"));
    assert!(project.fails(2, &["run", "smart-metres"]).contains("smart-meters"));
}

#[test]
fn root_can_be_another_directory() {
    let project = Project::smart_meters();
    project.ok(&["run", "smart-meters", "--root", "elsewhere"]);
    assert!(project.path("elsewhere/tables/SENSOR").is_dir());
    assert!(!project.path("data").exists());
    let ran = project.command(&["tables", "--output", "csv"]).env("TIDETABLE_ROOT", "elsewhere").output().unwrap();
    assert!(String::from_utf8(ran.stdout).unwrap().contains("SENSOR"));
}

#[test]
fn closed_pipe_is_not_a_failure() {
    let project = Project::smart_meters();
    project.run_job("smart-meters");
    let mut child = project
        .command(&["read", "SENSOR", "--output", "json"])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
}
