//! Queries evaluated in the scan against the same query without pushdown, over tables whose cells are hidden,
//! duplicated, merged, missing or keyed differently, so that a rule applied where it does not hold fails.

mod cells;
mod general;
mod limits;
mod ordered;
mod stripes;

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::datasource::physical_plan::FileScanConfig;
use datafusion::datasource::source::DataSourceExec;
use datafusion::physical_plan::ExecutionPlan;
use tidetable_layout::schema::Merge;
use tidetable_layout::spec::FamilySpec;
use tidetable_layout::{FieldType, TableSpec, Window};
use tidetable_source::ColumnSpec as SourceColumn;
use tidetable_sql::SessionOptions;
use tidetable_store::version::DeleteTarget;
use tidetable_upkeep::compaction::CompactionExtent;

use super::world::{DAY, START, World, column};
use super::{plan, run};

/// Readings of some days: integers as floats, so that sums are exact. Some are missing, some meters have none on some
/// days, and `jitter` varies times so that no two rows share a timestamp list.
fn csv(meters: u64, days: i64, step: i64, jitter: bool, seed: u64) -> String {
    let mut csv = String::from("meter,ts,kwh,tag\n");
    let mut state = seed | 1;
    let mut random = |most: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % most
    };
    for day in 0..days {
        for meter in 1..=meters {
            // A row with only the cell of its key.
            let silent = (meter + day as u64).is_multiple_of(5);
            for at in 0..(DAY / step) {
                if random(11) == 0 {
                    continue;
                }
                let seconds = at * step / 1_000_000 + if jitter { random(300) as i64 } else { 0 };
                let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
                let kwh = if silent { String::new() } else { random(1000).to_string() };
                let tag = ["", "a", "b", "c"][random(4) as usize];
                let time = format!("2018-01-{:02}T{hour:02}:{minute:02}:{second:02}Z", day + 1);
                csv.push_str(&format!("{meter},{time},{kwh},{tag}\n"));
            }
        }
    }
    csv
}

fn columns() -> Vec<SourceColumn> {
    vec![
        SourceColumn::new("meter", FieldType::UInt64),
        SourceColumn::new("ts", FieldType::Timestamp),
        SourceColumn::new("kwh", FieldType::Float64),
        SourceColumn::new("tag", FieldType::Text),
    ]
}

fn family(name: &str, columns: &[(&str, &str)]) -> FamilySpec {
    let columns = columns.iter().map(|(qualifier, value)| column(qualifier, value)).collect();
    FamilySpec { name: name.to_owned(), columns, ..FamilySpec::default() }
}

fn spec(row_key: &str, families: Vec<FamilySpec>) -> TableSpec {
    TableSpec { name: "T".to_owned(), row_key: row_key.to_owned(), families, ..TableSpec::default() }
}

const HOUR: i64 = 3_600_000_000;

/// Lines on time, and those that come later: some for the first time, some again, some with another value.
fn late(csv: &str) -> (String, String) {
    let (header, lines) = csv.split_once('\n').unwrap();
    let (mut first, mut then) = (format!("{header}\n"), format!("{header}\n"));
    for (at, line) in lines.lines().enumerate() {
        let corrected = || {
            let mut fields: Vec<&str> = line.split(',').collect();
            fields[2] = "17";
            fields.join(",")
        };
        let (early, later) = match at % 41 {
            3 | 4 | 5 | 17 => (None, Some(line.to_owned())),
            8 => (Some(line), Some(line.to_owned())),
            29 => (Some(line), Some(corrected())),
            _ => (Some(line), None),
        };
        first.extend(early.iter().flat_map(|line| [*line, "\n"]));
        then.extend(later.iter().flat_map(|line| [line.as_str(), "\n"]));
    }
    (first, then)
}

/// A table of readings of which some come late, in a file of their own.
fn with_late(spec: TableSpec, gc: &[(&str, &str)], csv: &str) -> World {
    let (first, then) = late(csv);
    let world = World::with_table(columns(), spec, gc, &first);
    world.load("late.csv", &then);
    world
}

/// Tables with every relation between rows, cells and records.
pub fn worlds() -> Vec<(&'static str, World)> {
    let daily = "{meter:06}#{ts:%Y%m%d}";
    let times = family("M", &[("ID", "{meter}"), ("{ts:%H%M%S}", "{kwh}")]);
    let make = |spec: TableSpec, gc: &[(&str, &str)], csv: &str| World::with_table(columns(), spec, gc, csv);
    let plain = csv(7, 4, HOUR, false, 1);
    let later = csv(5, 3, HOUR, false, 2);
    let moved = csv(6, 3, HOUR, true, 3);
    let daily_spec = || spec(daily, vec![times.clone()]);

    let overlapping = make(daily_spec(), &[("M", "maxversions=1")], &plain);
    overlapping.load("b.csv", &later);
    let dropped = make(daily_spec(), &[], &plain);
    dropped.drop_cells(DeleteTarget::Prefix { prefix: b"000003".to_vec() });
    dropped.drop_cells(DeleteTarget::Row { key: b"000002#20180102".to_vec() });
    dropped.drop_cells(DeleteTarget::Column {
        key: b"000004#20180101".to_vec(),
        family: "M".to_owned(),
        qualifier: b"050000".to_vec(),
        times: None,
    });
    dropped.load("c.csv", &csv(3, 2, HOUR, false, 9));
    let compacted = make(daily_spec(), &[("M", "maxversions=1")], &plain);
    compacted.load("b.csv", &later);
    compacted.compact(CompactionExtent::Full);
    let expired = make(daily_spec(), &[("M", "maxage=1d or maxversions=1")], &plain);
    let versions = spec("m{meter:03}", vec![family("M", &[("kwh", "{kwh}"), ("tag", "{tag}")])]);
    let counts = vec![FamilySpec { kind: Merge::Sum, ..family("S", &[("{ts:%H}", "{meter}")]) }, times.clone()];
    let upsert =
        TableSpec { upsert: true, ..spec("{meter:06}", vec![family("M", &[("kwh", "{kwh}"), ("tag", "{tag}")])]) };
    let monthly = TableSpec { window: Window::Month, ..daily_spec() };
    let whole = TableSpec { window: Window::None, ..daily_spec() };
    vec![
        ("days of meters", make(daily_spec(), &[], &plain)),
        ("files that overlap", overlapping),
        ("drops, and rows written after them", dropped),
        ("compacted", compacted),
        ("cells that expire", expired),
        ("salted", make(spec("{salt(meter, 3)}#{meter:06}#{ts:%Y%m%d}", vec![times.clone()]), &[], &plain)),
        ("times that do not come again", make(spec(daily, vec![times.clone()]), &[("M", "maxversions=2")], &moved)),
        ("versions in rows of all days", make(versions.clone(), &[("M", "maxversions=3")], &plain)),
        ("versions without rules", make(versions, &[], &moved)),
        (
            "a row a reading",
            make(spec("{meter:06}#{ts:ms}", vec![family("M", &[("kwh", "{kwh}"), ("tag", "{tag}")])]), &[], &plain),
        ),
        (
            "a row a time and meter",
            make(spec("{ts:ms}#{meter:06}", vec![family("M", &[("kwh", "{kwh}")])]), &[], &plain),
        ),
        (
            "newest first",
            make(spec("{meter:06}#{ts:ms-reversed}", vec![family("M", &[("kwh", "{kwh}")])]), &[], &plain),
        ),
        (
            "hours of all meters",
            make(spec("{ts:%Y%m%d%H}#{meter:06}", vec![family("M", &[("{ts:%M%S}", "{kwh}")])]), &[], &moved),
        ),
        ("days in local time", make(spec("{meter:06}#{ts:%Y%m%d|Europe/Paris}", vec![times.clone()]), &[], &plain)),
        ("two families", make(spec(daily, vec![times.clone(), family("N", &[("{ts:%H%M%S}", "{tag}")])]), &[], &plain)),
        (
            "a tag in the key",
            make(
                spec("{tag}#{meter:06}#{ts:%Y%m%d}", vec![family("M", &[("{ts:%H%M%S}", "{kwh}")])]),
                &[],
                &tagged(&plain),
            ),
        ),
        (
            "a row a reading of a tag",
            make(spec("{tag}#{meter:06}#{ts:ms}", vec![family("M", &[("kwh", "{kwh}")])]), &[], &tagged(&plain)),
        ),
        ("sums by hour", make(spec(daily, counts), &[], &plain)),
        ("rows that are replaced", make(upsert, &[], &plain)),
        ("late readings", with_late(daily_spec(), &[], &plain)),
        ("late readings of other times", with_late(daily_spec(), &[("M", "maxversions=2")], &moved)),
        (
            "late readings of two families",
            with_late(spec(daily, vec![times.clone(), family("N", &[("{ts:%H%M%S}", "{tag}")])]), &[], &plain),
        ),
        (
            "late rows",
            with_late(
                spec("{meter:06}#{ts:ms}", vec![family("M", &[("kwh", "{kwh}"), ("tag", "{tag}")])]),
                &[("M", "maxage=1d or maxversions=1")],
                &plain,
            ),
        ),
        ("months", make(monthly, &[], &plain)),
        ("one window", make(whole, &[("M", "maxversions=1")], &plain)),
    ]
}

/// Lines with a tag.
fn tagged(csv: &str) -> String {
    csv.lines().filter(|line| !line.ends_with(',')).map(|line| format!("{line}\n")).collect()
}

const GROUPS: [&str; 12] = [
    "",
    "meter",
    "CAST(ts AS DATE)",
    "meter, CAST(ts AS DATE)",
    "date_trunc('hour', ts)",
    "date_trunc('month', ts), meter % 3",
    "extract(hour FROM ts)",
    "meter, extract(hour FROM ts)",
    "extract(dow FROM ts), meter > 3",
    "extract(minute FROM ts) > 2, CAST(ts AS DATE)",
    "kwh > 500",
    "tag",
];

const AGGREGATES: [&str; 5] = [
    "count(*), sum(kwh), min(kwh), max(kwh), count(kwh), avg(kwh)",
    "max(ts), last_value(kwh ORDER BY ts)",
    "min(ts), max(ts), first_value(kwh ORDER BY ts), count(DISTINCT meter)",
    "count(*) FILTER (WHERE kwh > 300), sum(meter), max(tag)",
    "sum(kwh + meter), count(tag), bool_or(kwh > 990)",
];

const FILTERS: [&str; 20] = [
    "TRUE",
    "meter = 3",
    "meter IN (2, 4, 99) OR kwh > 900",
    "ts >= '2018-01-02' AND ts < '2018-01-03'",
    "ts > '2018-01-02' AND ts <= '2018-01-03'",
    "ts >= '2018-01-02T05:00:01Z' AND meter < 5",
    "CAST(ts AS DATE) <> '2018-01-02'",
    "kwh > 700",
    "kwh IS NULL",
    "tag = 'a' AND kwh < 500",
    "extract(hour FROM ts) BETWEEN 3 AND 5 AND meter > 2",
    "meter BETWEEN 2 AND 4 AND CAST(ts AS DATE) = '2018-01-02'",
    "tag IS NOT NULL AND date_trunc('day', ts) = '2018-01-01'",
    "kwh > 10000",
    "kwh >= 500.0 AND kwh <= 500.5 OR kwh = 7.0",
    "kwh < 120.000000001 AND kwh >= 119.999999999",
    "kwh = 250.0 OR NOT kwh <> 251.0",
    "ts + INTERVAL '1 day 2 hours' > '2018-01-03'",
    "'2018-01-02T05:00:00Z' <= ts - INTERVAL '90 minutes' AND ts + INTERVAL '1 month' < '2018-02-04'",
    "INTERVAL '1 hour' + ts <> '2018-01-02T05:00:00Z'",
];

/// The rows of a result as text, sorted.
fn rows(batches: &[RecordBatch]) -> Vec<String> {
    let mut rows = texts(batches);
    rows.sort();
    rows
}

/// The rows of a result as text.
pub fn texts(batches: &[RecordBatch]) -> Vec<String> {
    let options = FormatOptions::default().with_null("NULL");
    let mut rows = Vec::new();
    for batch in batches {
        let columns: Vec<_> =
            batch.columns().iter().map(|column| ArrayFormatter::try_new(column.as_ref(), &options).unwrap()).collect();
        for row in 0..batch.num_rows() {
            rows.push(columns.iter().map(|column| column.value(row).to_string()).collect::<Vec<_>>().join(" | "));
        }
    }
    rows
}

/// Whether a query uses only columns that the table's layout decodes.
fn fields(names: BTreeSet<String>) -> impl Fn(&str) -> bool {
    move |text: &str| ["meter", "ts", "kwh", "tag"].iter().all(|name| names.contains(*name) || !text.contains(name))
}

#[tokio::test]
async fn aggregates_in_the_scan_equal_those_of_datafusion() {
    let mut compared = 0;
    for (name, world) in worlds() {
        let plain = world.open(&SessionOptions { without_push_down: true, ..SessionOptions::default() });
        let frame = plain.sql("SELECT * FROM T").await.unwrap();
        let names = frame.schema().fields().iter().map(|field| field.name().clone()).collect();
        let has = fields(names);
        let sessions = [world.session(), world.session().sequential()];
        for (at, filter) in FILTERS.iter().enumerate().filter(|(_, filter)| has(filter)) {
            for (nth, group) in GROUPS.iter().enumerate().filter(|(_, group)| has(group)) {
                let aggregates = AGGREGATES[(at + nth) % AGGREGATES.len()];
                // Ties of the newest record may be resolved differently.
                let tied = name == "versions without rules" || name == "two families" || !group.starts_with("meter");
                if !has(aggregates) || (aggregates.contains("_value") && (tied || group.contains('%'))) {
                    continue;
                }
                let (comma, by) =
                    if group.is_empty() { ("", String::new()) } else { (", ", format!("GROUP BY {group}")) };
                let query = format!("SELECT {group}{comma}{aggregates} FROM T WHERE {filter} {by}");
                let expected = rows(&run(&plain, &query).await);
                let session = &sessions[(at + nth / AGGREGATES.len()) % 2];
                assert_eq!(rows(&run(session, &query).await), expected, "{name}: {query}");
                compared += 1;
            }
            let all = format!("SELECT * FROM T WHERE {filter}");
            let top = format!("SELECT meter, ts FROM T WHERE {filter} ORDER BY meter, ts LIMIT 7 OFFSET {at}");
            let newest = format!("SELECT ts, meter FROM T WHERE {filter} ORDER BY ts DESC, meter LIMIT 7 OFFSET {at}");
            for query in [all, top, newest].iter().filter(|query| has(query)) {
                let expected = rows(&run(&plain, query).await);
                assert_eq!(rows(&run(&sessions[at % 2], query).await), expected, "{name}: {query}");
            }
        }
    }
    assert!(compared > 1000, "{compared}");
}

#[tokio::test]
async fn aggregates_below_joins_count_every_match() {
    // Meter 1 has two zones, meter 2 none, meter 4 a null zone; zone y has two meters.
    let zones = "(VALUES (1, 'x'), (1, 'y'), (3, 'y'), (4, CAST(NULL AS VARCHAR)), (77, 'z')) AS z(id, zone)";
    let mut below = 0;
    for (name, world) in worlds() {
        let plain = world.open(&SessionOptions { without_push_down: true, ..SessionOptions::default() });
        let frame = plain.sql("SELECT * FROM T").await.unwrap();
        let names = frame.schema().fields().iter().map(|field| field.name().clone()).collect();
        let has = fields(names);
        for session in [world.session(), world.session().sequential()] {
            for query in [
                "SELECT zone, count(*), sum(kwh), min(ts) FROM T JOIN {} ON T.meter = z.id GROUP BY zone",
                "SELECT zone, CAST(ts AS DATE), avg(kwh) FROM T JOIN {} ON T.meter = z.id GROUP BY 1, 2",
                "SELECT count(*), sum(kwh) FROM T JOIN {} ON T.meter = z.id WHERE zone <> 'x' AND ts >= '2018-01-02'",
                "SELECT zone, extract(hour FROM ts), max(kwh) FROM {} JOIN T ON z.id = T.meter GROUP BY 1, 2",
                "SELECT id + meter, count(kwh) FROM T JOIN {} ON T.meter = z.id GROUP BY 1",
                "SELECT zone, sum(id) FROM T JOIN {} ON T.meter = z.id GROUP BY 1",
                "SELECT zone, sum(kwh) FROM T JOIN {} ON T.meter = z.id AND T.kwh > z.id * 100 GROUP BY 1",
                "SELECT zone, count(kwh) FROM {} LEFT JOIN T ON T.meter = z.id GROUP BY 1",
                "SELECT zone, sum(kwh) FROM T JOIN {} ON T.meter = z.id GROUP BY zone HAVING count(*) > 3",
            ] {
                if !has(query) {
                    continue;
                }
                let query = query.replace("{}", zones);
                assert_eq!(rows(&run(&session, &query).await), rows(&run(&plain, &query).await), "{name}: {query}");
                below += usize::from(plan(&session, &query).await.contains("of row"));
            }
        }
    }
    assert!(below > 40, "{below}");
}

#[tokio::test]
async fn explain_shows_what_scans_evaluate() {
    let world = World::with_days(3);
    let (session, start) = (world.session(), START);
    assert_eq!(start % DAY, 0);
    for (query, parts) in [
        (
            "SELECT CAST(ts AS DATE), sum(kwh) FROM SENSOR WHERE ts >= '2018-01-02' GROUP BY 1",
            &["by=[CAST(ts@1 AS Date32) of row]", "filter=ts@1 >="][..],
        ),
        ("SELECT extract(hour FROM ts), sum(kwh) FROM SENSOR GROUP BY 1", &[" of time]"]),
        ("SELECT meter, last_value(kwh ORDER BY ts) FROM SENSOR GROUP BY 1", &["newest records only"]),
        ("SELECT kwh FROM SENSOR WHERE kwh > 100", &["filter=kwh@2 > 100"]),
        ("SELECT count(*) FROM SENSOR", &["by=[], aggregates=[count("]),
    ] {
        let plan = plan(&session, query).await;
        for part in parts {
            assert!(plan.contains(part), "{part} is not in\n{plan}");
        }
        assert!(!plan.contains("FilterExec") && !plan.contains("mode=Partial"), "{plan}");
    }
    let two = SessionOptions { target_partitions: Some(2), ..SessionOptions::default() };
    let session = world.open(&two);
    // Top-k in key order merges scan ranges instead of sorting.
    for (query, sorted) in [
        ("SELECT meter, ts, kwh FROM SENSOR ORDER BY meter, ts LIMIT 3", false),
        ("SELECT ts, meter FROM SENSOR WHERE kwh > 100 ORDER BY meter LIMIT 3 OFFSET 2", false),
        ("SELECT meter, ts FROM SENSOR ORDER BY meter DESC, ts LIMIT 3", true),
        ("SELECT meter, ts FROM SENSOR ORDER BY ts, meter LIMIT 3", true),
    ] {
        let plan = plan(&session, query).await;
        assert_eq!(plan.contains("SortExec"), sorted, "{plan}");
    }
    // Window functions over entities, and sorts by key, merge windows instead.
    let of_meter = "OVER (PARTITION BY meter ORDER BY ts)";
    for (query, sorted) in [
        (format!("SELECT kwh - lag(kwh) {of_meter} FROM SENSOR"), false),
        (format!("SELECT avg(kwh) {of_meter} FROM SENSOR WHERE kwh > 1 AND ts >= '2018-01-02'"), false),
        ("SELECT meter, ts, kwh FROM SENSOR ORDER BY meter, ts".to_owned(), false),
        ("SELECT lag(kwh) OVER (PARTITION BY meter ORDER BY kwh) FROM SENSOR".to_owned(), true),
        ("SELECT lag(kwh) OVER (PARTITION BY ts ORDER BY meter) FROM SENSOR".to_owned(), true),
        ("SELECT lag(kwh) OVER (ORDER BY ts, meter) FROM SENSOR".to_owned(), true),
        ("SELECT meter, ts FROM SENSOR ORDER BY ts, meter".to_owned(), true),
    ] {
        let plan = plan(&session, &query).await;
        assert_eq!(plan.contains("SortExec") || plan.contains("RepartitionExec"), sorted, "{query}\n{plan}");
    }
    // Groups by values stay in DataFusion.
    for query in [
        "SELECT kwh, count(*) FROM SENSOR GROUP BY 1",
        "SELECT meter, sum(kwh) FROM (SELECT * FROM SENSOR LIMIT 10) AS s GROUP BY 1",
        "SELECT meter, count(DISTINCT kwh), sum(DISTINCT kwh) FROM SENSOR GROUP BY 1",
        "SELECT array_agg(kwh) FROM SENSOR",
        "SELECT meter, first_value(kwh) FROM SENSOR GROUP BY 1",
        "SELECT random() > 0.5, count(*) FROM SENSOR GROUP BY 1",
    ] {
        let plan = plan(&session, query).await;
        assert!(!plan.contains(", by=["), "{plan}");
    }
}

/// Whether partitions of a sorted scan in `plan` may steal files; `None` without such a scan.
fn loses_order(plan: &Arc<dyn ExecutionPlan>) -> Option<bool> {
    let mut loses = None;
    plan.apply(|plan| {
        let source = plan.downcast_ref::<DataSourceExec>().map(DataSourceExec::data_source);
        let config = source.and_then(|source| source.downcast_ref::<FileScanConfig>());
        if let Some(config) = config.filter(|config| !config.output_ordering.is_empty()) {
            loses = Some(loses == Some(true) || !config.preserve_order);
        }
        Ok(TreeNodeRecursion::Continue)
    })
    .unwrap();
    loses
}

#[tokio::test]
async fn limited_scans_preserve_order() {
    let world = World::with_days(4);
    for without_push_down in [false, true] {
        let options = SessionOptions { without_push_down, target_partitions: Some(4), ..SessionOptions::default() };
        let session = world.open(&options);
        for query in [
            "SELECT meter, ts FROM SENSOR ORDER BY meter, ts LIMIT 3",
            "SELECT meter, ts FROM SENSOR ORDER BY meter, ts LIMIT 3 OFFSET 2",
            "SELECT meter FROM SENSOR WHERE extract(hour FROM ts) = 3 ORDER BY meter LIMIT 7 OFFSET 10",
            "SELECT meter, ts FROM SENSOR ORDER BY meter OFFSET 5",
            "SELECT DISTINCT meter FROM SENSOR ORDER BY meter LIMIT 2",
        ] {
            let frame = session.sql(query).await.unwrap();
            let plan = frame.create_physical_plan().await.unwrap();
            assert_ne!(loses_order(&plan), Some(true), "{query}");
            if !query.contains("DISTINCT") {
                assert_eq!(loses_order(&plan), Some(false), "{query}");
            }
        }
    }
}

#[tokio::test]
async fn nested_limits_return_the_right_count() {
    let world = World::with_days(4);
    for without_push_down in [false, true] {
        for partitions in [1, 4] {
            let options =
                SessionOptions { without_push_down, target_partitions: Some(partitions), ..SessionOptions::default() };
            let session = world.open(&options);
            for (query, rows) in [
                ("SELECT * FROM (SELECT * FROM SENSOR LIMIT 30 OFFSET 10) ORDER BY meter LIMIT 5", 5),
                ("SELECT * FROM (SELECT * FROM SENSOR OFFSET 10) ORDER BY meter LIMIT 5", 5),
                ("SELECT * FROM (SELECT * FROM SENSOR LIMIT 1000) WHERE kwh >= 0 ORDER BY meter LIMIT 300", 300),
                ("SELECT * FROM (SELECT * FROM SENSOR WHERE kwh >= 0 LIMIT 8) ORDER BY meter, ts LIMIT 300", 8),
                ("SELECT * FROM (SELECT * FROM SENSOR ORDER BY meter LIMIT 8) ORDER BY ts LIMIT 3 OFFSET 4", 3),
                (
                    "SELECT * FROM (SELECT * FROM SENSOR ORDER BY meter LIMIT 8) WHERE kwh >= 0 ORDER BY meter LIMIT 30",
                    8,
                ),
                (
                    "SELECT * FROM (SELECT meter, row_number() OVER () AS n FROM SENSOR) WHERE n > 500 ORDER BY meter LIMIT 5",
                    5,
                ),
                (
                    "SELECT * FROM (SELECT meter, count(*) OVER (ORDER BY meter, ts) AS n FROM SENSOR) WHERE n > 500 ORDER BY meter LIMIT 5",
                    5,
                ),
                (
                    "SELECT a.meter FROM (SELECT * FROM SENSOR LIMIT 50) AS a JOIN (VALUES (1), (2), (3), (4), (5), (6)) AS b(id) \
                     ON a.meter = b.id ORDER BY a.meter LIMIT 40",
                    40,
                ),
                (
                    "SELECT meter FROM (SELECT meter FROM SENSOR LIMIT 9) UNION ALL SELECT meter FROM SENSOR ORDER BY meter LIMIT 2000",
                    2000,
                ),
                ("SELECT meter, kwh FROM SENSOR ORDER BY kwh DESC, meter LIMIT 7 OFFSET 2", 7),
                ("SELECT DISTINCT meter FROM (SELECT * FROM SENSOR OFFSET 3) ORDER BY meter LIMIT 6", 6),
                ("SELECT meter, ts FROM (SELECT meter, ts FROM SENSOR LIMIT 2 OFFSET 30) ORDER BY ts, meter", 2),
                ("SELECT meter, ts FROM (SELECT meter, ts FROM SENSOR LIMIT 100 OFFSET 1) ORDER BY ts, meter", 100),
            ] {
                let found: usize = run(&session, query).await.iter().map(RecordBatch::num_rows).sum();
                assert_eq!(found, rows, "{partitions} parts, push-down off: {without_push_down}: {query}");
            }
        }
    }
}

#[tokio::test]
async fn offsets_skip_rows_in_order() {
    let world = World::with_days(2);
    // The last rows, newest first, are those of the first time.
    let rows = 2 * 96 * 6;
    for partitions in [1, 4] {
        let options = SessionOptions { target_partitions: Some(partitions), ..SessionOptions::default() };
        let session = world.open(&options);
        let inner = format!("(SELECT meter, ts FROM SENSOR ORDER BY ts DESC, meter DESC OFFSET {}) AS z", rows - 3);
        for (query, expected) in [
            (
                format!("SELECT meter, extract(hour FROM ts) FROM {inner} ORDER BY meter DESC, ts DESC"),
                ["3 | 0", "2 | 0", "1 | 0"],
            ),
            (format!("SELECT meter, count(*) FROM {inner} GROUP BY meter ORDER BY meter"), ["1 | 1", "2 | 1", "3 | 1"]),
            (
                format!("SELECT meter, row_number() OVER (ORDER BY ts, meter DESC) FROM {inner} ORDER BY meter"),
                ["1 | 3", "2 | 2", "3 | 1"],
            ),
        ] {
            let found = texts(&run(&session, &query).await);
            assert_eq!(found, expected, "{partitions} parts: {query}");
        }
    }
}

#[tokio::test]
async fn sorted_rows_are_not_repartitioned() {
    let world = World::with_days(4);
    let session = world.open(&SessionOptions { target_partitions: Some(4), ..SessionOptions::default() });
    for query in [
        "SELECT * FROM SENSOR LIMIT 5",
        "SELECT meter, ts FROM SENSOR ORDER BY kwh LIMIT 3",
        "SELECT meter, ts FROM SENSOR ORDER BY kwh LIMIT 300 OFFSET 20",
        "SELECT meter, ts FROM SENSOR ORDER BY kwh OFFSET 20",
        "SELECT meter, sum(kwh) AS s FROM SENSOR GROUP BY meter ORDER BY s DESC LIMIT 3 OFFSET 2",
    ] {
        let plan = plan(&session, query).await;
        assert!(!plan.contains("RoundRobin"), "{plan}");
    }
    // More rows than fit a batch.
    let query = "SELECT a.kwh FROM SENSOR AS a CROSS JOIN (VALUES (1), (2), (3), (4), (5), (6), (7), (8), (9)) AS b \
                 ORDER BY a.kwh DESC LIMIT 20000 OFFSET 100";
    let found = texts(&run(&session, query).await);
    let values: Vec<f64> = found.iter().map(|text| text.parse().unwrap()).collect();
    assert!(values.len() > 20_000 - 100 && values.is_sorted_by(|one, next| one >= next), "{}", values.len());
}
