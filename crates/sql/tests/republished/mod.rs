//! Exports that are published again between the planning of a query and its reading.

use std::collections::BTreeMap;

use arrow::array::{AsArray, RecordBatch};
use arrow::datatypes::Int64Type;
use futures::TryStreamExt;
use tempfile::TempDir;
use tidetable_blobs::LocalBlobs;
use tidetable_sql::{Session, SessionOptions};
use tidetable_store::Store;
use tidetable_store::published::{Part, Published, file_checksum};

/// Publishes a day with the numbers below `rows`, in the place of what was there, as a run does.
fn publish(store: &Store, rows: i64) {
    let blobs = store.blobs().as_ref();
    let text: String = std::iter::once("n\n".to_owned()).chain((0..rows).map(|row| format!("{row}\n"))).collect();
    blobs.replace("exports/DAY_1/part-0.csv", text.as_bytes()).unwrap();
    let (folder, file) = ("DAY_1".to_owned(), "part-0.csv".to_owned());
    let checksum = file_checksum(blobs, "exports/DAY_1/part-0.csv").unwrap();
    let part = Part { folder, file, rows: rows as u64, bytes: text.len() as u64, checksum, ..Part::default() };
    let columns = vec![("n".to_owned(), "Int64".to_owned())];
    let parts = BTreeMap::from([("1".to_owned(), part)]);
    let mut list = Published { columns, parts, ..Published::load(blobs, "DAY").unwrap() };
    list.save(blobs).unwrap();
}

fn store(folder: &TempDir) -> Store {
    Store::new(std::sync::Arc::new(LocalBlobs::new(folder.path().to_owned())))
}

const COUNT: &str = "SELECT count(n), sum(n) FROM exports.\"DAY\"";

fn numbers(batches: &[RecordBatch]) -> Vec<i64> {
    batches[0].columns().iter().map(|column| column.as_primitive::<Int64Type>().value(0)).collect()
}

#[tokio::test]
async fn a_stream_has_the_rows_of_one_publication() {
    let folder = TempDir::new().unwrap();
    let store = store(&folder);
    publish(&store, 1_000);
    let session = Session::open(&store, &SessionOptions::default()).unwrap();
    let rows = session.stream(COUNT).await.unwrap();
    publish(&store, 3_000);
    let found: Vec<RecordBatch> = rows.try_collect().await.unwrap();
    assert_eq!(numbers(&found), [1_000, 499_500]);
}

#[tokio::test]
async fn a_plan_does_not_read_what_replaced_its_files() {
    let folder = TempDir::new().unwrap();
    let store = store(&folder);
    publish(&store, 1_000);
    let session = Session::open(&store, &SessionOptions::default()).unwrap();
    let frame = session.sql(COUNT).await.unwrap();
    let planned = tidetable_sql::plan_frame(frame).await.unwrap();
    publish(&store, 3_000);
    let error = planned.stream().try_collect::<Vec<RecordBatch>>().await.unwrap_err().to_string();
    assert!(error.contains("part-0.csv was published again") && error.contains("repeat the query"), "{error}");
}
