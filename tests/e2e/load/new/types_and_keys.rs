//! `tidetable new` and the first run: types of a file that no job file has, and keys that hold no measured value.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, Date32Array, DurationMillisecondArray, Float64Array, Int64Array, ListArray, NullArray,
    RecordBatch, StringArray, StructArray, Time32MillisecondArray, UnionArray,
};
use arrow::buffer::{OffsetBuffer, ScalarBuffer};
use arrow::datatypes::{DataType, Field, UnionFields};
use serde_json::Value;

use super::readings::{answer, minutes, notes, parquet, proposed, rows};
use crate::harness::Project;

#[test]
fn times_of_day_durations_lists_and_unions_are_read() {
    let project = Project::empty();
    let clock = (0..60).map(|at| at * 60_000 + 250);
    let items: ArrayRef = Arc::new(Int64Array::from_iter_values(0..120));
    let item = Arc::new(Field::new("item", DataType::Int64, true));
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("date", Arc::new(Date32Array::from(vec![18_718; 60]))),
        ("time", Arc::new(Time32MillisecondArray::from_iter_values(clock))),
        ("lag", Arc::new(DurationMillisecondArray::from_iter_values(0..60))),
        ("pair", Arc::new(ListArray::new(item, OffsetBuffer::from_lengths([2; 60]), items, None))),
    ];
    parquet(&project, "a.parquet", columns);
    let (said, _) = proposed(&project, "a", "a.parquet", &[]);
    let found = answer(&project, "SELECT max(ts) AS a, sum(lag) AS b, max(pair) AS c FROM A");
    assert_eq!(found, "2021-04-01T00:59:00.250Z 1770 [98,99]");
    let told = notes(&said);
    assert!(told.contains("lag: duration in milliseconds, read as the number of milliseconds."), "{told}");
    assert!(told.contains("pair: list of int64, read as text in JSON."), "{told}");

    // Of a union: `type_ids` say which alternative a row has.
    let fields = UnionFields::try_new(
        [0, 1, 2],
        [
            Field::new("null", DataType::Null, true),
            Field::new("long", DataType::Int64, false),
            Field::new("double", DataType::Float64, false),
        ],
    )
    .unwrap();
    let children: Vec<ArrayRef> = vec![
        Arc::new(NullArray::new(60)),
        Arc::new(Int64Array::from_iter_values(0..60)),
        Arc::new(Float64Array::from_iter_values((0..60).map(|at| f64::from(at) + 0.5))),
    ];
    let kinds: ScalarBuffer<i8> = (0..60).map(|at| (at % 3) as i8).collect();
    let union: ArrayRef = Arc::new(UnionArray::try_new(fields, kinds, None, children).unwrap());
    let batch = RecordBatch::try_from_iter_with_nullable([("ts", minutes(60, 1), true), ("v", union, true)]).unwrap();
    let mut writer = arrow::ipc::writer::FileWriter::try_new(Vec::new(), &batch.schema()).unwrap();
    writer.write(&batch).unwrap();
    project.write("b.arrow", writer.into_inner().unwrap());
    let (said, _) = proposed(&project, "b", "b.arrow", &[]);
    assert!(notes(&said).contains("v: union of null, int64, float64, read as float64."), "{said}");
    assert_eq!(answer(&project, "SELECT count(v) AS a, sum(v) AS b FROM B"), "40 1210.0");
}

#[test]
fn nulls_of_an_entity_have_a_name_in_the_key() {
    let project = Project::empty();
    let station = |at: usize| if [9, 31, 62].contains(&at) { "" } else { ["A", "B", "C"][at % 3] };
    let row = |at: usize| format!("2021-04-01T00:{:02}:00Z,{},{}", at / 3, station(at), at * 37 % 90);
    project.write("a.csv", rows("time,station,temp", 90, row));
    let (said, _) = proposed(&project, "a", "a.csv", &[]);
    assert_eq!(said["row_key"], "{station_key}#{time:%Y%m%d}");
    let told = notes(&said);
    assert!(told.contains("station has no value in 3 of 90 rows: the key calls it 'none' there"), "{told}");
    let found = "SELECT count(*) AS a, sum(temp) AS b, count(*) FILTER (WHERE station_key = 'none') AS c FROM A";
    assert_eq!(answer(&project, found), "90 4005 3");

    // A folder whose name is null.
    let csv = |first: usize| rows("ts,v", 40, |at| format!("2021-04-01T00:{at:02}:00Z,{}", first + at * 37 % 90));
    for (place, first) in [("A", 0), ("B", 100), ("__HIVE_DEFAULT_PARTITION__", 200)] {
        project.write(&format!("lake/station={place}/p.csv"), csv(first));
    }
    let (said, _) = proposed(&project, "b", "lake", &[]);
    assert_eq!(said["row_key"], "{station_key}#{ts:%Y%m%d}");
    assert_eq!(answer(&project, "SELECT count(*) AS a, count(DISTINCT station_key) AS b FROM B"), "120 3");
}

#[test]
fn a_measure_is_of_the_key_only_where_nothing_else_tells_rows_apart() {
    let project = Project::empty();
    let row = |at: usize| format!("2021-04-01T00:{:02}:00Z,{}.{},{}", at / 3, 10 + at, at * 37 % 10, at * 11 % 50);
    project.write("a.csv", rows("time,temp,hum", 90, row));
    let (said, _) = proposed(&project, "a", "a.csv", &[]);
    assert_eq!(answer(&project, "SELECT count(*) AS n FROM A"), "90", "{said}");
    project.write(
        "c.csv",
        rows("time,temp,sensor", 90, |at| format!("{},{}", row(at).rsplit_once(',').unwrap().0, at % 3)),
    );
    assert_eq!(proposed(&project, "c", "c.csv", &[]).0["row_key"], "{sensor:010}#{time:%Y%m%d}");
    // The numbers of channels, all of which a time has.
    let row = |at: usize| format!("2021-04-01T00:{:02}:00Z,{},{}.5", at / 3, at % 3, at * 37 % 90);
    project.write("b.csv", rows("time,axis,v", 90, row));
    assert_eq!(proposed(&project, "b", "b.csv", &[]).0["row_key"], "{time:ms}#{axis:010}");
}

#[test]
fn points_of_metrics_have_all_labels_in_the_key() {
    let project = Project::empty();
    let attribute = |key: &str, value: &str| format!("{{\"key\":\"{key}\",\"value\":{{\"stringValue\":\"{value}\"}}}}");
    let batch = |at: usize| {
        let time = 1_600_000_000 + at * 60;
        let point = |attributes: String, value: usize| {
            format!("{{\"attributes\":[{attributes}],\"timeUnixNano\":\"{time}000000000\",\"asInt\":\"{value}\"}}")
        };
        // Two labels, one of which some points lack, and equal values.
        let points = [
            point(attribute("cpu", "0"), 7),
            point(attribute("cpu", "1"), 7),
            point(format!("{},{}", attribute("cpu", "0"), attribute("state", "idle")), at),
        ];
        format!(
            "{{\"resourceMetrics\":[{{\"resource\":{{\"attributes\":[{}]}},\"scopeMetrics\":[{{\"scope\":{{\"name\":\"h\"}},\
             \"metrics\":[{{\"name\":\"load\",\"unit\":\"1\",\"gauge\":{{\"dataPoints\":[{}]}}}}]}}]}}]}}\n",
            attribute("host.name", "web"),
            points.join(",")
        )
    };
    project.write("otel.json", (0..20).map(batch).collect::<String>());
    let (said, _) = proposed(&project, "otel", "otel.json", &[]);
    assert_eq!(said["row_key"], "{series}#{timeUnixNano:ms}");
    assert_eq!(answer(&project, "SELECT count(*) AS a, count(DISTINCT series) AS b FROM OTEL"), "60 3");

    let export = |labels: &str, first: usize| {
        let times: Vec<String> = (0..20).map(|at| format!("{}000", 1_600_000_000 + at * 60)).collect();
        let values: Vec<String> = (first..first + 20).map(|at| at.to_string()).collect();
        format!(
            "{{\"metric\":{{\"__name__\":\"up\"{labels}}},\"values\":[{}],\"timestamps\":[{}]}}\n",
            values.join(","),
            times.join(",")
        )
    };
    project.write("vm.jsonl", export(",\"job\":\"x\"", 0) + &export("", 5) + &export(",\"job\":\"x\",\"dc\":\"y\"", 9));
    let (said, _) = proposed(&project, "vm", "vm.jsonl", &[]);
    assert!(said["row_key"].as_str().unwrap().starts_with("{series}#{"), "{said}");
    assert_eq!(answer(&project, "SELECT count(*) AS a, count(DISTINCT series) AS b FROM VM"), "60 3");
}

#[test]
fn identifiers_in_hexadecimal_digits_are_text() {
    let project = Project::empty();
    for (name, ids) in [("a", ["00E1", "00E2", "00E1", "00E2"]), ("b", ["1105", "1E05", "0E12", "12E4"])] {
        let row = |at: usize| format!("2021-04-01T00:{at:02}:00Z,{},{at}", ids[at % 4]);
        project.write(&format!("{name}.csv"), rows("ts,dev,v", 40, row));
        proposed(&project, name, &format!("{name}.csv"), &[]);
        let found = answer(&project, &format!("SELECT min(dev) AS a, max(dev) AS b FROM {}", name.to_uppercase()));
        assert_eq!(found, if name == "a" { "00E1 00E2" } else { "0E12 1E05" });
    }
}

#[test]
fn folders_of_parts_of_a_time_make_an_event_time() {
    let project = Project::empty();
    for hour in 0..2 {
        let text = rows("minute,station,v", 60, |at| format!("{},{},{at}", at / 2 * 2, ["A", "B"][at % 2]));
        project.write(&format!("lake/year=2021/month=04/day=01/hour={hour:02}/p.csv"), text);
    }
    let (said, _) = proposed(&project, "a", "lake", &[]);
    assert_eq!(said["row_key"], "{station}#{ts:%Y%m%d}");
    assert_eq!(answer(&project, "SELECT count(*) AS a, max(ts) AS b FROM A"), "120 2021-04-01T01:58:00Z");
}

#[test]
fn columns_without_values_are_named() {
    let project = Project::empty();
    project.write("a.csv", rows("ts,gust,v", 40, |at| format!("2021-04-01T00:{at:02}:00Z,,{at}")));
    let (said, _) = proposed(&project, "a", "a.csv", &[]);
    assert!(notes(&said).contains("gust has no value here, and is read as text: declare its type."), "{said}");

    let values: ArrayRef = Arc::new(Float64Array::from_iter_values((0..40).map(f64::from)));
    let file = |gust: ArrayRef| vec![("ts", minutes(40, 1)), ("gust", gust), ("v", Arc::clone(&values))];
    parquet(&project, "in/1.parquet", file(Arc::new(NullArray::new(40))));
    let said = project.json(&["new", "b", "--from", "in/*.parquet"]).remove(0);
    assert!(notes(&said).contains("gust (it has no value yet: declare its type)"), "{said}");
    project.run_job("b");
    parquet(&project, "in/2.parquet", file(Arc::clone(&values)));
    let told = project.messages(&["run", "b"]);
    assert!(told.contains("gust"), "{told}");
}

#[test]
fn lists_of_one_time_are_events() {
    let project = Project::empty();
    let list = |values: ArrayRef| -> ArrayRef {
        let item = Arc::new(Field::new("item", values.data_type().clone(), true));
        Arc::new(ListArray::new(item, OffsetBuffer::from_lengths([20, 20]), values, None))
    };
    let values: ArrayRef = Arc::new(Float64Array::from_iter_values((0..40).map(f64::from)));
    let (times, values) = (list(minutes(40, 1)), list(values));
    let fields =
        vec![Field::new("ts", times.data_type().clone(), true), Field::new("v", values.data_type().clone(), true)];
    let batch: ArrayRef = Arc::new(StructArray::new(fields.into(), vec![times, values], None));
    parquet(&project, "in/a.parquet", vec![("host", Arc::new(StringArray::from(vec!["a", "b"]))), ("batch", batch)]);
    let (_, _) = proposed(&project, "a", "in", &[]);
    assert!(project.read("jobs/a/job.toml").contains("each = [\"batch.ts\", \"batch.v\"]"));
    assert_eq!(project.sql("SELECT count(*) AS n FROM A")[0]["n"], 40);
    let checked = project.run(&["check", "a"]);
    assert!(!(checked.stdout + &checked.stderr).contains("changes nothing"));
}

#[test]
fn a_repeated_hour_is_named() {
    let project = Project::empty();
    // Half hours of the night when Paris leaves summer time, as its clocks show them.
    let shown = |at: usize| if at >= 6 { at - 2 } else { at };
    let row = |at: usize| format!("2021-10-31,{:02}:{:02},{at}", shown(at) / 2, shown(at) % 2 * 30);
    project.write("a.csv", rows("Date,Time,kwh", 40, row));
    let said: Value = project.json(&["new", "a", "--from", "a.csv", "--timezone", "Europe/Paris"]).remove(0);
    assert_eq!(said["row_key"], "{ts:ms}");
    let told = notes(&said);
    assert!(told.contains("4 local times occur twice, because the clocks go back (first: 2021-10-31 02:00)"), "{told}");
    assert!(told.contains("2 rows have the key and time of an earlier row"), "{told}");
    assert!(told.contains("times with an offset or in UTC keep both"), "{told}");
    // Clocks that stay at one offset have no such hour.
    let said = project.json(&["new", "b", "--from", "a.csv", "--timezone", "+01:00"]).remove(0);
    assert!(!notes(&said).contains("clocks go back"), "{said}");
}
