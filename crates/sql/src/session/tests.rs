//! Exports that are published again between the planning of a query and its reading.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, Ordering};

use arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch};
use arrow::datatypes::Int64Type;
use datafusion::parquet::arrow::ArrowWriter;
use futures::TryStreamExt;
use tempfile::TempDir;
use tidetable_blobs::LocalBlobs;
use tidetable_store::published::{Part, Published, file_checksum};

use super::*;

/// Publishes a day with the numbers below `rows`, in the place of what was there, as a run does. `file` ends with `.csv` or
/// `.parquet`.
fn publish(store: &Store, file: &str, rows: i64) {
    let blobs = store.blobs().as_ref();
    let bytes = if file.ends_with(".csv") { csv(rows) } else { parquet(rows) };
    let path = format!("exports/DAY_1/{file}");
    blobs.replace(&path, &bytes).unwrap();

    let (folder, file) = ("DAY_1".to_owned(), file.to_owned());
    let checksum = file_checksum(blobs, &path).unwrap();
    let part = Part { folder, file, rows: rows as u64, bytes: bytes.len() as u64, checksum, ..Part::default() };
    let columns = vec![("n".to_owned(), "Int64".to_owned())];
    let parts = BTreeMap::from([("1".to_owned(), part)]);
    let mut list = Published { columns, parts, ..Published::load(blobs, "DAY").unwrap() };
    list.save(blobs).unwrap();
}

fn csv(rows: i64) -> Vec<u8> {
    std::iter::once("n\n".to_owned()).chain((0..rows).map(|row| format!("{row}\n"))).collect::<String>().into_bytes()
}

fn parquet(rows: i64) -> Vec<u8> {
    let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(0..rows));
    let batch = RecordBatch::try_from_iter([("n", numbers)]).unwrap();
    let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.into_inner().unwrap()
}

/// A file of each format that a job publishes and a session reads by parts: text in lines, and columns with a footer.
const FILES: [&str; 2] = ["part-0.csv", "part-0.parquet"];

fn store(folder: &TempDir) -> Store {
    Store::new(Arc::new(LocalBlobs::new(folder.path().to_owned())))
}

const COUNT: &str = "SELECT count(n), sum(n) FROM exports.\"DAY\"";

fn numbers(batches: &[RecordBatch]) -> Vec<i64> {
    batches[0].columns().iter().map(|column| column.as_primitive::<Int64Type>().value(0)).collect()
}

#[tokio::test]
async fn a_stream_has_the_rows_of_one_publication() {
    for file in FILES {
        let folder = TempDir::new().unwrap();
        let store = store(&folder);
        publish(&store, file, 1_000);
        let session = Session::open(&store, &SessionOptions::default()).unwrap();
        let rows = session.stream(COUNT).await.unwrap();
        publish(&store, file, 3_000);
        let found: Vec<RecordBatch> = rows.try_collect().await.unwrap();
        assert_eq!(numbers(&found), [1_000, 499_500]);
    }
}

#[tokio::test]
async fn a_plan_does_not_read_what_replaced_its_files() {
    for file in FILES {
        let folder = TempDir::new().unwrap();
        let store = store(&folder);
        publish(&store, file, 1_000);
        let session = Session::open(&store, &SessionOptions::default()).unwrap();
        let frame = session.sql(COUNT).await.unwrap();
        let planned = plan_frame(frame).await.unwrap();
        publish(&store, file, 3_000);
        let error = planned.stream().try_collect::<Vec<RecordBatch>>().await.unwrap_err().to_string();
        assert!(
            error.contains(&format!("{file} was published again")) && error.contains("repeat the query"),
            "{error}"
        );
    }
}

#[tokio::test]
async fn a_query_of_an_export_that_is_published_meanwhile_is_planned_again() {
    for file in FILES {
        is_planned_again(file).await;
    }
}

async fn is_planned_again(file: &str) {
    let folder = TempDir::new().unwrap();
    let store = store(&folder);
    publish(&store, file, 100);
    let session = Session::open(&store, &SessionOptions::default()).unwrap();
    let plans = AtomicI64::new(0);
    let publish_until = |last: i64| {
        let (plans, store) = (&plans, &store);
        move || {
            let plan = plans.fetch_add(1, Ordering::Relaxed) + 1;
            if plan <= last {
                publish(store, file, 100 + plan);
            }
        }
    };
    let query = "SELECT count(n), sum(n) FROM exports.\"DAY\"";
    let found = session.stream_after(query, None, publish_until(2)).await.unwrap();
    let found: Vec<RecordBatch> = found.try_collect().await.unwrap();
    assert_eq!(found[0].column(0).as_primitive::<Int64Type>().value(0), 102);
    assert_eq!(plans.load(Ordering::Relaxed), 3);
    // It is not planned for ever.
    let error = session.stream_after(query, None, publish_until(i64::MAX)).await.err().unwrap().to_string();
    assert!(error.contains("published again"), "{error}");
}
