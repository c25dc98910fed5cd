//! Aggregations by entity over one window: states come in key order, and partitions are key ranges that no entity crosses.

use super::{columns, family, plan, rows, spec};
use crate::run;
use crate::world::World;
use tidetable_sql::SessionOptions;

const METERS: u64 = 4000;
const READINGS: u64 = 96;

/// A day of readings whose values do not compress, so that the window is large enough for several partitions. Every seventh meter is
/// silent for some hours, and no two have the same number of readings in a row.
fn readings() -> String {
    let mut csv = String::from("meter,ts,kwh,tag\n");
    let mut state = 7u64;
    for at in 0..READINGS {
        for meter in 1..=METERS {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            if (meter + at / 8).is_multiple_of(7) {
                continue;
            }
            let (hour, minute) = (at / 4, at % 4 * 15);
            let kwh = (state >> 11) as f64 / 1e9;
            let tag = ["a", "b", "c"][(state >> 40) as usize % 3];
            csv.push_str(&format!("{meter},2018-01-01T{hour:02}:{minute:02}:00Z,{kwh},{tag}\n"));
        }
    }
    csv
}

#[tokio::test]
async fn groups_by_entity_are_merged_where_they_are() {
    let csv = readings();
    let wide = family("M", &[("ID", "{meter}"), ("{ts:%H%M%S}", "{kwh}")]);
    let tall = family("M", &[("kwh", "{kwh}"), ("tag", "{tag}")]);
    for (key, family) in [("{meter:06}#{ts:%Y%m%d}", wide), ("m{meter:06}#{ts:ms}", tall)] {
        let world = World::with_table(columns(), spec(key, vec![family]), &[("M", "maxversions=1")], &csv);
        let plain = world.open(&SessionOptions { without_push_down: true, ..SessionOptions::default() });
        let session = world.session();
        let newest = "SELECT meter, max(ts) AS t, last_value(kwh ORDER BY ts) AS v FROM T GROUP BY meter";
        for (query, in_order) in [
            ("SELECT meter, count(*), max(kwh), min(ts) FROM T GROUP BY meter", true),
            ("SELECT meter, CAST(ts AS DATE), count(kwh) FROM T GROUP BY 1, 2", true),
            ("SELECT DISTINCT meter FROM T", true),
            (newest, true),
            ("SELECT meter, sum(kwh) FROM T WHERE meter > 17 GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT 9", true),
            ("SELECT meter, count(*) FROM T GROUP BY 1 HAVING count(*) > 80 ORDER BY meter DESC", true),
            // An hour is one row, or many in a row.
            ("SELECT meter, extract(hour FROM ts), sum(kwh) FROM T GROUP BY 1, 2", key.contains("ms")),
            ("SELECT meter % 10, count(*) FROM T GROUP BY 1", false),
        ] {
            let found = plan(&session, query).await;
            assert_eq!(found.contains("in key order"), in_order, "{key}: {query}\n{found}");
            assert!(!in_order || !found.contains("RepartitionExec"), "{key}: {query}\n{found}");
            assert!(!in_order || !found.contains("{1 group"), "{key}: {query}\n{found}");
            assert_eq!(rows(&run(&session, query).await), rows(&run(&plain, query).await), "{key}: {query}");
        }

        // Nodes above have other partitions beside these.
        let odd = "SELECT meter % 600 AS meter, min(kwh) AS least FROM T GROUP BY 1";
        for query in [
            format!("SELECT a.meter, a.v, b.least FROM ({newest}) AS a JOIN ({odd}) AS b ON a.meter = b.meter"),
            format!("SELECT a.meter, b.v FROM ({newest}) AS a LEFT JOIN ({newest}) AS b ON a.meter + 1 = b.meter"),
            format!("SELECT count(*) FROM ({newest}) AS a FULL JOIN ({newest}) AS b USING (meter)"),
            format!(
                "SELECT meter, count(*) FROM (SELECT meter FROM ({newest}) UNION ALL SELECT meter FROM ({odd})) GROUP BY 1"
            ),
            format!("SELECT count(DISTINCT v), sum(meter) FROM ({newest})"),
            format!("SELECT meter FROM ({newest}) WHERE meter NOT IN (SELECT meter FROM ({odd}))"),
        ] {
            assert_eq!(rows(&run(&session, &query).await), rows(&run(&plain, &query).await), "{key}: {query}");
        }
    }
}

#[tokio::test]
async fn rows_in_several_ssts_are_read_in_any_order() {
    let wide = family("M", &[("ID", "{meter}"), ("{ts:%H%M%S}", "{kwh}")]);
    let world = World::with_table(columns(), spec("{meter:06}#{ts:%Y%m%d}", vec![wide]), &[], &readings());
    world.load("late.csv", "meter,ts,kwh,tag\n5,2018-01-01T00:10:00Z,1,a\n900,2018-01-01T00:10:00Z,2,a\n");
    let (session, plain) =
        (world.session(), world.open(&SessionOptions { without_push_down: true, ..SessionOptions::default() }));
    let query = "SELECT meter, count(*), last_value(kwh ORDER BY ts) FROM T GROUP BY meter";
    assert!(!plan(&session, query).await.contains("in key order"));
    assert_eq!(rows(&run(&session, query).await), rows(&run(&plain, query).await));
}
