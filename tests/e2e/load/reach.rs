//! What patterns, folders and lists of files reach, and what is said of the rest.

mod folders;
mod foreign;
mod names;
mod proposals;
mod rejects;

use std::fs::File;
use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, RecordBatch, StringArray};
use parquet::arrow::ArrowWriter;
use serde_json::Value;

use crate::harness::Project;

/// A job of readings `ts`, `host`, `v` in files of any kind.
pub fn job(files: &str, more: &str) -> String {
    format!(
        r#"
name = "j"
[sources.r]
files = [{files}]
time = "ts"
{more}
[sources.r.columns]
ts = "timestamp"
host = "text"
v = "float64"
[tables.T]
row_key = "{{host}}#{{ts:ms}}"
[tables.T.families.D]
columns = [{{ qualifier = "v", value = "{{v}}" }}]
"#
    )
}

/// Rows of one host, a minute apart from `first` on.
pub fn rows(first: usize, count: usize) -> String {
    let row = |at: usize| format!("2021-04-01T{:02}:{:02}:00Z,h,{at}.5\n", at / 60, at % 60);
    std::iter::once("ts,host,v\n".to_owned()).chain((first..first + count).map(row)).collect()
}

/// The same rows as Parquet.
pub fn put_parquet(project: &Project, path: &str, first: usize, count: usize) {
    let range = || first..first + count;
    let times = range().map(|at| format!("2021-04-01T{:02}:{:02}:00Z", at / 60, at % 60));
    let times: ArrayRef = Arc::new(StringArray::from_iter_values(times));
    let hosts: ArrayRef = Arc::new(StringArray::from_iter_values(range().map(|_| "h")));
    let values: ArrayRef = Arc::new(Float64Array::from_iter_values(range().map(|at| at as f64 + 0.5)));
    let batch = RecordBatch::try_from_iter([("ts", times), ("host", hosts), ("v", values)]).unwrap();
    project.write(path, "");
    let mut writer = ArrowWriter::try_new(File::create(project.path(path)).unwrap(), batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
}

/// How many rows the table has.
pub fn count(project: &Project) -> u64 {
    project.sql("select count(*) as n from T")[0]["n"].as_u64().unwrap()
}

/// The notes of a run, as its record has them.
pub fn notes(record: &Value) -> String {
    record["notes"]
        .as_array()
        .map_or(String::new(), |notes| notes.iter().filter_map(Value::as_str).collect::<Vec<_>>().join("\n"))
}
