//! Arrow IPC, Avro, and Parquet with lists and packed: proposed, loaded, rejected with their place.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, Float64Array, Int64Array, ListArray, RecordBatch, StringArray, StructArray};
use arrow::buffer::OffsetBuffer;
use arrow::datatypes::{DataType, Field, Fields};

use crate::harness::bucket::{BUCKET, InBucket};
use crate::harness::{Project, gz};
use crate::load::new::loads;

const START: i64 = 1_600_000_000;

/// Two hosts, 20 minutes.
fn flat() -> RecordBatch {
    let time: ArrayRef = Arc::new((0..40).map(|at| Some(START + at / 2 * 60)).collect::<Int64Array>());
    let host: ArrayRef = Arc::new((0..40).map(|at| Some(["a", "b"][at % 2])).collect::<StringArray>());
    let load: ArrayRef = Arc::new((0..40).map(|at| Some(f64::from(at) / 4.0)).collect::<Float64Array>());
    RecordBatch::try_from_iter_with_nullable([("time", time, true), ("host", host, true), ("load", load, true)])
        .unwrap()
}

/// The same as lists: a row for each host.
fn lists() -> RecordBatch {
    let fields =
        Fields::from(vec![Field::new("time", DataType::Int64, true), Field::new("load", DataType::Float64, true)]);
    let time: ArrayRef = Arc::new((0..40).map(|at| Some(START + at % 20 * 60)).collect::<Int64Array>());
    let load: ArrayRef = Arc::new((0..40).map(|at| Some(f64::from(at) / 4.0)).collect::<Float64Array>());
    let samples = StructArray::try_new(fields, vec![time, load], None).unwrap();
    let item = Arc::new(Field::new("item", samples.data_type().clone(), true));
    let samples = ListArray::try_new(item, OffsetBuffer::from_lengths([20, 20]), Arc::new(samples), None).unwrap();
    let host: ArrayRef = Arc::new(StringArray::from(vec!["a", "b"]));
    RecordBatch::try_from_iter_with_nullable([("host", host, true), ("samples", Arc::new(samples) as ArrayRef, true)])
        .unwrap()
}

fn parquet(batch: &RecordBatch) -> Vec<u8> {
    let mut writer = parquet::arrow::ArrowWriter::try_new(Vec::new(), batch.schema(), None).unwrap();
    writer.write(batch).unwrap();
    writer.into_inner().unwrap()
}

fn ipc(batch: &RecordBatch) -> Vec<u8> {
    let mut writer = arrow::ipc::writer::FileWriter::try_new(Vec::new(), &batch.schema()).unwrap();
    writer.write(batch).unwrap();
    writer.into_inner().unwrap()
}

/// An Avro file with one block of (host, time, load), written by hand.
fn avro(rows: &[(&str, i64, f64)]) -> Vec<u8> {
    fn number(into: &mut Vec<u8>, value: i64) {
        let mut rest = ((value << 1) ^ (value >> 63)).cast_unsigned();
        while rest >= 0x80 {
            into.push(rest as u8 | 0x80);
            rest >>= 7;
        }
        into.push(rest as u8);
    }
    fn text(into: &mut Vec<u8>, value: &str) {
        number(into, value.len() as i64);
        into.extend_from_slice(value.as_bytes());
    }
    let schema = r#"{"type":"record","name":"reading","fields":[{"name":"host","type":"string"},
        {"name":"at","type":{"type":"record","name":"at","fields":[{"name":"time","type":"long"}]}},{"name":"load","type":["null","double"]}]}"#;
    let mut file = b"Obj\x01".to_vec();
    number(&mut file, 1);
    text(&mut file, "avro.schema");
    text(&mut file, schema);
    number(&mut file, 0);
    file.extend_from_slice(&[9; 16]);
    let mut block = Vec::new();
    for (host, time, load) in rows {
        text(&mut block, host);
        number(&mut block, *time);
        number(&mut block, 1);
        block.extend_from_slice(&load.to_le_bytes());
    }
    number(&mut file, rows.len() as i64);
    number(&mut file, block.len() as i64);
    file.append(&mut block);
    file.extend_from_slice(&[9; 16]);
    file
}

#[test]
fn proposed_jobs_run_at_once() {
    let project = Project::empty();
    let rows: Vec<(&str, i64, f64)> =
        (0..40).map(|at| (["a", "b"][at % 2], START + at as i64 / 2 * 60, at as f64 / 4.0)).collect();
    for (job, file, bytes) in [
        ("ipc", "a.arrow", ipc(&flat())),
        ("packed-ipc", "b.feather.gz", gz(ipc(&flat()))),
        ("packed-parquet", "c.parquet.gz", gz(parquet(&flat()))),
        ("avro", "d.avro", avro(&rows)),
        ("packed-avro", "e.avro.gz", gz(avro(&rows))),
        ("lists-parquet", "f.parquet", parquet(&lists())),
        ("lists-ipc", "g.arrow", ipc(&lists())),
    ] {
        project.write(file, bytes);
        loads(&project, job, file, 40);
        let text = project.read(&format!("jobs/{job}/job.toml"));
        assert_eq!(text.contains("each = [\"samples\"]"), job.starts_with("lists"), "{text}");
    }
}

const JOB: &str = r#"
name = "j"
[sources.s]
files = ["in/*.avro"]
time = "time"
max_rejected = "60%"
columns = { host = "text", "at.time" = { format = "s" }, load = "float64" }
[sources.s.derive]
time = "\"at.time\""
[tables.T]
row_key = "{host}#{time:s}"
[tables.T.families.F]
columns = [{ qualifier = "v", value = "{load}" }]
"#;

#[test]
fn records_of_avro_are_rejected_by_number_and_blocks_stop_the_run() {
    let project = Project::new("j", JOB);
    project.write("in/a.avro", avro(&[("a", START, 1.5), ("b", START, f64::INFINITY), ("c", START, f64::NAN)]));
    let record = project.run_job("j");
    let rejected = project.rejected(&record);
    assert_eq!((rejected.len(), rejected[0]["line"].as_u64()), (1, Some(2)), "{rejected:?}");
    assert_eq!(rejected[0]["column"], "load");
    assert_eq!(project.csv("select host, load from T order by host"), "host,load\na,1.5\n");

    let mut damaged = avro(&[("d", START, 1.0)]);
    let last = damaged.len() - 1;
    damaged[last] ^= 1;
    project.write("in/b.avro", &damaged);
    let said = project.fails(1, &["run", "j"]);
    assert!(said.contains("in/b.avro, block 1 at byte") && said.contains("(record 1 and those after it)"), "{said}");

    // A file that is still being written does not keep the others from being loaded.
    project.write("in/b.avro", &damaged[..last - 20]);
    project.write("in/c.avro", avro(&[("e", START, 2.5)]));
    let said = project.messages(&["run", "j"]);
    assert!(said.contains("in/b.avro"), "{said}");
    assert_eq!(project.csv("select host, load from T order by host"), "host,load\na,1.5\ne,2.5\n");
}

/// A job over a bucket, whose events have a host, and their time and value under these names.
fn job_of_bucket(endpoint: &str, each: &str, time: &str, load: &str) -> String {
    format!(
        r#"
name = "j"
[sources.s]
files = ["s3://{BUCKET}/in/*"]
each = [{each}]
time = "ts"
columns = {{ host = "text", "{time}" = {{ format = "s" }}, "{load}" = "float64" }}
derive = {{ ts = "\"{time}\"", value = "\"{load}\"" }}
[sources.s.storage]
endpoint = "{endpoint}"
allow_http = true
region = "us-east-1"
access_key_id = "AKIATESTONLY"
secret_access_key = {{ env = "T_KEY" }}
[tables.T]
row_key = "{{host}}#{{ts:s}}"
[tables.T.families.F]
columns = [{{ qualifier = "v", value = "{{value}}" }}]
"#
    )
}

#[test]
fn objects_of_a_bucket_are_read_in_every_format() {
    let rows: Vec<(&str, i64, f64)> =
        (0..40).map(|at| (["a", "b"][at % 2], START + at as i64 / 2 * 60, at as f64 / 4.0)).collect();
    let line =
        |(host, time, load): &(&str, i64, f64)| format!("{{\"host\":\"{host}\",\"time\":{time},\"load\":{load}}}\n");
    let json: String = rows.iter().map(line).collect();
    for (file, bytes, each, time, load) in [
        ("a.jsonl", json.clone().into_bytes(), "", "time", "load"),
        ("a.json.gz", gz(json.as_bytes()), "", "time", "load"),
        ("a.avro", avro(&rows), "", "at.time", "load"),
        ("a.arrow", ipc(&flat()), "", "time", "load"),
        ("a.parquet", parquet(&lists()), "\"samples\"", "samples.time", "samples.load"),
        ("b.arrow", ipc(&lists()), "\"samples\"", "samples.time", "samples.load"),
    ] {
        let place = InBucket::new(Project::new("j", ""));
        place.project.write("jobs/j/job.toml", job_of_bucket(&place.server.endpoint(), each, time, load));
        assert!(place.server.put_object(BUCKET, &format!("in/{file}"), bytes));
        place.ok(&["run", "j"]);
        let found = &place.sql("select count(*) as n, sum(value) as v from T")[0];
        assert_eq!((found["n"].as_u64(), found["v"].as_f64()), (Some(40), Some(195.0)), "{file}");
    }
}

#[test]
fn repaired_records_of_avro_are_loaded_by_replay() {
    let project = Project::new("j", JOB);
    project.write("in/a.avro", avro(&[("a", START, 1.5), ("b", START, f64::INFINITY)]));
    project.run_job("j");
    project.write("in/a.avro", avro(&[("a", START, 1.5), ("b", START, 2.5)]));
    project.ok(&["replay", "last"]);
    assert_eq!(project.csv("select host, load from T order by host"), "host,load\na,1.5\nb,2.5\n");
    assert_eq!(project.ok(&["rejects", "j", "--output", "csv"]), "");
}
