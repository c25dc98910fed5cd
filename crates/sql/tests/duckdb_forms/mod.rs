//! Forms that DuckDB has and DataFusion has not: the same text in both gives the same rows.

use arrow::util::display::{ArrayFormatter, FormatOptions};
use tidetable_sql::Session;

use super::duckdb::{python_with, run_script};
use super::world::World;

/// Readings of two meters, some without a value, on both sides of the ends of an hour, a month and a year.
const ROWS: &str = "WITH t(meter, kind, ts, kwh) AS (VALUES
 (1, 'a', TIMESTAMP '2023-12-31 23:30:00', 1.5), (1, 'b', TIMESTAMP '2024-01-01 00:15:00', 2.5),
 (2, 'a', TIMESTAMP '2024-01-31 10:00:00', 4.0), (2, 'b', TIMESTAMP '2024-02-01 10:59:59', CAST(NULL AS DOUBLE)),
 (2, 'a', TIMESTAMP '2024-02-05 11:00:01', 8.0), (2, NULL, TIMESTAMP '2024-04-01 00:00:00', 3.0)),
 limits(meter, most) AS (VALUES (1, 2.0), (3, 1.0)) ";

const QUERIES: [&str; 35] = [
    "SELECT * FROM t PIVOT (sum(kwh) FOR kind IN ('a', 'b')) ORDER BY ALL",
    "SELECT * FROM (SELECT meter, kind, kwh FROM t) PIVOT (sum(kwh) FOR kind IN ('a', 'b')) ORDER BY meter",
    "SELECT meter, a_total, b_most FROM (SELECT meter, kind, kwh FROM t) PIVOT (sum(kwh) AS total, max(kwh) AS most FOR kind IN ('a', 'b')) \
     ORDER BY meter",
    "SELECT x FROM (SELECT kind, meter, kwh FROM t) PIVOT (count(kwh) FOR meter IN (1 AS x, 2 AS y)) ORDER BY ALL",
    "SELECT * FROM (SELECT meter, kwh, kwh * 2 AS double FROM t) UNPIVOT (value FOR what IN (kwh, double)) ORDER BY ALL",
    "SELECT * FROM (SELECT meter, kwh, kwh * 2 AS double FROM t) UNPIVOT INCLUDE NULLS (value FOR what IN (kwh, double)) ORDER BY ALL",
    "SELECT meter, kind FROM t SEMI JOIN limits USING (meter) ORDER BY ALL",
    "SELECT meter, kind FROM t ANTI JOIN limits ON t.meter = limits.meter ORDER BY ALL",
    "SELECT kind, meter FROM t ORDER BY ALL DESC NULLS LAST",
    "SELECT meter, sum(kwh) FROM t GROUP BY ALL ORDER BY ALL",
    "SELECT strftime(ts, '%Y/%m') AS m, count(*) FROM t GROUP BY ALL ORDER BY ALL",
    "SELECT strftime('%d', ts) FROM t ORDER BY ts",
    "SELECT year(ts), quarter(ts), month(ts), day(ts), hour(ts), minute(ts), dayofyear(ts), dayofweek(ts), week(ts) FROM t ORDER BY ts",
    "SELECT year(birthday), week(workday) FROM (SELECT ts AS birthday, ts AS workday FROM t) ORDER BY ALL",
    "SELECT dayname(ts), monthname(ts) FROM t ORDER BY ts",
    "SELECT epoch(ts) FROM t ORDER BY ts",
    "SELECT date_diff('hour', min(ts), max(ts)), date_diff('day', min(ts), max(ts)), date_diff('month', min(ts), max(ts)) FROM t",
    "SELECT date_diff('year', min(ts), max(ts)), date_diff('minute', max(ts), min(ts)) FROM t",
    "SELECT datediff('quarter', ts, TIMESTAMP '2024-12-31 00:00:00') FROM t ORDER BY ts",
    "SELECT len('abc'), list_value(1, 2), string_split('a,b', ','), regexp_matches('abc', 'b')",
    "SELECT list(kwh ORDER BY ts) FROM t WHERE kwh IS NOT NULL",
    "SELECT list_transform([1, 2], x -> x + 1), list_filter([1, 2, 3], x -> x > 1)",
    "SELECT arg_max(kind, kwh, 2) FROM t WHERE kind IS NOT NULL",
    "SELECT arg_min(meter, kwh, 3), max(kwh, 2), min(kwh, 9) FROM t",
    "SELECT meter, max_by(kwh, ts, 2) FROM t WHERE kwh IS NOT NULL GROUP BY meter ORDER BY meter",
    "SELECT meter, max(kwh, 1) FILTER (WHERE kind = 'a') FROM t GROUP BY meter ORDER BY meter",
    "SELECT count_if(kwh > 2) FROM t",
    "SELECT meter + 1, sum(kwh) FROM t GROUP BY ALL ORDER BY ALL DESC",
    "SELECT fsum(kwh), favg(kwh), group_concat(kind, '-' ORDER BY ts) FROM t",
    "SELECT datetrunc('month', ts), datepart('hour', ts) FROM t ORDER BY ts",
    "SELECT today() = current_date, strptime('2024-02-03', '%Y-%m-%d') = TIMESTAMP '2024-02-03 00:00:00'",
    "FROM t SELECT meter ORDER BY ts LIMIT 2",
    "SELECT meter, kwh FROM t QUALIFY row_number() OVER (PARTITION BY meter ORDER BY ts) = 1 ORDER BY meter",
    "SELECT * EXCLUDE (ts) FROM t ORDER BY ALL",
    "SELECT meter, median(kwh), quantile_cont(kwh, 0.5), any_value(meter) FROM t GROUP BY meter ORDER BY meter",
];

/// The rows of a query as a line of JSON.
async fn answer(session: &Session, query: &str) -> String {
    let asked =
        async { Ok::<_, tidetable_sql::SqlError>(session.sql(&format!("{ROWS}{query}")).await?.collect().await?) };
    let batches = asked.await.unwrap_or_else(|error| panic!("{query}: {error}"));
    let options = FormatOptions::new().with_null("NULL");
    let mut rows = Vec::new();
    for batch in &batches {
        let columns: Vec<_> =
            batch.columns().iter().map(|column| ArrayFormatter::try_new(column, &options).unwrap()).collect();
        for row in 0..batch.num_rows() {
            rows.push(columns.iter().map(|column| format!("{:?}", column.value(row).to_string())).collect::<Vec<_>>());
        }
    }
    let rows: Vec<String> = rows.iter().map(|row| format!("[{}]", row.join(", "))).collect();
    format!("{{\"query\": {query:?}, \"rows\": [{}]}}\n", rows.join(", "))
}

#[tokio::test]
async fn forms_of_duckdb_give_its_rows() {
    let world = World::with_days(1);
    let session = world.session();
    let mut told = String::new();
    for query in QUERIES {
        told.push_str(&answer(&session, query).await);
    }
    if let Some(python) = python_with("duckdb") {
        run_script(&python, "duckdb_forms/check.py", &[ROWS], told);
    }
}

#[tokio::test]
async fn refused_forms_say_what_is_read() {
    let world = World::with_days(1);
    let session = world.session();
    for (query, advice) in [
        ("PIVOT t ON kind USING sum(kwh)", "FROM t PIVOT (sum(v) FOR k IN ('a', 'b'))"),
        ("UNPIVOT t ON kwh", "FROM t UNPIVOT (v FOR k IN (a, b))"),
        ("SELECT * FROM SENSOR PIVOT (sum(kwh) FOR meter IN (ANY))", "PIVOT takes its values as a list"),
        ("SELECT * FROM SENSOR USING SAMPLE 10", "ORDER BY random() LIMIT 10"),
        ("SELECT 2 ** 3", "a ^ b"),
        ("SELECT sum(kwh) FILTER (kwh > 1) FROM SENSOR", "FILTER (WHERE ..)"),
        ("SELECT COLUMNS('k.*') FROM SENSOR", "* EXCLUDE (a, b)"),
        ("SELECT epoch_ms(ts) FROM SENSOR", "date_part('epoch', ts) * 1000"),
        ("INSTALL httpfs", "formats and functions are built in"),
        ("PRAGMA version", "settings are options"),
        ("ATTACH 'x.db'", "files are read by their names"),
    ] {
        let told = match session.sql(query).await {
            Err(error) => error.to_string(),
            Ok(_) => panic!("{query} is answered"),
        };
        assert!(told.contains(advice), "{query}: {told}");
    }
}
