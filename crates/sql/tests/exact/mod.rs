//! Sums and averages of floats have the same bits on any number of threads, over any files and layouts.

use std::collections::BTreeMap;

use arrow::array::AsArray;
use arrow::datatypes::Float64Type;
use tidetable_layout::spec::FamilySpec;
use tidetable_layout::{FieldType, TableSpec};
use tidetable_source::ColumnSpec as SourceColumn;
use tidetable_sql::SessionOptions;
use tidetable_upkeep::compaction::CompactionExtent;

use super::world::{World, column};
use super::{run, text};

const METERS: u64 = 5;
const DAYS: u64 = 4;
const READINGS: u64 = 24;
/// How often each query runs on each number of threads, in each state of a table: 210 times in all.
const TIMES: usize = 7;

const QUERIES: [&str; 8] = [
    "SELECT sum(kwh), avg(kwh), sum(ratio), avg(ratio), sum(wild), avg(wild) FROM T",
    "SELECT meter, sum(kwh), avg(kwh), sum(ratio), avg(ratio), sum(wild) FROM T GROUP BY meter ORDER BY meter",
    "SELECT CAST(ts AS DATE) AS day, sum(kwh), avg(ratio), sum(wild) FROM T GROUP BY day ORDER BY day",
    "SELECT date_bin(INTERVAL '3 hours', ts) AS bin, sum(kwh), sum(ratio), sum(wild) FROM T GROUP BY bin ORDER BY bin",
    "SELECT sum(kwh) FILTER (WHERE ratio > 0), avg(wild) FILTER (WHERE kwh > 3), sum(DISTINCT kwh), avg(DISTINCT ratio) \
     FROM T",
    "SELECT meter % 2 AS half, sum(kwh * 3), sum(-ratio), avg(kwh + ratio) FROM T GROUP BY half ORDER BY half",
    "SELECT meter, ts, sum(kwh) OVER w, avg(ratio) OVER w, sum(wild) OVER w FROM T \
     WINDOW w AS (PARTITION BY meter ORDER BY ts ROWS BETWEEN 11 PRECEDING AND CURRENT ROW) ORDER BY meter, ts",
    "SELECT meter, ts, sum(wild) OVER (PARTITION BY meter ORDER BY ts), \
     sum(ratio) OVER (PARTITION BY meter ORDER BY ts ROWS BETWEEN 3 PRECEDING AND 2 FOLLOWING) FROM T ORDER BY meter, ts",
];

fn columns() -> Vec<SourceColumn> {
    let mut columns =
        vec![SourceColumn::new("meter", FieldType::UInt64), SourceColumn::new("ts", FieldType::Timestamp)];
    columns.extend(["kwh", "ratio", "wild"].map(|name| SourceColumn::new(name, FieldType::Float64)));
    columns
}

/// Hundredths of a kWh, from 0 to 9.99.
fn hundredths(meter: u64, day: u64, at: u64) -> u64 {
    (meter * 7919 + day * 104_729 + at * 1_299_709) % 1000
}

/// Readings of some days, in an order that depends on `turn`. `kwh` has two decimals, `ratio` all digits of a float, and `wild` magnitudes
/// that cancel out, decimals, and nulls.
fn csv(days: std::ops::Range<u64>, turn: usize) -> String {
    let mut lines = Vec::new();
    for day in days {
        for at in 0..READINGS {
            for meter in 1..=METERS {
                let time = format!("2018-01-{:02}T{at:02}:00:00Z", day + 1);
                let of = hundredths(meter, day, at);
                let ratio = (of as f64 + 0.5).sin();
                let wild = match of % 6 {
                    0 => String::new(),
                    1 => format!("{}e18", of),
                    2 => format!("-{}e18", of),
                    3 => format!("{of}.000001"),
                    4 => format!("{:e}", ratio * 1e-12),
                    _ => format!("{:e}", -ratio),
                };
                lines.push(format!("{meter},{time},{}.{:02},{ratio:e},{wild}", of / 100, of % 100));
            }
        }
    }
    let half = lines.len() / 2;
    lines.rotate_left(turn * half / 3);
    format!("meter,ts,kwh,ratio,wild\n{}\n", lines.join("\n"))
}

fn table(row_key: &str, qualifier: &str) -> TableSpec {
    let family = |name: &str, value: &str| FamilySpec {
        name: name.to_owned(),
        columns: vec![column(qualifier, value)],
        ..FamilySpec::default()
    };
    TableSpec {
        name: "T".to_owned(),
        row_key: row_key.to_owned(),
        families: vec![family("K", "{kwh}"), family("R", "{ratio}"), family("W", "{wild}")],
        ..TableSpec::default()
    }
}

/// One family, so that rows have sums beside their values.
fn joined(row_key: &str, qualifier: &str) -> TableSpec {
    let columns = ["kwh", "ratio", "wild"].map(|name| column(&format!("{name}{qualifier}"), &format!("{{{name}}}")));
    let family = FamilySpec { name: "F".to_owned(), columns: columns.into(), ..FamilySpec::default() };
    TableSpec { name: "T".to_owned(), row_key: row_key.to_owned(), families: vec![family], ..TableSpec::default() }
}

/// The result of each query in this state of a table; every run must give the same.
async fn results(world: &World, state: &str, known: &mut BTreeMap<&'static str, String>) {
    for threads in [1, 2, 8] {
        for without_push_down in [false, true] {
            let options =
                SessionOptions { target_partitions: Some(threads), without_push_down, ..SessionOptions::default() };
            let session = world.open(&options);
            for query in QUERIES {
                let times = if without_push_down { 1 } else { TIMES };
                for _ in 0..times {
                    let found = text(&session, query).await;
                    let expected = known.entry(query).or_insert_with(|| found.clone());
                    assert_eq!(*expected, found, "{query}: {state}, {threads} threads");
                }
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn sums_of_floats_have_the_same_bits_everywhere() {
    let layouts = [
        ("columns of a day", table("{meter:02}#{ts:%Y%m%d}", "{ts:%H%M}")),
        ("cells of a day", joined("{meter:02}#{ts:%Y%m%d}", "")),
        ("tall", joined("{meter:02}#{ts:ms}", "")),
        ("by time", joined("{ts:%Y%m%d%H}#{meter:02}", "")),
        ("a row for ever", joined("{meter:02}", "")),
    ];
    let mut known = BTreeMap::new();
    for (name, spec) in layouts {
        let world = World::with_table(columns(), spec, &[], &csv(0..DAYS - 1, 0));
        world.load("b.csv", &csv(DAYS - 1..DAYS, 1));
        world.load("c.csv", &csv(0..1, 2));
        results(&world, &format!("{name}, as loaded"), &mut known).await;
        world.compact(CompactionExtent::Full);
        results(&world, &format!("{name}, compacted"), &mut known).await;
    }
}

#[tokio::test]
async fn sums_of_readings_are_those_of_what_was_written() {
    let world = World::with_table(columns(), joined("{meter:02}#{ts:%Y%m%d}", ""), &[], &csv(0..DAYS, 0));
    let mut hundred = 0;
    for meter in 1..=METERS {
        for day in 0..DAYS {
            hundred += (0..READINGS).map(|at| hundredths(meter, day, at)).sum::<u64>();
        }
    }
    let found = run(&world.session(), "SELECT sum(kwh), avg(kwh) FROM T").await;
    let float = |at: usize| found[0].column(at).as_primitive::<Float64Type>().value(0);
    let count = METERS * DAYS * READINGS;
    assert_eq!(float(0), format!("{}.{:02}", hundred / 100, hundred % 100).parse::<f64>().unwrap());
    assert_eq!(float(1), hundred as f64 / (100 * count) as f64);
}
