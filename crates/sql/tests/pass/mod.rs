//! Shared scans against separate scans of each period: the same batches, for any table.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::RecordBatch;
use datafusion::physical_plan::{ExecutionPlan, collect};
use tidetable_layout::spec::FamilySpec;
use tidetable_layout::{FieldType, TableSpec};
use tidetable_source::ColumnSpec;
use tidetable_sql::{ScalarValue, Session, SharedScan};
use tidetable_store::version::DeleteTarget;
use tidetable_upkeep::compaction::CompactionExtent;

use super::same::worlds;
use super::world::{DAY, START, World, column};

const HOUR: i64 = 3_600_000_000;

/// January, and days of February until January is settled. All digits of the floats are used.
const DAYS: i64 = 40;
const METERS: u64 = 9;

fn csv(days: Range<i64>, factor: f64) -> String {
    let mut csv = String::from("meter,ts,kwh\n");
    for day in days {
        let (month, in_month) = if day < 31 { (1, day + 1) } else { (2, day - 30) };
        for hour in 0..24 {
            for meter in (1..=METERS).filter(|meter| !(meter + day as u64 + hour).is_multiple_of(7)) {
                let kwh = factor * (meter * 100 + hour) as f64 / 7.0 + day as f64 / 3.0;
                csv.push_str(&format!("{meter},2018-{month:02}-{in_month:02}T{hour:02}:15:00Z,{kwh}\n"));
            }
        }
    }
    csv
}

/// Days; those of January share a multi-window file.
fn joined() -> World {
    let world = World::with_csv(&csv(0..DAYS, 1.0));
    world.compact(CompactionExtent::Needed);
    let shared = world.store().snapshot("SENSOR").unwrap();
    assert!(shared.version().ssts().any(|sst| sst.multi_window.is_some()), "January is not joined");
    world
}

/// The same with a row a reading.
fn joined_readings() -> World {
    let columns = ["meter", "ts", "kwh"].into_iter().zip([FieldType::UInt64, FieldType::Timestamp, FieldType::Float64]);
    let columns = columns.map(|(name, kind)| ColumnSpec::new(name, kind)).collect();
    let family = FamilySpec { name: "M".to_owned(), columns: vec![column("kwh", "{kwh}")], ..FamilySpec::default() };
    let (name, row_key) = ("T".to_owned(), "{meter:06}#{ts:ms}".to_owned());
    let spec = TableSpec { name, row_key, families: vec![family], ..TableSpec::default() };
    let world = World::with_table(columns, spec, &[], &csv(0..DAYS, 1.0));
    world.compact(CompactionExtent::Needed);
    let shared = world.store().snapshot("T").unwrap();
    assert!(shared.version().ssts().any(|sst| sst.multi_window.is_some()), "January is not joined");
    world
}

/// Bounds of days that begin `offset` before midnight.
fn days(count: i64, offset: i64) -> Vec<Range<i64>> {
    (0..count).map(|day| START + day * DAY - offset..START + (day + 1) * DAY - offset).collect()
}

const QUERIES: [&str; 10] = [
    "SELECT * FROM {T} ORDER BY meter, ts",
    "SELECT * FROM {T}",
    "SELECT sum(kwh), avg(kwh), count(*), min(ts) FROM {T}",
    "SELECT meter, sum(kwh) AS s, count(*) AS n FROM {T} GROUP BY meter ORDER BY meter",
    "SELECT meter, kwh * 2 AS k FROM {T} WHERE kwh > 100 AND meter <> 3",
    "SELECT meter, ts, kwh FROM {T} WHERE kwh + meter > 60",
    "SELECT count(*) FROM {T} WHERE meter IN (2, 5) OR meter = 7",
    "SELECT a.meter, a.ts, b.kwh FROM {T} a JOIN {T} b ON a.meter = b.meter AND a.ts = b.ts WHERE a.meter < 4 \
     ORDER BY a.meter, a.ts",
    "SELECT $day AS day, meter, ts FROM {T} WHERE ts < $day + INTERVAL '11 hours'",
    "SELECT ts, meter FROM {T} ORDER BY meter, ts LIMIT 5",
];

fn params(time: &Range<i64>) -> [(&'static str, ScalarValue); 1] {
    [("day", ScalarValue::TimestampMicrosecond(Some(time.start), Some("UTC".into())))]
}

async fn answer(session: &Session, query: &str, time: &Range<i64>) -> Vec<RecordBatch> {
    session.sql_with(query, &params(time)).await.unwrap().collect().await.unwrap()
}

async fn pass(session: &Session, query: &str, times: &[Range<i64>], most: u64) -> Option<Arc<SharedScan>> {
    let one = session.restricted(times[0].clone()).asked(query, &params(&times[0])).await.unwrap();
    let other = session.restricted(times[1].clone()).asked(query, &params(&times[1])).await.unwrap();
    let asked = one.alike(&other);
    (!asked.is_empty()).then(|| Arc::new(SharedScan::new(&asked, times.to_vec(), most)))
}

/// Compares each query over `world`; returns the count of scans that took records from the pass.
async fn compare(name: &str, world: &World, table: &str, times: &[Range<i64>], most: u64) -> u64 {
    let session = world.session();
    let frame = session.sql(&format!("SELECT * FROM {table}")).await.unwrap();
    let has = |column: &str| frame.schema().has_column_with_unqualified_name(column);
    let columns = ["meter", "ts", "kwh"];
    let asks = |query: &str| columns.iter().all(|column| has(column) || !query.contains(column));
    let mut given = 0;
    for query in QUERIES.iter().filter(|query| asks(query)) {
        let query = query.replace("{T}", table);
        let Some(pass) = pass(&session, &query, times, most).await else { continue };
        let tasks = times.iter().enumerate().map(|(at, time)| {
            let (session, pass, query, time) = (session.clone(), Arc::clone(&pass), query.clone(), time.clone());
            tokio::spawn(async move {
                let found = answer(&session.for_shared_scan(&pass, at), &query, &time).await;
                let alone = answer(&session.restricted(time.clone()).sequential(), &query, &time).await;
                pass.finish(at);
                (found, alone)
            })
        });
        for (at, task) in tasks.collect::<Vec<_>>().into_iter().enumerate() {
            let (found, alone) = task.await.unwrap();
            assert_eq!(found, alone, "{name}, day {at}: {query}");
        }
        assert_eq!(pass.held(), 0, "{name}: {query}");
        given += pass.counts().given;
    }
    given
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn shared_scans_give_the_same_batches_for_any_table() {
    let mut given = 0;
    for (name, world) in worlds() {
        for offset in [0, HOUR] {
            given += compare(name, &world, "T", &days(4, offset), u64::MAX).await;
        }
    }
    assert!(given > 100, "{given}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn shared_scans_give_the_same_batches_of_multi_window_files() {
    let plain = joined();
    let late = joined();
    late.load("late.csv", &csv(4..6, 3.0));
    let dropped = joined();
    dropped.drop_cells(DeleteTarget::Prefix { prefix: b"0000000003#201801".to_vec() });
    // Days of a changed input leave the multi-window file.
    let changed = joined();
    changed.load("b.csv", &csv(10..12, 2.0));
    changed.load("b.csv", &csv(11..12, 5.0));
    for (name, world) in [("joined", plain), ("late", late), ("dropped", dropped), ("changed", changed)] {
        for (offset, step) in [(0, 3), (HOUR, 5)] {
            let times: Vec<Range<i64>> = days(DAYS, offset).into_iter().step_by(step).collect();
            let given = compare(name, &world, "SENSOR", &times, u64::MAX).await;
            assert!(given > 5 * (DAYS as u64 / step as u64), "{name}: {given}");
        }
    }
    let given = compare("a row a reading", &joined_readings(), "T", &days(DAYS, 0), u64::MAX).await;
    assert!(given > 5 * DAYS as u64, "{given}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn records_beyond_the_budget_are_not_shared() {
    let world = joined();
    for (most, least, greatest) in [(0, 0, 16), (20_000, 17, 100), (u64::MAX, 101, u64::MAX)] {
        let given = compare("joined", &world, "SENSOR", &days(16, 0), most).await;
        // Records without columns take no memory.
        assert!((least..=greatest).contains(&given), "{most}: {given}");
    }
    // The estimate is close to the bytes held.
    let (session, times) = (world.session(), days(31, 0));
    let query = "SELECT meter, ts, kwh FROM SENSOR";
    let asked = session.restricted(times[3].clone()).asked(query, &params(&times[3])).await.unwrap();
    let records = METERS * 24 * 6 / 7;
    assert!((records * 20..records * 30).contains(&asked.bytes()), "{}", asked.bytes());
}

#[tokio::test]
async fn after_a_stop_each_day_reads_by_itself() {
    let world = joined();
    let (session, times, query) = (world.session(), days(3, 0), "SELECT meter, ts FROM SENSOR");
    let pass = pass(&session, query, &times, u64::MAX).await.unwrap();
    pass.stop();
    let found = answer(&session.for_shared_scan(&pass, 1), query, &times[1]).await;
    assert_eq!(found, answer(&session.restricted(times[1].clone()).sequential(), query, &times[1]).await);
    assert_eq!((pass.counts().given, pass.held()), (0, 0));
}

/// Count of pages that a query reads.
async fn pages_read(session: &Session, query: &str) -> usize {
    let frame = session.sql(query).await.unwrap();
    let context = Arc::new(frame.task_ctx());
    let plan = frame.create_physical_plan().await.unwrap();
    collect(Arc::clone(&plan), context).await.unwrap();
    pages(&plan)
}

fn pages(plan: &Arc<dyn ExecutionPlan>) -> usize {
    let own = plan.metrics().and_then(|metrics| metrics.sum_by_name("pages_read")).map_or(0, |value| value.as_usize());
    own + plan.children().into_iter().map(pages).sum::<usize>()
}

#[tokio::test]
async fn a_shared_month_is_read_once() {
    let world = joined();
    let (session, times) = (world.session(), days(31, 0));
    let query = "SELECT meter, ts, kwh FROM SENSOR WHERE kwh > 1 ORDER BY meter, ts";
    let month = pages_read(&session.restricted(times[0].start..times[30].end).sequential(), query).await;
    let (mut alone, mut together) = (0, 0);
    let pass = pass(&session, query, &times, u64::MAX).await.unwrap();
    for (at, time) in times.iter().enumerate() {
        alone += pages_read(&session.restricted(time.clone()).sequential(), query).await;
        together += pages_read(&session.for_shared_scan(&pass, at), query).await;
        pass.finish(at);
    }
    assert!(together > 0 && together == month, "{together} of {month}");
    assert!(alone > 15 * together, "{alone} and {together}");
    assert_eq!((pass.counts().read, pass.counts().given), (1, 31));
}
