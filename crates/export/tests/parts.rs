//! Parts of an export: created, unchanged, replaced, emptied, read.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

#[path = "../../sql/tests/world/mod.rs"]
#[expect(dead_code, reason = "the tests of SQL use more of it")]
mod world;

mod several;

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::compute::concat_batches;
use arrow::datatypes::{Float64Type, Int64Type, TimestampMicrosecondType, UInt64Type};
use datafusion::scalar::ScalarValue;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::file::metadata::{ParquetMetaData, SortingColumn};
use tidetable_export::{
    ColumnTypes, FileFormat, FileMode, Outcome, PublishRequest, PublishedPart, publish, record, sweep,
};
use tidetable_sql::{Session, SessionOptions};
use tidetable_store::published::{Part, Published};

use world::{DAY, METERS, READINGS, START, World};

const ALL: &str = "SELECT * FROM SENSOR";

async fn publish_day(world: &World, day: i64, sql: &str, previous: Option<&Part>) -> PublishedPart {
    let session = world.session().restricted(START + day * DAY..START + (day + 1) * DAY);
    let folder = format!("SENSOR_2018010{}", day + 1);
    let label = format!("2018-01-0{}", day + 1);
    let sources = BTreeMap::from([("SENSOR".to_owned(), 1)]);
    let request = PublishRequest {
        store: &world.store(),
        session: &session,
        export: "SENSOR_DAY",
        job: "smart-meters",
        folder: &folder,
        label: &label,
        sql,
        params: &[("day", ScalarValue::from(label.as_str()))],
        query: "q1",
        sources: &sources,
        now: START,
        run: "run-1",
        previous,
        format: FileFormat::Parquet,
        types: ColumnTypes::default(),
        day: None,
        column_ids: None,
        file_size: u64::MAX,
        mode: FileMode::Replace,
        keep_old: false,
        apart: None,
    };
    publish(&request).await.unwrap()
}

fn file(world: &World, day: i64) -> PathBuf {
    world.root().join(format!("exports/SENSOR_2018010{}/part-0.parquet", day + 1))
}

fn read(path: &PathBuf) -> (RecordBatch, ParquetMetaData) {
    let builder = ParquetRecordBatchReaderBuilder::try_new(fs::File::open(path).unwrap()).unwrap();
    let metadata = builder.metadata().as_ref().clone();
    let schema = builder.schema().clone();
    let batches: Vec<_> = builder.build().unwrap().collect::<Result<_, _>>().unwrap();
    (concat_batches(&schema, &batches).unwrap(), metadata)
}

#[tokio::test]
async fn a_part_holds_its_day_in_order() {
    let world = World::with_days(2);
    let made = publish_day(&world, 1, ALL, None).await;
    assert_eq!(made.outcome, Outcome::Created);
    let (rows, metadata) = read(&file(&world, 1));
    assert_eq!(rows.num_rows() as u64, METERS * READINGS);
    let times = rows.column_by_name("ts").unwrap();
    assert_eq!(times.data_type().to_string(), "Timestamp(µs, \"UTC\")");
    let times = times.as_primitive::<TimestampMicrosecondType>();
    assert!(times.values().iter().all(|time| (START + DAY..START + 2 * DAY).contains(time)));
    let meters = rows.column_by_name("meter").unwrap().as_primitive::<UInt64Type>();
    let order: Vec<_> = meters.values().iter().zip(times.values()).collect();
    assert!(order.is_sorted());
    let ascending = |column_idx| SortingColumn { column_idx, descending: false, nulls_first: false };
    assert_eq!(metadata.row_group(0).sorting_columns(), Some(&vec![ascending(0), ascending(1)]));
    assert_eq!(metadata.file_metadata().created_by(), Some("tidetable"));
    let pairs = metadata.file_metadata().key_value_metadata().unwrap();
    for (key, value) in [("export", "SENSOR_DAY"), ("label", "2018-01-02"), ("job", "smart-meters")] {
        assert!(
            pairs.iter().any(|pair| pair.key == format!("tidetable.{key}") && pair.value.as_deref() == Some(value))
        );
    }
    let part = made.part.unwrap();
    assert_eq!((part.rows, part.bytes), (METERS * READINGS, fs::metadata(file(&world, 1)).unwrap().len()));
    assert_eq!(made.columns[0], ("meter".to_owned(), "UInt64".to_owned()));
}

#[tokio::test]
async fn the_order_a_query_asks_for_is_recorded_and_others_are_not() {
    let world = World::with_days(1);
    publish_day(&world, 0, "SELECT kwh, meter FROM SENSOR ORDER BY kwh DESC", None).await;
    let (rows, metadata) = read(&file(&world, 0));
    let kwh = rows.column(0).as_primitive::<Float64Type>();
    assert!(kwh.values().iter().is_sorted_by(|a, b| a >= b));
    let expected = SortingColumn { column_idx: 0, descending: true, nulls_first: true };
    assert_eq!(metadata.row_group(0).sorting_columns(), Some(&vec![expected]));
    publish_day(&world, 0, "SELECT sum(kwh) AS kwh FROM SENSOR GROUP BY ts", None).await;
    assert_eq!(read(&file(&world, 0)).1.row_group(0).sorting_columns(), None);
}

#[tokio::test]
async fn the_same_rows_leave_the_file_alone() {
    let world = World::with_days(1);
    let sql = "SELECT meter, sum(kwh) AS kwh, count(*) AS readings FROM SENSOR GROUP BY meter";
    let first = publish_day(&world, 0, sql, None).await.part.unwrap();
    let before = (fs::read(file(&world, 0)).unwrap(), fs::metadata(file(&world, 0)).unwrap().modified().unwrap());
    for _ in 0..3 {
        let again = publish_day(&world, 0, sql, Some(&first)).await;
        assert_eq!(again.outcome, Outcome::Unchanged);
        assert_eq!(again.part.unwrap().checksum, first.checksum);
    }
    let after = (fs::read(file(&world, 0)).unwrap(), fs::metadata(file(&world, 0)).unwrap().modified().unwrap());
    assert!(before == after);
    assert_eq!(fs::read_dir(file(&world, 0).parent().unwrap()).unwrap().count(), 1);
}

#[tokio::test]
async fn a_file_that_is_not_what_the_list_says_is_replaced() {
    let world = World::with_days(1);
    let first = publish_day(&world, 0, ALL, None).await.part.unwrap();
    let whole = fs::read(file(&world, 0)).unwrap();
    // As left by a run interrupted between file and list; then with the same length.
    for other in [b"other".to_vec(), vec![0; whole.len()]] {
        fs::write(file(&world, 0), other).unwrap();
        assert_eq!(publish_day(&world, 0, ALL, Some(&first)).await.outcome, Outcome::Replaced);
        assert!(fs::read(file(&world, 0)).unwrap() == whole);
    }
    fs::remove_file(file(&world, 0)).unwrap();
    assert_eq!(publish_day(&world, 0, ALL, Some(&first)).await.outcome, Outcome::Replaced);
}

#[tokio::test]
async fn changed_readings_replace_the_part() {
    let world = World::with_csv("meter,ts,kwh\n1,2018-01-01T00:00:00Z,1\n1,2018-01-01T00:15:00Z,2\n");
    let first = publish_day(&world, 0, ALL, None).await.part.unwrap();
    world.load("a.csv", "meter,ts,kwh\n1,2018-01-01T00:00:00Z,1\n1,2018-01-01T00:15:00Z,7\n");
    assert_eq!(publish_day(&world, 0, ALL, Some(&first)).await.outcome, Outcome::Replaced);
    let (rows, _) = read(&file(&world, 0));
    assert_eq!(rows.column_by_name("kwh").unwrap().as_primitive::<Float64Type>().values().to_vec(), [1.0, 7.0]);
}

#[tokio::test]
async fn a_part_without_rows_is_skipped_or_withdrawn() {
    let world = World::with_days(1);
    let none = "SELECT * FROM SENSOR WHERE meter = 99";
    let skipped = publish_day(&world, 0, none, None).await;
    assert_eq!((skipped.outcome, skipped.part), (Outcome::Skipped, None));
    assert!(!world.root().join("exports").exists());
    let first = publish_day(&world, 0, ALL, None).await;
    let mut published = Published::load(world.store().blobs().as_ref(), "SENSOR_DAY").unwrap();
    record(&world.store(), &mut published, "smart-meters", std::slice::from_ref(&first)).unwrap();
    let withdrawn = publish_day(&world, 0, none, first.part.as_ref()).await;
    assert_eq!((withdrawn.outcome, &withdrawn.part), (Outcome::Withdrawn, &None));
    assert!(!file(&world, 0).exists());
    record(&world.store(), &mut published, "smart-meters", &[withdrawn]).unwrap();
    assert_eq!((published.parts.len(), published.empty.len()), (0, 1));
    // It is a table without rows, because its columns are known.
    let session = Session::open(&world.store(), &SessionOptions::default()).unwrap();
    for table in ["SENSOR_DAY", "SENSOR_20180101"] {
        let frame = session.sql(&format!("SELECT meter, kwh FROM exports.{table}")).await.unwrap();
        assert_eq!(frame.count().await.unwrap(), 0, "{table}");
    }
    let again = publish_day(&world, 0, none, None).await;
    assert_eq!(again.outcome, Outcome::Skipped);
    // Files of a run interrupted before it listed the part are removed too.
    publish_day(&world, 0, ALL, None).await;
    assert_eq!(publish_day(&world, 0, none, None).await.outcome, Outcome::Withdrawn);
    assert!(!file(&world, 0).exists());
}

#[tokio::test]
async fn what_is_listed_can_be_queried() {
    let world = World::with_days(2);
    let store = world.store();
    let mut published = Published::load(store.blobs().as_ref(), "SENSOR_DAY").unwrap();
    let sql = "SELECT *, $day AS day FROM SENSOR";
    for day in 0..2 {
        let part = publish_day(&world, day, sql, None).await;
        record(&store, &mut published, "smart-meters", &[part]).unwrap();
    }
    assert_eq!(Published::load(store.blobs().as_ref(), "SENSOR_DAY").unwrap(), published);
    let session = Session::open(&store, &SessionOptions::default()).unwrap();
    for (table, days) in [("SENSOR_DAY", 2), ("SENSOR_20180101", 1), ("SENSOR_20180102", 1)] {
        let query = format!("SELECT count(*), min(day) FROM exports.{table} WHERE meter <= 2");
        let rows = session.sql(&query).await.unwrap().collect().await.unwrap();
        assert_eq!(rows[0].column(0).as_primitive::<Int64Type>().value(0), (2 * READINGS * days) as i64);
    }
    let query = "SELECT table_name FROM information_schema.tables WHERE table_schema = 'exports' ORDER BY 1";
    let names = session.sql(query).await.unwrap().collect().await.unwrap();
    assert_eq!(names.iter().map(RecordBatch::num_rows).sum::<usize>(), 3);
    assert!(session.sql("SELECT * FROM exports.NOTHING").await.is_err());
    // A directory of another name is published, and the old file is removed when the new one is listed.
    let mut old = published.parts["2018-01-01"].clone();
    old.folder = "OLD_NAME".to_owned();
    let old_path = world.root().join("exports/OLD_NAME");
    fs::create_dir_all(&old_path).unwrap();
    fs::write(old_path.join("part-0.parquet"), "old").unwrap();
    let moved = publish_day(&world, 0, sql, Some(&old)).await;
    assert_eq!(moved.obsolete, ["exports/OLD_NAME/part-0.parquet"]);
    record(&store, &mut published, "smart-meters", &[moved]).unwrap();
    assert!(old_path.join("part-0.parquet").exists());
    let obsolete = [String::from("exports/OLD_NAME/part-0.parquet")];
    sweep(&store, &obsolete).unwrap();
    assert!(!old_path.join("part-0.parquet").exists());
}
