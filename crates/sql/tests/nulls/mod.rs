//! Constants and orders that meet NULLs made later: grouping sets, outer joins and unions over keys that WHERE fixes, for every
//! layout, against the same query without pushdown and against DuckDB.

mod generator;

use serde_json::{Value, json};
use tidetable_sql::{Session, SessionOptions};

use self::generator::Generator;
use super::duckdb::{python_with, run_script};
use super::same::{texts, worlds};
use crate::world::World;

const SEED: u64 = 20_261_125;
/// Queries of each layout; `TIDETABLE_QUERIES` asks for more.
const QUERIES: usize = 14;

/// The rows of `query` as text, `None` for NULL.
async fn rows(session: &Session, query: &str) -> Result<Vec<Vec<Option<String>>>, String> {
    let asked = async { Ok::<_, tidetable_sql::SqlError>(session.sql(query).await?.collect().await?) };
    let batches = asked.await.map_err(|error| error.to_string())?;
    let split = |row: String| row.split(" | ").map(|value| (value != "NULL").then(|| value.to_owned())).collect();
    Ok(texts(&batches).into_iter().map(split).collect())
}

fn sorted(mut rows: Vec<Vec<Option<String>>>) -> Vec<Vec<Option<String>>> {
    rows.sort();
    rows
}

#[tokio::test]
async fn windows_of_different_orders_are_planned_in_one_partition() {
    let world = World::with_days(1);
    let session = world.open(&SessionOptions { memory: Some(64 << 20), ..SessionOptions::default() });
    let joined = "(SELECT y.meter, y.unit, y.kwh, y.ts FROM (SELECT meter, ts FROM SENSOR) AS x RIGHT JOIN \
                  (SELECT meter, ts, kwh, 'kWh' AS unit FROM SENSOR WHERE meter = 4) AS y ON x.meter = y.meter AND x.ts = y.ts) AS j";
    for windows in [
        "count(*) OVER (PARTITION BY meter, unit), rank() OVER (PARTITION BY meter, unit ORDER BY kwh)",
        "rank() OVER (ORDER BY unit, kwh), rank() OVER (PARTITION BY unit ORDER BY ts DESC)",
        "row_number() OVER (ORDER BY unit, kwh), row_number() OVER (ORDER BY kwh DESC, unit)",
    ] {
        let found = rows(&session, &format!("SELECT {windows} FROM {joined}")).await.unwrap();
        assert_eq!(found.len(), 96, "{windows}");
    }
}

#[tokio::test]
async fn a_join_that_spills_compares_the_columns_of_its_filter() {
    let world = World::with_days(1);
    let limited = world.open(&SessionOptions { memory: Some(1 << 20), ..SessionOptions::default() });
    let tables = "WITH a AS (SELECT ts, meter % 3 AS k, kwh, meter FROM SENSOR WHERE meter < 9), \
                  b AS (SELECT kwh AS y, meter % 3 AS k, meter AS m, ts FROM SENSOR WHERE meter < 9)";
    for join in ["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"] {
        for columns in ["a.k, a.meter, b.k AS l, b.m", "a.meter, a.k, b.m, b.k AS l", "a.k, b.k AS l"] {
            let query =
                format!("{tables} SELECT {columns} FROM a {join} b ON a.k = b.k AND a.ts > b.ts AND a.kwh < b.y");
            let expected = sorted(rows(&world.session(), &query).await.unwrap());
            assert!(!expected.is_empty(), "{query}");
            assert_eq!(sorted(rows(&limited, &query).await.unwrap()), expected, "{query}");
        }
    }
}

/// The sessions that are asked in turn.
fn sessions(world: &World) -> [(&'static str, Session); 5] {
    let memory = |bytes| SessionOptions { memory: Some(bytes), ..SessionOptions::default() };
    let of_one = SessionOptions { target_partitions: Some(1), ..SessionOptions::default() };
    [
        ("three partitions", world.session()),
        ("one partition", world.open(&of_one)),
        ("sequential", world.session().sequential()),
        ("memory", world.open(&memory(64 << 20))),
        ("little memory", world.open(&memory(1 << 20))),
    ]
}

#[tokio::test]
async fn nulls_made_above_constants_and_orders_keep_groups_whole() {
    let queries = std::env::var("TIDETABLE_QUERIES").ok().and_then(|count| count.parse().ok()).unwrap_or(QUERIES);
    let seed = std::env::var("TIDETABLE_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(SEED);
    let mut lines = Vec::new();
    let mut wrong = Vec::new();
    for (at, (name, world)) in worlds().into_iter().enumerate() {
        let plain = world.open(&SessionOptions { without_push_down: true, ..SessionOptions::default() });
        let frame = plain.sql("SELECT * FROM T").await.unwrap();
        let columns: Vec<String> = frame.schema().fields().iter().map(|field| field.name().clone()).collect();
        let columns: Vec<&String> =
            columns.iter().filter(|name| ["meter", "ts", "kwh", "tag"].contains(&name.as_str())).collect();
        let listed = columns.iter().map(|name| name.as_str()).collect::<Vec<_>>().join(", ");
        let readings = rows(&plain, &format!("SELECT {listed} FROM T")).await.unwrap();
        lines.push(json!({ "layout": name, "columns": columns, "rows": readings }));

        let mut generator = Generator::new(seed + at as u64, |wanted| columns.iter().any(|name| *name == wanted));
        let sessions = sessions(&world);
        for nth in 0..queries {
            let query = generator.query();
            let (kind, session) = &sessions[nth % sessions.len()];
            let (found, expected) = (rows(session, &query.sql).await, rows(&plain, &query.sql).await);
            let is_same = match query.is_ordered {
                true => found == expected,
                false => found.clone().map(sorted) == expected.clone().map(sorted),
            };
            if !is_same {
                wrong.push(format!("{name}, {kind}: {}\n  found    {found:?}\n  expected {expected:?}", query.sql));
            }
            match found {
                Ok(found) => lines.push(json!({
                    "query": query.sql, "ordered": query.is_ordered, "session": kind, "rows": found,
                })),
                Err(error) => wrong.push(format!("{name}, {kind}: {}\n  {error}", query.sql)),
            }
        }
    }
    wrong.iter().take(10).for_each(|wrong| eprintln!("{wrong}"));
    compare_with_duckdb(&lines);
    assert!(wrong.is_empty(), "{} queries differ from those without pushdown, or fail", wrong.len());
}

/// Asks DuckDB the same, if there is one.
fn compare_with_duckdb(lines: &[Value]) {
    if let Some(python) = python_with("duckdb, pyarrow") {
        let input: String = lines.iter().map(|line| format!("{line}\n")).collect();
        run_script(&python, "nulls/check.py", &[], input);
    }
}
