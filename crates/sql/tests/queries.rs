//! Queries over small tables, compared with arithmetic and with the same query without pushdown.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]
#![expect(clippy::print_stderr, reason = "a skipped test says why")]

mod duckdb;
mod duckdb_forms;
mod exact;
mod googlesql;
mod joins;
mod long;
mod nulls;
mod pass;
mod precedence;
mod same;
mod series;
mod sizes;
mod slt;
mod subqueries;
mod totals;
mod views;
mod workarounds;
mod world;

use arrow::array::{AsArray, RecordBatch};
use arrow::datatypes::{Int64Type, TimestampMicrosecondType, UInt64Type};
use arrow::util::pretty::pretty_format_batches;
use datafusion::scalar::ScalarValue;
use tidetable_sql::{Session, SessionOptions, SqlError};

use world::{DAY, METERS, READINGS, START, World};

async fn run(session: &Session, query: &str) -> Vec<RecordBatch> {
    session.sql(query).await.unwrap().collect().await.unwrap()
}

async fn text(session: &Session, query: &str) -> String {
    pretty_format_batches(&run(session, query).await).unwrap().to_string()
}

async fn count(session: &Session, query: &str) -> i64 {
    run(session, query).await[0].column(0).as_primitive::<Int64Type>().value(0)
}

async fn plan(session: &Session, query: &str) -> String {
    text(session, &format!("EXPLAIN {query}")).await
}

#[tokio::test]
async fn counts_and_sums_are_exact() {
    let world = World::with_days(3);
    let session = world.session();
    let rows = (METERS * READINGS * 3) as i64;
    for query in ["SELECT count(*) FROM SENSOR", "SELECT COUNT(*) FROM records.SENSOR", "SELECT count(kwh) FROM SENSOR"]
    {
        assert_eq!(count(&session, query).await, rows, "{query}");
    }
    // kwh = meter * 100 + reading.
    let sums = run(&session, "SELECT CAST(sum(kwh) AS BIGINT), sum(meter), count(DISTINCT ts) FROM SENSOR").await;
    let kwh: i64 = (1..=METERS).flat_map(|meter| (0..READINGS).map(move |at| (meter * 100 + at) as i64)).sum();
    assert_eq!(sums[0].column(0).as_primitive::<Int64Type>().value(0), kwh * 3);
    let meters = (1..=METERS).sum::<u64>() * READINGS * 3;
    assert_eq!(sums[0].column(1).as_primitive::<UInt64Type>().value(0), meters);
    assert_eq!(sums[0].column(2).as_primitive::<Int64Type>().value(0), (READINGS * 3) as i64);
}

#[tokio::test]
async fn names_keep_their_case() {
    let world = World::with_days(1);
    let session = world.session();
    let error = session.sql("SELECT Kwh FROM SENSOR").await.unwrap_err().to_string();
    assert!(error.contains("Kwh"), "{error}");
    assert!(session.sql("SELECT kwh FROM sensor").await.is_err());
    let error = session.sql("SELECT kwh FROM NOTHING").await.unwrap_err().to_string();
    assert!(error.contains("NOTHING"), "{error}");
}

#[tokio::test]
async fn select_all_is_planned_without_expanding_columns() {
    let world = World::with_days(2);
    let session = world.session();
    let has_list =
        |plan: &datafusion::logical_expr::LogicalPlan| plan.display_indent().to_string().contains("Projection");
    for rest in [
        "",
        " AS s",
        " WHERE meter = 2",
        " ORDER BY ts DESC, meter LIMIT 3",
        " WHERE kwh > (SELECT avg(kwh) FROM SENSOR) ORDER BY kwh + 1 DESC, ts LIMIT 5 OFFSET 2",
        " ORDER BY meter, ts LIMIT 2",
    ] {
        let all = session.sql(&format!("SELECT * FROM SENSOR{rest}")).await.unwrap();
        let listed = session.sql(&format!("SELECT meter, ts, kwh FROM SENSOR{rest}")).await.unwrap();
        assert!(
            !has_list(all.logical_plan()) || rest.contains("avg"),
            "{rest}: {}",
            all.logical_plan().display_indent()
        );
        assert!(has_list(listed.logical_plan()), "{rest}");
        assert_eq!(all.schema().fields(), listed.schema().fields(), "{rest}");
        let shown = |batches: Vec<RecordBatch>| pretty_format_batches(&batches).unwrap().to_string();
        let mut rows = [shown(all.collect().await.unwrap()), shown(listed.collect().await.unwrap())];
        if !rest.contains("ORDER") {
            rows = rows.map(|rows| {
                let mut lines: Vec<&str> = rows.lines().collect();
                lines.sort_unstable();
                lines.join("\n")
            });
        }
        assert_eq!(rows[0], rows[1], "{rest}");
    }
    // Other queries are planned as usual.
    for (query, columns) in [
        ("SELECT * FROM SENSOR ORDER BY 1 LIMIT 2", 3),
        ("SELECT DISTINCT * FROM SENSOR", 3),
        ("SELECT *, kwh + 1 FROM SENSOR", 4),
        ("SELECT * FROM SENSOR AS a JOIN SENSOR AS b USING (meter, ts)", 4),
        ("SELECT * FROM SENSOR ORDER BY row_number() OVER (ORDER BY ts, meter) LIMIT 2", 3),
        ("SELECT * EXCEPT (kwh) FROM SENSOR", 2),
        ("WITH s AS (SELECT ts FROM SENSOR) SELECT * FROM s ORDER BY ts", 1),
        ("SELECT * FROM (VALUES (1, 2)) AS v(a, b)", 2),
    ] {
        let frame = session.sql(query).await.unwrap();
        assert_eq!(frame.schema().fields().len(), columns, "{query}");
        assert!(frame.collect().await.unwrap().iter().all(|batch| batch.num_columns() == columns), "{query}");
    }
}

#[tokio::test]
async fn filter_pushdown_changes_no_result() {
    let world = World::with_days(3);
    let session = world.session();
    let plain = world.open(&SessionOptions { without_push_down: true, ..SessionOptions::default() });
    for filter in [
        "meter = 3",
        "meter = 3 AND ts >= '2018-01-02' AND ts < '2018-01-03'",
        "3 >= meter AND meter > 1",
        "meter IN (1, 4, 99)",
        "meter IN (1, 2, 3, 4, 5, 6)",
        "meter BETWEEN 2 AND 3",
        "meter = 1 OR meter = 5",
        "meter = 1 OR kwh > 500",
        "ts >= '2018-01-03'",
        "ts > '2018-01-01T23:00:00Z' AND ts <= '2018-01-02T01:00:00Z'",
        "ts = '2018-01-02T00:15:00Z'",
        "CAST(ts AS DATE) = '2018-01-02'",
        "CAST(ts AS DATE) > '2018-01-02'",
        "ts BETWEEN '2018-01-02' AND '2018-01-02T12:00:00Z'",
        "meter <> 3 AND ts < '2018-01-02'",
        "meter = 3 AND meter = 4",
        "meter > -1 AND meter < 2.5",
        "ts > TIMESTAMP '2018-01-02 00:00:00' + INTERVAL '1 day'",
        "kwh = 302.0",
        "meter IS NULL",
        "NOT meter = 2",
    ] {
        let query = format!("SELECT count(*), sum(meter), sum(kwh) FROM SENSOR WHERE {filter}");
        assert_eq!(text(&session, &query).await, text(&plain, &query).await, "{filter}");
        let query = format!("SELECT * FROM SENSOR WHERE {filter} ORDER BY meter, ts");
        assert_eq!(text(&session, &query).await, text(&plain, &query).await, "{filter}");
    }
}

#[tokio::test]
async fn explain_shows_what_is_read() {
    let world = World::with_days(3);
    let session = world.session();
    let all = plan(&session, "SELECT kwh FROM SENSOR").await;
    for part in ["file_type=sst", "table=records.SENSOR", "slices=3", "keys=all", "time=all", "projection=[kwh]"] {
        assert!(all.contains(part), "{part} is not in\n{all}");
    }
    let one = plan(&session, "SELECT kwh FROM SENSOR WHERE meter = 3 AND CAST(ts AS DATE) = '2018-01-02'").await;
    for part in [
        "slices=1",
        "keys=[0000000003#20180102..0000000003#20180102\\x00]",
        "time=[2018-01-02T00:00:00Z..2018-01-03T00:00:00Z)",
    ] {
        assert!(one.contains(part), "{part} is not in\n{one}");
    }
    let none = plan(&session, "SELECT kwh FROM SENSOR WHERE ts > '2019-01-01'").await;
    assert!(none.contains("slices=0"), "{none}");
    let limited = plan(&session, "SELECT kwh FROM SENSOR LIMIT 2").await;
    assert!(limited.contains("limit=2") || limited.contains("fetch=2"), "{limited}");
}

#[tokio::test]
async fn order_and_limit_are_exact() {
    let world = World::with_days(2);
    let session = world.session();
    let mut seen = Vec::new();
    for batch in run(&session, "SELECT meter, ts FROM SENSOR ORDER BY meter, ts").await {
        let meters = batch.column(0).as_primitive::<UInt64Type>();
        let times = batch.column(1).as_primitive::<TimestampMicrosecondType>();
        seen.extend(meters.values().iter().copied().zip(times.values().iter().copied()));
    }
    assert_eq!(seen.len() as u64, METERS * READINGS * 2);
    assert!(seen.is_sorted());
    let limited = run(&session, "SELECT * FROM SENSOR LIMIT 7").await;
    assert_eq!(limited.iter().map(RecordBatch::num_rows).sum::<usize>(), 7);
    // A scan range is sorted, so nothing is sorted again.
    let single = world.session().sequential();
    let query = "SELECT meter, ts FROM SENSOR WHERE CAST(ts AS DATE) = '2018-01-01' ORDER BY meter, ts";
    let plan = plan(&single, query).await;
    assert!(!plan.contains("SortExec"), "{plan}");
}

#[tokio::test]
async fn cells_of_a_table() {
    let world = World::with_csv(
        "meter,ts,kwh\n7,2018-01-01T00:15:00Z,1.5\n7,2018-01-01T00:00:00Z,2\n8,2018-01-02T00:00:00Z,3.25\n",
    );
    let session = world.session();
    let query = "SELECT CAST(row_key AS VARCHAR) AS k, family, CAST(qualifier AS VARCHAR) AS q, \
                 CAST(timestamp AS BIGINT) AS t, CAST(value AS VARCHAR) AS v FROM cells.SENSOR";
    let expected = format!(
        "\
+---------------------+--------+------+------------------+------+
| k                   | family | q    | t                | v    |
+---------------------+--------+------+------------------+------+
| 0000000007#20180101 | METER  | 0000 | {START} | 2.0  |
| 0000000007#20180101 | METER  | 0015 | {} | 1.5  |
| 0000000007#20180101 | METER  | ID   | 0                | 7    |
| 0000000008#20180102 | METER  | 0000 | {} | 3.25 |
| 0000000008#20180102 | METER  | ID   | 0                | 8    |
+---------------------+--------+------+------------------+------+",
        START + 900_000_000,
        START + DAY,
    );
    assert_eq!(text(&session, query).await, expected);
    assert_eq!(count(&session, "SELECT count(*) FROM cells.SENSOR").await, 5);
    for (filter, cells) in [
        ("row_key = '0000000007#20180101'", 3),
        ("row_key >= '0000000008'", 2),
        ("CAST(row_key AS VARCHAR) LIKE '0000000007%'", 3),
        ("row_key < '0000000007' OR row_key > '0000000009'", 0),
        ("family = 'METER' AND timestamp = TIMESTAMP '1970-01-01 00:00:00'", 2),
    ] {
        assert_eq!(
            count(&session, &format!("SELECT count(*) FROM cells.SENSOR WHERE {filter}")).await,
            cells,
            "{filter}"
        );
    }
    let plan = plan(&session, "SELECT value FROM cells.SENSOR WHERE row_key = '0000000007#20180101'").await;
    assert!(plan.contains("keys=[0000000007#20180101..0000000007#20180101\\x00]"), "{plan}");
}

#[tokio::test]
async fn ssts_of_one_window_are_merged() {
    let world = World::with_csv("meter,ts,kwh\n1,2018-01-01T00:00:00Z,1\n2,2018-01-01T00:00:00Z,2\n");
    world
        .load("b.csv", "meter,ts,kwh\n1,2018-01-01T00:00:00Z,10\n1,2018-01-01T00:15:00Z,3\n3,2018-01-01T00:00:00Z,4\n");
    let session = world.session();
    let plan = plan(&session, "SELECT * FROM SENSOR").await;
    assert!(plan.contains("slices=1") && plan.contains("ssts=2"), "{plan}");
    let expected = "\
+-------+------+
| meter | kwh  |
+-------+------+
| 1     | 10.0 |
| 1     | 3.0  |
| 2     | 2.0  |
| 3     | 4.0  |
+-------+------+";
    assert_eq!(text(&session, "SELECT meter, kwh FROM SENSOR ORDER BY meter, ts").await, expected);
    assert_eq!(count(&session, "SELECT count(*) FROM SENSOR").await, 4);
    assert_eq!(count(&session, "SELECT count(*) FROM cells.SENSOR").await, 7);
}

#[tokio::test]
async fn a_restricted_session_shows_its_range_only() {
    let world = World::with_days(3);
    let session = world.session();
    let per_day = (METERS * READINGS) as i64;
    let day = session.restricted(START + DAY..START + 2 * DAY);
    assert_eq!(count(&day, "SELECT count(*) FROM SENSOR").await, per_day);
    // A day of another time zone spans two windows.
    let hours = 3_600_000_000;
    let local = session.restricted(START + DAY - hours..START + 2 * DAY - hours);
    let expected = format!(
        "SELECT count(*) FROM SENSOR WHERE ts >= to_timestamp_micros({}) AND ts < to_timestamp_micros({})",
        START + DAY - hours,
        START + 2 * DAY - hours
    );
    assert_eq!(count(&local, "SELECT count(*) FROM SENSOR").await, count(&session, &expected).await);
    let sums = "SELECT sum(kwh), count(*) FROM SENSOR WHERE meter = 2";
    assert!(text(&local, sums).await.contains(&READINGS.to_string()));
    assert_eq!(count(&local.restricted(0..10), "SELECT count(*) FROM SENSOR").await, 0);
    assert_eq!(count(&session, "SELECT count(*) FROM SENSOR").await, per_day * 3);
    assert!(count(&day, "SELECT count(*) FROM cells.SENSOR").await > per_day * 3);
}

#[tokio::test]
async fn parameters_are_bound_by_name() {
    let world = World::with_days(3);
    let session = world.session();
    let time = |at| ScalarValue::TimestampMicrosecond(Some(at), Some("UTC".into()));
    let params = [("from", time(START + DAY)), ("to", time(START + 2 * DAY)), ("day", ScalarValue::from("2018-01-02"))];
    let frame = session.sql_with("SELECT count(*) FROM SENSOR WHERE ts >= $from AND ts < $to", &params).await.unwrap();
    let batches = frame.collect().await.unwrap();
    assert_eq!(batches[0].column(0).as_primitive::<Int64Type>().value(0), (METERS * READINGS) as i64);
    assert!(session.sql_with("SELECT count(*) FROM SENSOR", &params).await.is_ok());
}

#[tokio::test]
async fn the_catalog_lists_tables_without_opening_them() {
    let world = World::with_days(1);
    let options = SessionOptions { files: true, ..SessionOptions::default() };
    let session = world.open(&options);
    for manifest in std::fs::read_dir(world.root().join("tables/SENSOR/manifest")).unwrap() {
        std::fs::write(manifest.unwrap().path(), "damage").unwrap();
    }
    let tables = text(
        &session,
        "SELECT table_schema, table_name FROM information_schema.tables WHERE table_name = 'SENSOR' ORDER BY 1",
    )
    .await;
    assert!(
        tables.contains("| cells        | SENSOR     |") && tables.contains("| records      | SENSOR     |"),
        "{tables}"
    );
    let error = session.sql("SELECT count(*) FROM SENSOR").await.unwrap_err().to_string();
    assert!(error.contains("tables/SENSOR/manifest/"), "{error}");
}

#[tokio::test]
async fn damage_is_an_error_that_names_the_file() {
    let world = World::with_days(1);
    let folder = world.root().join("tables/SENSOR/sst");
    let file = std::fs::read_dir(&folder).unwrap().next().unwrap().unwrap().path();
    let whole = std::fs::read(&file).unwrap();
    let query = "SELECT count(*), sum(kwh), sum(meter) FROM SENSOR";
    let right = text(&world.session(), query).await;
    for at in (0..whole.len()).step_by(37) {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x20;
        std::fs::write(&file, &bytes).unwrap();
        let session = world.session();
        let frame = session.sql(query).await.unwrap();
        match frame.collect().await {
            // The query did not read the damaged part.
            Ok(rows) => assert_eq!(pretty_format_batches(&rows).unwrap().to_string(), right, "byte {at}"),
            Err(error) => assert!(error.to_string().contains(".sst"), "byte {at}: {error}"),
        }
    }
}

/// Errors found after planning, by rules that rewrite plans.
#[tokio::test]
async fn errors_do_not_name_rules_of_datafusion() {
    let world = World::with_days(1);
    let session = world.session();
    let mut named = Vec::new();
    for query in [
        "SELECT * FROM SENSOR WHERE kwh + INTERVAL '1 day' > 1",
        "SELECT kwh FROM SENSOR WHERE NOT kwh",
        "SELECT kwh + ts FROM SENSOR",
        "SELECT kwh FROM SENSOR WHERE kwh > ARRAY[1]",
        "SELECT kwh FROM SENSOR WHERE kwh IN (1, ARRAY[2])",
        "SELECT kwh FROM SENSOR WHERE kwh BETWEEN 1 AND ARRAY[2]",
        "SELECT kwh FROM SENSOR WHERE kwh LIKE 1.5",
        "SELECT sum(meter) FROM SENSOR HAVING sum(meter) > ARRAY[1]",
        "SELECT kwh FROM SENSOR WHERE 1.5 > ARRAY[1]",
        "SELECT 1 FROM SENSOR WHERE CAST('x' AS INT) = 1",
        "SELECT (SELECT kwh FROM SENSOR) FROM SENSOR",
    ] {
        let error = match session.sql(query).await {
            Err(error) => error,
            Ok(rows) => match rows.collect().await {
                Err(error) => error.into(),
                // DataFusion accepts it.
                Ok(_) => continue,
            },
        };
        let said = error.to_string();
        for internal in
            ["decimals_as_floats", "type_coercion", "simplify_expressions", "Analyzer", "Optimizer", "\ncaused by\n"]
        {
            assert!(!said.contains(internal), "{query}: {said}");
        }
        if let SqlError::Invalid(engine) | SqlError::Query(engine) = &error {
            named.push(engine.to_string());
        }
    }
    assert!(named.iter().any(|said| said.contains("\ncaused by\n")), "none came through a rule: {named:?}");
}

#[tokio::test]
async fn parameters_of_google_sql_have_their_types() {
    let world = World::with_days(1);
    let session = world.session().with_rows();
    let bytes = |text: &str| ScalarValue::Binary(Some(text.as_bytes().to_vec()));
    let answer = async |query: &str, params: &[(&str, ScalarValue)]| -> Result<String, SqlError> {
        let batches = session.sql_with_parameters(query, params).await?.collect().await?;
        Ok(pretty_format_batches(&batches).unwrap().to_string())
    };
    let cell = |text: &str| text.lines().nth(3).unwrap().trim_matches(['|', ' ']).to_owned();
    let time = ScalarValue::TimestampMicrosecond(Some(1_514_764_800_000_001), Some("UTC".into()));
    for (value, expected) in [
        (ScalarValue::Int64(Some(i64::MIN)), "-9223372036854775808"),
        (ScalarValue::Float64(Some(0.1)), "0.1"),
        (ScalarValue::Float64(Some(f64::INFINITY)), "inf"),
        (ScalarValue::Utf8(Some("it's @b".to_owned())), "it's @b"),
        (ScalarValue::Boolean(Some(false)), "false"),
        (bytes("\0k"), "006b"),
        (ScalarValue::Date32(Some(0)), "1970-01-01"),
        (time, "2018-01-01T00:00:00.000001Z"),
        (ScalarValue::Int64(None), ""),
        (
            ScalarValue::List(ScalarValue::new_list(
                &[ScalarValue::Int64(Some(1))],
                &arrow::datatypes::DataType::Int64,
                true,
            )),
            "[1]",
        ),
    ] {
        let kind = value.data_type();
        let found = answer("SELECT @a AS a", &[("a", value)]).await.unwrap();
        assert_eq!(cell(&found), expected, "{kind}");
    }
    assert_eq!(cell(&answer("SELECT @n + 1", &[("n", ScalarValue::Int64(Some(41)))]).await.unwrap()), "42");

    // Rows by their keys: the whole table, a prefix, a list.
    let keys = answer("SELECT _key FROM SENSOR ORDER BY _key", &[]).await.unwrap();
    let count = async |filter: &str, params: &[(&str, ScalarValue)]| -> String {
        cell(&answer(&format!("SELECT count(*) FROM SENSOR WHERE {filter}"), params).await.unwrap())
    };
    let rows = keys.lines().count() - 4;
    assert_eq!(count("STARTS_WITH(_key, @p)", &[("p", bytes(""))]).await, rows.to_string());
    assert_eq!(count("STARTS_WITH(_key, @p)", &[("p", bytes("no such"))]).await, "0");
    let list = |items: &[ScalarValue]| {
        ScalarValue::List(ScalarValue::new_list(items, &arrow::datatypes::DataType::Binary, true))
    };
    assert_eq!(count("_key IN UNNEST(@l)", &[("l", list(&[]))]).await, "0");
    assert_eq!(count("_key NOT IN UNNEST(@l)", &[("l", list(&[]))]).await, rows.to_string());
    assert_eq!(count("_key IN UNNEST(@l)", &[("l", list(&[bytes("no such")]))]).await, "0");

    let told = answer("SELECT @other", &[]).await.unwrap_err().to_string();
    assert!(told.contains("@other"), "{told}");
}

#[tokio::test]
async fn centroids_of_percentiles_have_a_bound() {
    let world = World::with_days(1);
    let session = world.session();
    for (centroids, is_answered) in
        [("200", true), ("100 * 10", true), ("10001", false), ("99999999999", false), ("-1", false)]
    {
        let query = format!("SELECT approx_percentile_cont(kwh, 0.5, {centroids}) FROM SENSOR");
        let found = match session.sql(&query).await {
            Ok(frame) => frame.collect().await.map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        };
        assert_eq!(found.is_ok(), is_answered, "{query}: {found:?}");
    }
}

#[tokio::test]
async fn numbered_parameters_have_types_and_values() {
    use arrow::datatypes::DataType;

    let world = World::with_days(1);
    let session = world.session();
    let count = async |query: &str, values: &[ScalarValue]| -> Result<i64, SqlError> {
        let batches = session.sql_with_values(query, values).await?.collect().await?;
        Ok(batches[0].column(0).as_primitive::<Int64Type>().value(0))
    };
    let one = ScalarValue::Int64(Some(1));
    let of_one = count("SELECT count(*) FROM SENSOR WHERE meter = 1", &[]).await.unwrap();
    for query in [
        "SELECT count(*) FROM SENSOR WHERE meter = $1",
        "SELECT count(*) FROM SENSOR WHERE $2 AND meter BETWEEN $1 AND $1",
        "SELECT count(*) FROM (SELECT 1 FROM SENSOR WHERE meter = $1 OFFSET 0)",
    ] {
        let found = count(query, &[one.clone(), ScalarValue::Boolean(Some(true))]).await.unwrap();
        assert_eq!(found, of_one, "{query}");
    }
    // A list is compared as its items are, whatever integers they are.
    let list = |items: &[i64]| {
        let items: Vec<ScalarValue> = items.iter().map(|item| ScalarValue::Int64(Some(*item))).collect();
        ScalarValue::List(ScalarValue::new_list(&items, &DataType::Int64, true))
    };
    let any = "SELECT count(*) FROM SENSOR WHERE meter = ANY ($1)";
    assert_eq!(count(any, &[list(&[1, 999])]).await.unwrap(), of_one);
    assert_eq!(count(any, &[list(&[])]).await.unwrap(), 0);
    let all = "SELECT count(*) FROM SENSOR WHERE meter <> ALL ($1)";
    let others = count("SELECT count(*) FROM SENSOR WHERE meter <> 1", &[]).await.unwrap();
    assert_eq!(count(all, &[list(&[1])]).await.unwrap(), others);
    assert!(count("SELECT $2 + $1", &[one]).await.unwrap_err().to_string().contains("parameter $2"));

    let types =
        async |query: &str, declared: &[Option<DataType>]| session.parameter_types(query, declared).await.unwrap();
    let query = "SELECT $3 FROM SENSOR WHERE meter = $1 AND kwh > $2";
    assert_eq!(types(query, &[]).await.len(), 3);
    let declared = [None, None, Some(DataType::Utf8)];
    assert_eq!(types(query, &declared).await, [Some(DataType::UInt64), Some(DataType::Float64), Some(DataType::Utf8)]);
    assert!(session.parameter_types("SELEC $1", &[]).await.is_err());

    // The number of a parameter is the length of a list, so it has a bound.
    for number in ["0", "65536", "99999999999", "99999999999999999999999"] {
        let query = format!("SELECT ${number}");
        let refusals =
            [session.parameter_types(&query, &[]).await.err(), session.sql_with_values(&query, &[]).await.err()];
        for refusal in refusals {
            assert!(matches!(refusal, Some(SqlError::NoParameter { .. })), "{query}: {refusal:?}");
        }
    }
    assert_eq!(types("SELECT $65535", &[]).await.len(), 65_535);
    let day = ScalarValue::new_interval_mdn(0, 1, 3_600_000_000_000);
    let later = "SELECT CAST(date_part('day', TIMESTAMP '2024-03-02 23:30:00' + $1) AS BIGINT)";
    assert_eq!(count(later, &[day]).await.unwrap(), 4);
}
