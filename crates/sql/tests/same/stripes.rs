//! Aggregates from stripe stats (counts and bounds), and filters on outliers.

use tidetable_layout::TableSpec;
use tidetable_sql::{Session, SessionOptions};
use tidetable_store::version::DeleteTarget;
use tidetable_upkeep::compaction::CompactionExtent;

use super::{HOUR, columns, csv, family, fields, rows, spec, worlds};
use crate::world::World;
use crate::{count, run, text};

const TOTALS: [&str; 10] = [
    "count(*)",
    "count(*), min(ts), max(ts)",
    "max(ts)",
    "min(kwh), max(kwh), count(kwh)",
    "count(kwh), count(*)",
    "max(kwh), min(ts)",
    "min(meter), max(meter), count(meter)",
    "count(ts), count(tag)",
    "min(tag), max(tag)",
    "count(*), sum(kwh)",
];

fn plain(world: &World) -> Session {
    world.open(&SessionOptions { without_push_down: true, ..SessionOptions::default() })
}

/// The scan metric `count` of `query`.
async fn counted(session: &Session, query: &str, count: &str) -> u64 {
    let shown = text(session, &format!("EXPLAIN ANALYZE {query}")).await;
    let count = format!("{count}=");
    let counts = shown.split(count.as_str()).skip(1);
    let number = |text: &str| text.split(|c: char| !c.is_ascii_digit()).next().unwrap().parse::<u64>().unwrap();
    counts.map(number).sum()
}

#[tokio::test]
async fn totals_from_stripe_stats_equal_those_of_records() {
    for (name, world) in worlds() {
        let plain = plain(&world);
        let frame = plain.sql("SELECT * FROM T").await.unwrap();
        let has = fields(frame.schema().fields().iter().map(|field| field.name().clone()).collect());
        for totals in TOTALS.iter().filter(|totals| has(totals)) {
            for from in ["T", "T WHERE ts >= '2018-01-02' AND ts < '2018-01-04'", "T WHERE meter >= 3"] {
                if !has(from) {
                    continue;
                }
                let query = format!("SELECT {totals} FROM {from}");
                let expected = rows(&run(&plain, &query).await);
                for session in [world.session(), world.session().sequential()] {
                    assert_eq!(rows(&run(&session, &query).await), expected, "{name}: {query}");
                }
            }
        }
    }
}

#[tokio::test]
async fn stripes_answered_by_stats_are_not_read() {
    let daily = || spec("{meter:06}#{ts:%Y%m%d}", vec![family("M", &[("ID", "{meter}"), ("{ts:%H%M%S}", "{kwh}")])]);
    // Every row has readings.
    let full = "meter,ts,kwh,tag\n1,2018-01-01T00:00:00Z,-5,\n1,2018-01-01T01:00:00Z,7.5,\n2,2018-01-02T00:00:00Z,1,\n";
    let make = |gc: &[(&str, &str)]| World::with_table(columns(), daily(), gc, full);
    let query = "SELECT count(*), min(ts), max(ts), min(kwh), max(kwh) FROM T";
    let pages = |world: World| async move { counted(&world.session(), query, "pages_read").await };
    assert_eq!(pages(make(&[])).await, 0);
    assert_eq!(pages(make(&[("M", "maxversions=1")])).await, 0);
    let one = make(&[("M", "maxversions=1")]);
    assert_eq!(
        rows(&run(&one.session(), query).await),
        ["3 | 2018-01-01T00:00:00Z | 2018-01-02T00:00:00Z | -5.0 | 7.5"]
    );
    // Stripes with cells that a GC rule or a tombstone may hide are read.
    assert!(pages(make(&[("M", "maxage=1d")])).await > 0);
    let dropped = make(&[]);
    let (family, qualifier) = ("M".to_owned(), b"010000".to_vec());
    dropped.drop_cells(DeleteTarget::Column { key: b"000001#20180101".to_vec(), family, qualifier, times: None });
    assert!(pages(dropped).await > 0);
    let twice = make(&[]);
    twice.load("b.csv", "meter,ts,kwh,tag\n1,2018-01-01T01:00:00Z,9,\n");
    let merged = pages(twice).await;
    assert!(merged > 0);
    // A late reading hides nothing; only timestamps are compared.
    for gc in [&[][..], &[("M", "maxversions=1")]] {
        let late = make(gc);
        late.load("b.csv", "meter,ts,kwh,tag\n1,2018-01-01T05:00:00Z,9,\n");
        assert!(pages(late).await < merged);
    }
    // A row with only its ID left is a record; and bounds do not distinguish signed zeros.
    let empty = World::with_table(columns(), daily(), &[], &format!("{full}3,2018-01-02T00:00:00Z,,\n"));
    assert_eq!(rows(&run(&empty.session(), "SELECT count(*), count(kwh) FROM T").await), ["4 | 3"]);
    let zeros = World::with_table(columns(), daily(), &[], &format!("{full}3,2018-01-02T00:00:00Z,-0.0,\n"));
    let least = "SELECT min(kwh) FROM T WHERE meter = 3";
    assert_eq!(rows(&run(&zeros.session(), least).await), rows(&run(&plain(&zeros), least).await));
}

#[tokio::test]
async fn stripes_whose_values_a_filter_excludes_are_not_read() {
    // A stripe a day: readings of 1000, 2000 and 3000 and a little.
    let lines =
        |day: u64| (1..=5).map(move |meter| format!("{meter},2018-01-0{day}T0{meter}:00:00Z,{day}00{meter},x\n"));
    let csv: String = std::iter::once("meter,ts,kwh,tag\n".to_owned()).chain((1..=3).flat_map(lines)).collect();
    let daily = || spec("{meter:06}#{ts:%Y%m%d}", vec![family("M", &[("ID", "{meter}"), ("{ts:%H%M%S}", "{kwh}")])]);
    let flat = || spec("{meter:06}#{ts:%Y%m%d}#{ts:%H%M%S}", vec![family("M", &[("kwh", "{kwh}"), ("tag", "{tag}")])]);
    for spec in [daily(), flat()] {
        let world = World::with_table(columns(), spec, &[], &csv);
        let session = world.session();
        for (query, pruned) in [
            ("SELECT meter FROM T WHERE kwh > 2500", 2),
            ("SELECT meter FROM T WHERE kwh < 1500 OR kwh > 3004", 1),
            ("SELECT count(*) FROM T WHERE kwh = 2003", 2),
            ("SELECT meter FROM T WHERE kwh >= 1001", 0),
        ] {
            assert_eq!(counted(&session, query, "stripes_pruned").await, pruned, "{query}");
        }
        // A stripe with cells that another file replaces is read, whatever its values are.
        world.load("b.csv", "meter,ts,kwh,tag\n1,2018-01-01T01:00:00Z,9000,x\n");
        let beyond = "SELECT kwh FROM T WHERE kwh > 3500";
        assert_eq!(rows(&run(&world.session(), beyond).await), ["9000.0"]);
    }
}

/// Enough readings in a stripe for outliers, on both sides.
fn long() -> String {
    let mut csv = csv(1100, 1, HOUR, false, 5);
    for (meter, kwh) in [(17, "70000.5"), (450, "-3000.25"), (451, "99999"), (899, "-2")] {
        csv.push_str(&format!("{meter},2018-01-01T23:59:59Z,{kwh},x\n"));
    }
    csv
}

#[tokio::test]
async fn filters_on_outliers_change_no_result() {
    let daily = || spec("{meter:06}#{ts:%Y%m%d}", vec![family("M", &[("ID", "{meter}"), ("{ts:%H%M%S}", "{kwh}")])]);
    let flat = || spec("{meter:06}#{ts:%Y%m%d}#{ts:%H%M%S}", vec![family("M", &[("kwh", "{kwh}"), ("tag", "{tag}")])]);
    let csv = long();
    let make = |spec: TableSpec| World::with_table(columns(), spec, &[("M", "maxversions=1")], &csv);
    let compacted = make(daily());
    compacted.load("b.csv", "meter,ts,kwh,tag\n5,2018-01-01T05:00:00Z,88888,\n6,2018-01-01T05:00:00Z,1,\n");
    let overlapping = make(daily());
    overlapping.load("b.csv", "meter,ts,kwh,tag\n17,2018-01-01T23:59:59Z,3,\n450,2018-01-01T23:59:59Z,4,\n");
    compacted.compact(CompactionExtent::Full);
    let dropped = make(daily());
    dropped.drop_cells(DeleteTarget::Row { key: b"000017#20180101".to_vec() });
    for (name, world, alone) in [
        ("a day of meters", make(daily()), true),
        ("a row a reading", make(flat()), true),
        ("compacted", compacted, true),
        ("overlapping", overlapping, false),
        ("dropped", dropped, false),
    ] {
        let (plain, session) = (plain(&world), world.session());
        for filter in [
            "kwh > 998",
            "kwh > 999.5",
            "kwh < 1",
            "kwh < 0.5 OR kwh >= 70000.5",
            "kwh BETWEEN 5000 AND 80000",
            "kwh = 99999",
            "kwh > 500",
            "kwh > 998 AND meter < 300",
            "kwh < 0 AND meter BETWEEN 100 AND 500",
            "kwh > 998 AND ts >= '2018-01-01T12:00:00Z'",
            "kwh <> 4 AND kwh > 997",
        ] {
            for query in [
                format!("SELECT meter, ts, kwh FROM T WHERE {filter}"),
                format!("SELECT count(*), sum(meter), min(ts) FROM T WHERE {filter}"),
                format!("SELECT meter, ts FROM T WHERE {filter} ORDER BY meter, ts LIMIT 5"),
            ] {
                let expected = rows(&run(&plain, &query).await);
                assert_eq!(rows(&run(&session, &query).await), expected, "{name}: {query}");
            }
        }
        let pages = |filter| format!("SELECT kwh FROM T WHERE {filter}");
        let beyond = counted(&session, &pages("kwh > 5000"), "pages_read").await;
        let within = counted(&session, &pages("kwh > 500 AND kwh < 502"), "pages_read").await;
        assert_eq!(beyond < within, alone, "{name}: {beyond} and {within} pages");
    }
}

#[tokio::test]
async fn record_counts_do_not_depend_on_the_columns_read() {
    for (name, world) in worlds() {
        for session in [world.session(), plain(&world)] {
            let all = run(&session, "SELECT * FROM T").await;
            let records: usize = all.iter().map(|batch| batch.num_rows()).sum();
            for field in all[0].schema().fields() {
                let of_field = run(&session, &format!("SELECT {} FROM T", field.name())).await;
                let found: usize = of_field.iter().map(|batch| batch.num_rows()).sum();
                assert_eq!(found, records, "{name}: {}", field.name());
            }
            assert_eq!(count(&session, "SELECT count(*) FROM T").await, records as i64, "{name}");
        }
    }
}

/// More groups than a scan holds at once, of which some come again in a file of late readings after their states were sent.
#[tokio::test]
async fn groups_come_again_after_their_states_were_sent() {
    let daily = spec("{meter:06}#{ts:%Y%m%d}", vec![family("M", &[("ID", "{meter}"), ("{ts:%H%M%S}", "{kwh}")])]);
    let world = World::with_table(columns(), daily, &[], &csv(6000, 2, HOUR, false, 7));
    let late = |meter: u64| format!("{meter},2018-01-01T05:30:00Z,{meter},\n");
    world.load("late.csv", &(3000..4000).map(late).fold("meter,ts,kwh,tag\n".to_owned(), |all, line| all + &line));
    let groups = "SELECT meter, extract(hour FROM ts) AS hour, count(*) AS n, sum(kwh) AS s FROM T GROUP BY 1, 2";
    for query in [format!("SELECT count(*), sum(n), sum(s), max(n) FROM ({groups})"), groups.to_owned()] {
        let expected = rows(&run(&plain(&world), &query).await);
        assert_eq!(rows(&run(&world.session(), &query).await), expected);
    }
}

#[tokio::test]
async fn sequential_sums_do_not_depend_on_file_boundaries() {
    let daily = spec("{meter:06}#{ts:%Y%m%d}", vec![family("M", &[("ID", "{meter}"), ("{ts:%H%M%S}", "{kwh}")])]);
    let world = World::with_table(columns(), daily, &[], &csv(1100, 1, HOUR, false, 5));
    let later = csv(1500, 1, HOUR, false, 6);
    world.load("b.csv", &later);
    let query = "SELECT sum(kwh / 7), avg(kwh / 3), sum(kwh / 11) FILTER (WHERE meter % 2 = 0) FROM T";
    let before = rows(&run(&world.session().sequential(), query).await);
    world.compact(CompactionExtent::Full);
    assert_eq!(rows(&run(&world.session().sequential(), query).await), before);
}
