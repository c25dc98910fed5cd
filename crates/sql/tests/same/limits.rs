//! Limits of inner queries, whose rows must not depend on the order or the filter of the query around them.

use arrow::array::AsArray;
use arrow::datatypes::{TimestampMicrosecondType, UInt64Type};
use tidetable_sql::SessionOptions;

use super::{columns, csv, family, plan, rows, spec};
use crate::run;
use crate::world::{DAY, START, World};

const HOUR: i64 = 3_600_000_000;

/// Times and meters of the rows of `query`, which has these columns first.
async fn times_and_meters(session: &tidetable_sql::Session, query: &str) -> Vec<(i64, u64)> {
    let mut out = Vec::new();
    for batch in run(session, query).await {
        let times = batch.column(0).as_primitive::<TimestampMicrosecondType>();
        let meters = batch.column(1).as_primitive::<UInt64Type>();
        out.extend(times.values().iter().copied().zip(meters.values().iter().copied()));
    }
    out
}

#[tokio::test]
async fn inner_limits_keep_their_rows_below_other_orders_and_joins() {
    for key in ["{ts:ms}#{meter:06}", "{meter:06}#{ts:ms}", "{meter:06}#{ts:%Y%m%d}"] {
        let qualifier = if key.contains('%') { "{ts:%H%M%S}" } else { "kwh" };
        let world = World::with_table(
            columns(),
            spec(key, vec![family("M", &[(qualifier, "{kwh}")])]),
            &[],
            &csv(7, 4, HOUR, false, 1),
        );
        for partitions in [1, 3] {
            let options = SessionOptions { target_partitions: Some(partitions), ..SessionOptions::default() };
            let parallel = world.open(&options);
            for session in [parallel.sequential(), parallel] {
                let mut all = times_and_meters(&session, "SELECT ts, meter FROM T").await;
                all.sort_unstable();
                let mut oldest: Vec<(i64, u64)> = all.iter().copied().take(10).collect();
                oldest.sort_by_key(|(time, meter)| (-time, *meter));
                let query = "SELECT * FROM (SELECT ts, meter FROM T ORDER BY ts, meter LIMIT 10) s \
                             ORDER BY ts DESC, meter LIMIT 5";
                assert_eq!(times_and_meters(&session, query).await, oldest[..5], "{key} {partitions}");

                let second = START + DAY..START + 2 * DAY;
                let mut first: Vec<(i64, u64)> = all
                    .iter()
                    .copied()
                    .filter(|(time, meter)| [2, 4, 6].contains(meter) && second.contains(time))
                    .collect();
                first.sort_by_key(|(time, meter)| (*meter, *time));
                first.truncate(10);
                first.sort_by_key(|(time, _)| -time);
                let query = "SELECT * FROM (SELECT ts, meter FROM T WHERE meter IN (2, 4, 6) AND ts >= '2018-01-02' \
                             AND ts < '2018-01-03' ORDER BY meter, ts LIMIT 10) s ORDER BY ts DESC LIMIT 5";
                assert_eq!(times_and_meters(&session, query).await, first[..5], "{key} {partitions}");

                let query = "SELECT f.* FROM (SELECT date_trunc('day', max(ts)) AS ts FROM T) d \
                             JOIN (SELECT ts, meter FROM T ORDER BY ts, meter LIMIT 10) f ON f.ts = d.ts";
                assert_eq!(times_and_meters(&session, query).await, [], "{key} {partitions}");
            }
        }
    }
}

#[tokio::test]
async fn top_rows_of_groups_equal_those_of_a_sort() {
    let world = World::with_table(
        columns(),
        spec("{ts:ms}#{meter:06}", vec![family("M", &[("kwh", "{kwh}"), ("tag", "{tag}")])]),
        &[],
        &csv(7, 4, HOUR, false, 1),
    );
    let by = |function: &str, groups: &str, order: &str, filter: &str| {
        format!(
            "SELECT * FROM (SELECT meter, ts, kwh, tag, {function} OVER (PARTITION BY {groups} ORDER BY {order}) AS n FROM T) \
             WHERE {filter}"
        )
    };
    let beside = "SELECT * FROM (SELECT meter, ts, row_number() OVER (PARTITION BY tag ORDER BY kwh, ts, meter) AS n, \
                  sum(kwh) OVER (PARTITION BY tag ORDER BY kwh, ts, meter ROWS BETWEEN CURRENT ROW AND 2 FOLLOWING) AS s FROM T) \
                  WHERE n = 1";
    let limited = [
        by("row_number()", "tag", "kwh DESC NULLS LAST, ts, meter", "n = 1"),
        by("row_number()", "tag, CAST(ts AS DATE)", "kwh, ts, meter", "n <= 3"),
        by("row_number()", "meter", "kwh NULLS FIRST, ts", "n < 3 AND ts >= '2018-01-02'"),
        by("row_number()", "meter", "ts DESC", "2 >= n AND kwh > 100"),
        by("rank()", "tag", "kwh DESC", "n <= 2"),
        by("rank()", "extract(hour FROM ts)", "kwh", "n = 1"),
    ];
    let others = [
        by("row_number()", "meter", "ts", "n > 2"),
        by("dense_rank()", "tag", "kwh", "n <= 2"),
        by("row_number()", "meter", "kwh, ts", "n = 2 OR kwh IS NULL"),
        beside.to_owned(),
    ];
    let session = world.session();
    // A memory limit leaves the sort, and with it the rule, out.
    let sorting = world.open(&SessionOptions { memory: Some(64 << 20), ..SessionOptions::default() });
    for (query, is_limited) in limited.iter().zip([true; 6]).chain(others.iter().zip([false; 4])) {
        let expected = rows(&run(&sorting, query).await);
        assert!(expected.len() > 1, "{query}");
        assert_eq!(rows(&run(&session, query).await), expected, "{query}");
        let text = plan(&session, query).await;
        assert_eq!(text.contains("PartitionedTopKExec"), is_limited, "{query}: {text}");
        assert!(!plan(&sorting, query).await.contains("PartitionedTopKExec"), "{query}");
    }
}
