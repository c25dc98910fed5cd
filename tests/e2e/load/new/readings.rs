//! `tidetable new` and the first run on files as loggers, meters and spreadsheets write them.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, BinaryArray, Float32Array, Float64Array, Int64Array, RecordBatch, StringArray, TimestampMicrosecondArray,
};
use parquet::arrow::ArrowWriter;
use serde_json::{Value, json};

use crate::harness::Project;

/// A file of a header and `count` rows.
pub(super) fn rows(header: &str, count: usize, row: impl Fn(usize) -> String) -> String {
    (0..count).fold(format!("{header}\n"), |text, at| text + &row(at) + "\n")
}

/// Proposes a job for the file, with more arguments, and runs it. Returns what `new` prints, and the record of the run.
pub(super) fn proposed(project: &Project, job: &str, file: &str, more: &[&str]) -> (Value, Value) {
    let arguments = ["new", job, "--from", file].iter().chain(more).copied().collect::<Vec<_>>();
    let said = project.json(&arguments).remove(0);
    (said, project.run_job(job))
}

/// One row of SQL as text: its values, separated by blanks.
pub(super) fn answer(project: &Project, query: &str) -> String {
    let row = project.sql(query).remove(0);
    let texts = row.as_object().unwrap().values().map(|value| value.as_str().map_or(value.to_string(), str::to_owned));
    texts.collect::<Vec<_>>().join(" ")
}

pub(super) fn notes(said: &Value) -> String {
    said["notes"].as_array().unwrap().iter().filter_map(Value::as_str).collect::<Vec<_>>().join("\n")
}

/// Proposes a job for a file and runs it. Returns what `new` prints, and the count, first and last of the column `time`.
pub fn times(project: &Project, job: &str, time: &str, text: String) -> (Value, String) {
    let file = format!("{job}.csv");
    project.write(&file, text);
    let (said, _) = proposed(project, job, &file, &[]);
    let table = said["table"].as_str().unwrap();
    let found = answer(project, &format!("SELECT count(*) AS a, min({time}) AS b, max({time}) AS c FROM {table}"));
    (said, found)
}

#[test]
fn times_as_they_are_written() {
    let project = Project::empty();
    let hour_24 = rows("fecha;hora;kwh", 72, |at| format!("2022/07/0{};{:02}:00;0,{at}", 1 + at / 24, 1 + at % 24));
    let ticks = rows("date,time,symbol,price", 400, |at| {
        let second = 34_200 + at * 7;
        let clock = second / 3600 * 10_000 + second % 3600 / 60 * 100 + second % 60;
        format!("20210104,{clock},{},{}.25", ["AAA", "BBB"][at % 2], 100 + at % 9)
    });
    let half = rows("date,clock,host,v", 48, |at| {
        format!("2021-04-01,{}:{:02} {},h,{at}", (at / 2 + 11) % 12 + 1, at % 2 * 30, ["AM", "PM"][at / 24])
    });
    let cases: &[(&str, String, &[&str], &str)] = &[
        ("hours", hour_24, &[], "72 2022-07-01T01:00:00Z 2022-07-04T00:00:00Z"),
        ("ticks", ticks, &[], "400 2021-01-04T09:30:00Z 2021-01-04T10:16:33Z"),
        ("half", half, &[], "48 2021-04-01T00:00:00Z 2021-04-01T23:30:00Z"),
        (
            "java",
            rows("ts,host,v", 300, |at| {
                let second = at * 20 + at / 2;
                let minute = second / 60;
                let clock = format!("{:02}:{:02}", minute / 60, minute % 60);
                let rest = match (second % 60, at % 2) {
                    (0, 0) => String::new(),
                    (second, 0) => format!(":{second:02}"),
                    (second, _) => format!(":{second:02}.5"),
                };
                format!("2021-04-01T{clock}{rest},h{},{at}", at % 2)
            }),
            &[],
            "300 2021-04-01T00:00:00Z 2021-04-01T01:42:09.500Z",
        ),
        (
            "comma",
            rows("time;host;ms", 120, |at| {
                format!("2021-04-01 00:{:02}:{:02},{:03};h{};{at}", at / 60, at % 60, at * 7 % 1000, at % 2)
            }),
            &[],
            "120 2021-04-01T00:00:00Z 2021-04-01T00:01:59.833Z",
        ),
        (
            "names",
            rows("ts,host,v", 120, |at| {
                format!("2021-10-31 02:{:02} {},h1,{at}", at % 60, if at < 60 { "CEST" } else { "CET" })
            }),
            &[],
            "120 2021-10-31T00:00:00Z 2021-10-31T01:59:00Z",
        ),
        (
            "offsets",
            rows("ts,meter,kwh", 96, |at| {
                let clock = format!("{:02}:{:02}:00", at / 4, at % 4 * 15);
                let time =
                    if at % 2 == 0 { format!("2021-07-01T{clock}+02:00") } else { format!("2021-07-01 {clock}") };
                format!("{time},M{},{at}", at % 3)
            }),
            &["--timezone", "Europe/Paris"],
            "96 2021-06-30T22:00:00Z 2021-07-01T21:45:00Z",
        ),
        (
            "digits",
            rows("time,plant,mw", 192, |at| {
                format!("21040{}{:02}{:02},P{},{at}", 1 + at / 192, at / 2 / 4 % 24, at / 2 % 4 * 15, at % 2)
            }),
            &[],
            "192 2021-04-01T00:00:00Z 2021-04-01T23:45:00Z",
        ),
        (
            "fractions",
            rows("timestamp,host,v", 200, |at| {
                format!("{}.{:06},h{},{at}", 1_551_129_661 + at * 2, at % 7 * 1000, at % 2)
            }),
            &[],
            "200 2019-02-25T21:21:01Z 2019-02-25T21:27:39.003Z",
        ),
    ];
    for (job, text, more, wanted) in cases {
        project.write(&format!("{job}.csv"), text);
        let (said, _) = proposed(&project, job, &format!("{job}.csv"), more);
        let table = said["table"].as_str().unwrap();
        let time = match *job {
            "half" | "hours" | "ticks" => "ts",
            "comma" | "digits" => "\"time\"",
            "fractions" => "\"timestamp\"",
            _ => "ts",
        };
        let query = format!("SELECT count(*) AS a, min({time}) AS b, max({time}) AS c FROM {table}");
        assert_eq!(answer(&project, &query), *wanted, "{job}: {}", project.read(&format!("jobs/{job}/job.toml")));
    }
}

#[test]
fn numbers_as_they_are_written() {
    let project = Project::empty();
    let time = |at: usize| format!("2021-04-01 {:02}:{:02}", at / 4, at % 4 * 15);
    let words = ["No Data", "Bad Input", "I/O Timeout", "Pt Created", "#N/A", "---"];
    let cases = [
        (
            "english",
            rows("time,site,v", 96, |at| {
                let value = 900 + at * 25;
                let whole =
                    if value < 1000 { value.to_string() } else { format!("{},{:03}", value / 1000, value % 1000) };
                format!("{},S{},\"{whole}.{}\"", time(at), at % 2, at % 10)
            }),
            "96 900 3275.5",
        ),
        (
            "german",
            rows("time;site;v", 96, |at| {
                let value = 900 + at * 25;
                let whole =
                    if value < 1000 { value.to_string() } else { format!("{}.{:03}", value / 1000, value % 1000) };
                format!("{};S{};{whole},{}", time(at), at % 2, at % 10)
            }),
            "96 900 3275.5",
        ),
        (
            "minus",
            rows("time,site,v", 96, |at| {
                let sign = if at % 40 < 12 { "\u{2212}" } else { "" };
                format!(
                    "{},S{},{sign}{}.{}",
                    time(at),
                    at % 2,
                    (at % 40).abs_diff(12) / 2,
                    (at % 40).abs_diff(12) % 2 * 5
                )
            }),
            "96 -6 13.5",
        ),
        (
            "quoted",
            rows("time,site,v", 96, |at| format!("{},S{},\"{},{:02}\"", time(at), at % 2, at % 13, at)),
            "96 0 12.9",
        ),
        (
            "words",
            rows("time,tag,v", 600, |at| {
                let value = if at % 20 == 11 { words[at / 20 % 6].to_owned() } else { format!("{}.25", 100 + at % 9) };
                format!("2021-04-01 {:02}:{:02},F{},{value}", at / 60, at % 60, at % 3)
            }),
            "570 100.25 108.25",
        ),
        (
            "blanks",
            rows("time,host,v", 96, |at| {
                format!("{}\u{A0},h{},{at}.5{}", time(at), at % 2, if at % 2 == 0 { "" } else { "\u{A0}" })
            }),
            "96 0.5 95.5",
        ),
    ];
    for (job, text, wanted) in cases {
        project.write(&format!("{job}.csv"), text);
        let (said, _) = proposed(&project, job, &format!("{job}.csv"), &[]);
        let table = said["table"].as_str().unwrap();
        let query =
            format!("SELECT count(v) AS a, cast(min(v) AS double) AS b, cast(max(v) AS double) AS c FROM {table}");
        let answer = answer(&project, &query).replace(".0", "");
        assert_eq!(answer, wanted, "{job}: {}", project.read(&format!("jobs/{job}/job.toml")));
        if job == "words" {
            assert!(notes(&said).contains("v: 570 of 600 values are numbers, 30 are "), "{said}");
        }
    }
}

#[test]
fn keys_of_any_name() {
    let project = Project::empty();
    let clock = |at: usize| format!("2021-04-01 {:02}:{:02}:00", at / 60, at % 60);
    for (job, time, entity) in [
        ("id", "Date (UTC)", "Station (ID)"),
        ("hash", "ts", "Meter #"),
        ("colon", "ts", "device:id"),
        ("blank", "ts", " host"),
    ] {
        let text = rows(&format!("{time},{entity},v"), 600, |at| format!("{},S{},{at}", clock(at / 3), at % 3));
        project.write(&format!("{job}.csv"), text);
        let (said, record) = proposed(&project, job, &format!("{job}.csv"), &[]);
        let table = said["table"].as_str().unwrap();
        assert_eq!(record["rows_rejected"], 0, "{said}");
        assert_eq!(answer(&project, &format!("SELECT count(*) AS n FROM {table}")), "600", "{said}");
        let series = format!("SELECT count(DISTINCT substr(arrow_cast(_key, 'Utf8'), 1, 2)) AS n FROM rows.{table}");
        assert_eq!(answer(&project, &series), "3", "{said}");
        assert!(!notes(&said).contains("rows have the key"), "{said}");
    }
    let text = rows("ts,station,v", 3000, |at| {
        let station = if at == 1234 { String::new() } else { format!("S{}", at % 3) };
        format!("2021-04-01T{:02}:{:02}:00Z,{station},{at}", at / 180, at / 3 % 60)
    });
    project.write("empty.csv", text);
    let (said, record) = proposed(&project, "empty", "empty.csv", &[]);
    assert!(said["row_key"].as_str().unwrap().starts_with("{station}#"), "{said}");
    assert_eq!(record["rows_rejected"], 1);
    assert_eq!(project.rejected(&record)[0]["line"], 1236);
    assert!(notes(&said).contains("station is of the key: 1 row is without a value"), "{said}");
    assert_eq!(answer(&project, "SELECT count(*) AS n FROM EMPTY"), "2999");
    // Rows that differ in a measured value alone are kept.
    project.write("twice.csv", rows("ts,v", 40, |at| format!("2021-04-01 00:{:02},{at}.5", at / 2)));
    let (said, _) = proposed(&project, "twice", "twice.csv", &[]);
    assert_eq!(answer(&project, "SELECT count(*) AS n FROM TWICE"), "40", "{said}");
}

#[test]
fn what_two_readings_fit_is_told() {
    let project = Project::empty();
    let months = rows("date,site,mwh", 24, |at| format!("01/{:02}/2020,S{},{at}", at / 2 + 1, at % 2));
    project.write("months.csv", months);
    let (said, _) = proposed(&project, "months", "months.csv", &[]);
    assert!(notes(&said).contains("'01/01/2020', fit both %d/%m/%Y and %m/%d/%Y"), "{said}");
    let range = "SELECT count(*) AS a, min(date) AS b, max(date) AS c FROM MONTHS";
    assert_eq!(answer(&project, range), "24 2020-01-01T00:00:00Z 2020-12-01T00:00:00Z");
    let codes = rows("ts,device,fw_version,msisdn", 120, |at| {
        let version = ["1.9", "1.10", "1.1", "2.0"][at % 4];
        format!("2021-04-01 {:02}:{:02},D{},{version},+49170123450{}", at / 60, at % 60, at % 3, at % 3)
    });
    project.write("codes.csv", codes);
    let (said, _) = proposed(&project, "codes", "codes.csv", &[]);
    assert!(notes(&said).contains("fw_version: '1.1' and '1.10' are one number"), "{said}");
    let versions = "SELECT count(DISTINCT fw_version) AS a, min(msisdn) AS b FROM CODES";
    assert_eq!(answer(&project, versions), "4 +491701234500");
    let counters = rows("time,host,uptime_ms", 150, |at| {
        format!("2021-04-01T00:{:02}:{:02}Z,h{},{}", at / 60, at % 60, at % 2, 800_000_000 + at * 1000)
    });
    project.write("counters.csv", counters);
    proposed(&project, "counters", "counters.csv", &[]);
    assert_eq!(answer(&project, "SELECT max(uptime_ms) AS a FROM COUNTERS"), "800149000");
}

/// Writes a Parquet file.
pub(super) fn parquet(project: &Project, name: &str, columns: Vec<(&str, ArrayRef)>) {
    let batch =
        RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, array)| (name, array, true))).unwrap();
    let mut bytes = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut bytes, batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    project.write(name, bytes);
}

pub(super) fn minutes(count: i64, per: i64) -> ArrayRef {
    let start = 1_617_235_200_000_000;
    Arc::new(
        TimestampMicrosecondArray::from_iter_values((0..count).map(|at| start + at / per * 60_000_000))
            .with_timezone("UTC"),
    )
}

#[test]
fn parquet_as_programs_write_it() {
    let project = Project::empty();
    let device: ArrayRef = Arc::new(StringArray::from_iter_values((0..240).map(|at| format!("D{}", at % 2))));
    let temp = (0..240).map(|at| if at % 7 == 3 { f64::NAN } else { 20.0 + f64::from(at) / 10.0 });
    let hum = (0..240).map(|at| if at % 40 == 8 { f32::NAN } else { 50.5 });
    let columns = vec![
        ("ts", minutes(240, 2)),
        ("device", device),
        ("temp", Arc::new(Float64Array::from_iter_values(temp)) as ArrayRef),
        ("hum", Arc::new(Float32Array::from_iter_values(hum))),
    ];
    parquet(&project, "nan.parquet", columns);
    let (_, record) = proposed(&project, "nan", "nan.parquet", &[]);
    assert_eq!(answer(&project, "SELECT count(*) AS a, count(temp) AS b, count(hum) AS c FROM NAN"), "240 206 234");
    assert_eq!(record["loads"][0]["nan_values"], 40);
    assert!(record["notes"].to_string().contains("40 values are NaN and were taken as null"), "{record}");

    let job = project
        .read("jobs/nan/job.toml")
        .replace("max_rejected = \"0.1%\"", "max_rejected = \"50%\"\nnan = \"reject\"");
    project.write("jobs/nan/job.toml", job);
    project.ok(&["run", "nan", "--rebuild"]);
    assert_eq!(answer(&project, "SELECT count(*) AS a FROM NAN"), "200");

    let meter = BinaryArray::from_iter_values((0..200).map(|at| format!("M{}", at % 4).into_bytes()));
    let kwh = Int64Array::from_iter_values(0..200);
    parquet(
        &project,
        "binary.parquet",
        vec![("ts", minutes(200, 4)), ("meter", Arc::new(meter)), ("kwh", Arc::new(kwh))],
    );
    let (said, _) = proposed(&project, "binary", "binary.parquet", &[]);
    assert_eq!(answer(&project, "SELECT count(*) AS a, count(DISTINCT meter) AS b FROM BINARY"), "200 4", "{said}");

    let epochs = Float64Array::from_iter_values((0..200).map(|at| 1_551_129_661.25 + f64::from(at) * 2.0));
    let v = Int64Array::from_iter_values(0..200);
    parquet(&project, "epochs.parquet", vec![("timestamp", Arc::new(epochs)), ("v", Arc::new(v))]);
    proposed(&project, "epochs", "epochs.parquet", &[]);
    let range = "SELECT min(\"timestamp\") AS a, max(\"timestamp\") AS b FROM EPOCHS";
    assert_eq!(answer(&project, range), "2019-02-25T21:21:01.250Z 2019-02-25T21:27:39.250Z");
}

#[test]
fn null_markers_are_numbers_in_every_format() {
    let forms = ["-9999", "-9999.0", "-9999.00", " -9999", "-9999."];
    let text = rows("time,dev,flow", 200, |at| {
        let value = if at % 10 == 4 { forms[at / 10 % 5].to_owned() } else { format!("{}.25", at % 17) };
        format!("2021-04-01T{:02}:{:02}:00Z,d{},{value}", at / 60, at % 60, at % 2)
    });
    let job = |file: &str, more: &str| {
        format!(
            "name = \"h\"\n[sources.r]\nfiles = [\"{file}\"]\ntime = \"time\"\ncsv = {{ null = [\"\", \"-9999\"]{more} }}\n\
             [sources.r.columns]\ntime = \"timestamp\"\ndev = \"text\"\nflow = \"float64\"\n\
             [tables.H]\nrow_key = \"{{dev}}#{{time:ms}}\"\n\
             [tables.H.families.D]\ncolumns = [{{ qualifier = \"flow\", value = \"{{flow}}\" }}]\n"
        )
    };
    let query = "SELECT count(flow) AS a, cast(min(flow) AS double) AS b FROM H";
    let project = Project::new("h", &job("a.csv", ""));
    project.write("a.csv", text);
    project.run_job("h");
    assert_eq!(answer(&project, query), "180 0.25");

    let project = Project::new("h", &job("b.parquet", ", delimiter = \";\""));
    let dev: ArrayRef = Arc::new(StringArray::from_iter_values((0..200).map(|at| format!("d{}", at % 2))));
    let flow = (0..200).map(|at| if at % 10 == 4 { -9999.0 } else { f64::from(at % 17) + 0.25 });
    let flow: ArrayRef = Arc::new(Float64Array::from_iter_values(flow));
    parquet(&project, "b.parquet", vec![("time", minutes(200, 1)), ("dev", dev), ("flow", flow)]);
    let checked = project.json(&["check", "h"]);
    let idle = checked.iter().any(|row| *row == json!({
        "kind": "warning", "name": "sources", "finding": "`csv.delimiter` of source r changes nothing: its files are Parquet"
    }));
    assert!(idle, "{checked:?}");
    project.run_job("h");
    assert_eq!(answer(&project, query), "180 0.25");
}

#[test]
fn later_readings_within_a_minute_all_stay() {
    let project = Project::empty();
    let quarter = |day: usize, at: usize| format!("2024-03-{day:02}T{:02}:{:02}:00Z,m1,{at}.5\n", at / 4, at % 4 * 15);
    let text = (0..96).fold("ts,meter,kw\n".to_owned(), |text, at| text + &quarter(1, at));
    project.write("in/1.csv", &text);
    project.ok(&["new", "j", "--from", "in/1.csv"]);
    project.run_job("j");
    assert!(project.read("jobs/j/job.toml").contains("{ts:%H%M}"));
    // Three readings a minute, two of which the day before ends with.
    project.write(
        "in/1.csv",
        text + "2024-03-02T00:00:00Z,m1,5.1\n2024-03-02T00:00:20Z,m1,5.2\n2024-03-02T00:00:40Z,m1,5.3\n",
    );
    project.run_job("j");
    assert_eq!(answer(&project, "select count(*), count(distinct ts) from J"), "99 99");
}
