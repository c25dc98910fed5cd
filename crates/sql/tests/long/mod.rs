//! Statements with thousands of operators: they are answered, or refused before they are parsed.

use arrow::array::{AsArray, RecordBatch};
use arrow::datatypes::{Decimal128Type, Float64Type, Int64Type};
use arrow::util::pretty::pretty_format_batches;
use futures::TryStreamExt;
use tidetable_sql::{Session, SqlError};

use crate::world::{METERS, READINGS, World};

async fn rows(session: &Session, query: &str) -> Vec<RecordBatch> {
    session.stream(query).await.unwrap().try_collect().await.unwrap()
}

async fn number(session: &Session, query: &str) -> i64 {
    rows(session, query).await[0].column(0).as_primitive::<Int64Type>().value(0)
}

/// Runs a test where queries run, on threads with a stack of 64 MiB, as the binary does.
fn run(test: impl Future<Output = ()> + Send + 'static) {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let runtime = builder.worker_threads(2).thread_stack_size(64 << 20).enable_all().build().unwrap();
    runtime.block_on(runtime.spawn(test)).unwrap();
}

fn joined(terms: usize, op: &str, term: impl Fn(usize) -> String) -> String {
    (0..terms).map(term).collect::<Vec<_>>().join(op)
}

#[test]
fn thousands_of_conditions_are_answered() {
    run(async {
        let world = World::with_days(1);
        let session = world.session();
        let readings = (METERS * READINGS) as i64;
        // In debug builds DataFusion checks the types of each condition of a scan, in the square of their number.
        for (of, from, terms, expected) in [
            ("v", "(VALUES (1), (2), (3), (4), (5), (6)) AS t (v)", 3_000, METERS as i64),
            ("meter", "SENSOR", 300, readings),
        ] {
            let differs = joined(terms, " AND ", |at| format!("{of} <> {}", at + 2));
            let query = format!("SELECT count(*) FROM {from} WHERE {differs}");
            assert_eq!(number(&session, &query).await, expected / METERS as i64, "AND {from}");
            let equals = joined(terms, " OR ", |at| format!("{of} = {}", at + 2));
            let query = format!("SELECT count(*) FROM {from} WHERE {equals}");
            assert_eq!(number(&session, &query).await, expected - expected / METERS as i64, "OR {from}");
            let list = joined(10_000, ", ", |at| (at + 2).to_string());
            let query = format!("SELECT count(*) FROM {from} WHERE {of} IN ({list})");
            assert_eq!(number(&session, &query).await, expected - expected / METERS as i64, "IN {from}");
        }
        // Different columns, so that no rule joins them into a list.
        let mixed = joined(3_000, " OR ", |at| format!("(v = {} AND w < {at})", at % 9 + 10));
        let query = format!("SELECT count(*) FROM (VALUES (1, 2), (2, 3)) AS t (v, w) WHERE {mixed}");
        assert_eq!(number(&session, &query).await, 0);
    });
}

#[test]
fn long_arithmetic_is_answered() {
    run(async {
        let world = World::with_days(1);
        let session = world.session();
        let from = "FROM (VALUES (1, CAST(0.5 AS DOUBLE), CAST(1.25 AS DECIMAL(10, 2)), 'ab')) AS t (i, d, m, s)";
        let chain = |of: &str, op: &str| format!("SELECT {} {from}", vec![of; 800].join(op));

        assert_eq!(number(&session, &format!("SELECT {}", vec!["1"; 800].join("+"))).await, 800);
        assert_eq!(number(&session, &chain("i", " + ")).await, 800);
        assert_eq!(number(&session, &chain("i", " - ")).await, -798);
        assert_eq!(number(&session, &chain("i * i", " + ")).await, 800);
        assert_eq!(number(&session, &chain("i", " * ")).await, 1);
        let sum = rows(&session, &chain("d", " + ")).await;
        assert_eq!(sum[0].column(0).as_primitive::<Float64Type>().value(0), 400.0);
        let sum = rows(&session, &chain("m", " + ")).await;
        assert_eq!(sum[0].column(0).as_primitive::<Decimal128Type>().value(0), 100_000);
        let text = rows(&session, &chain("s", " || ")).await;
        assert!(pretty_format_batches(&text).unwrap().to_string().contains(&"ab".repeat(800)));
        let filter = format!("SELECT count(*) FROM SENSOR WHERE {} > 800", vec!["meter"; 800].join(" + "));
        assert_eq!(number(&session, &filter).await, ((METERS - 1) * READINGS) as i64);
        // Groups by a chain find it again.
        let meters = vec!["meter"; 800].join(" + ");
        let groups = format!("SELECT {meters} AS total, count(*) FROM SENSOR GROUP BY {meters}");
        let groups: usize = rows(&session, &groups).await.iter().map(RecordBatch::num_rows).sum();
        assert_eq!(groups, METERS as usize);
    });
}

/// A number as SQL has it.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Number {
    Integer(i64),
    Float(f64),
}

#[test]
fn long_arithmetic_is_done_from_the_left() {
    run(async {
        use Number::{Float, Integer};
        let world = World::with_days(1);
        let session = world.session();
        let mut state = 7_u64;
        let mut random = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        for first_float in [0, 1, 40, 80, 200] {
            let (mut text, mut expected) = ("i".to_owned(), Integer(1_000));
            for at in 0..200 {
                let is_float = at >= first_float && random(3) == 0;
                let (term, value) = if is_float { ("d", Float(0.3)) } else { ("i", Integer(1_000)) };
                let op = ["+", "-"][random(2) as usize];
                text.push_str(&format!(" {op} {term}"));
                let sign = if op == "+" { 1 } else { -1 };
                expected = match (expected, value) {
                    (Integer(sum), Integer(term)) => Integer(sum + sign * term),
                    (Integer(sum), Float(term)) => Float(sum as f64 + sign as f64 * term),
                    (Float(sum), Integer(term)) => Float(sum + sign as f64 * term as f64),
                    (Float(sum), Float(term)) => Float(sum + sign as f64 * term),
                };
            }
            let query = format!("SELECT {text} FROM (VALUES (1000, CAST(0.3 AS DOUBLE))) AS t (i, d)");
            let found = &rows(&session, &query).await[0];
            let found = match expected {
                Integer(_) => Integer(found.column(0).as_primitive::<Int64Type>().value(0)),
                Float(_) => Float(found.column(0).as_primitive::<Float64Type>().value(0)),
            };
            assert_eq!(found, expected, "{text}");
        }
        // It overflows where a short one does.
        let over = format!("SELECT 9223372036854775000 + {} FROM (VALUES (10)) AS t (i)", vec!["i"; 100].join(" + "));
        let found: Result<Vec<RecordBatch>, _> = session.stream(&over).await.unwrap().try_collect().await;
        let error = found.unwrap_err().to_string();
        assert!(error.contains("does not fit into int64"), "{error}");
    });
}

#[test]
fn long_chains_of_joins_are_answered() {
    run(async {
        let world = World::with_days(1);
        let session = world.session();
        // More joins above each other than a task of tokio may take steps at a time.
        for kind in ["LEFT JOIN", "JOIN"] {
            let joins =
                joined(150, " ", |at| format!("{kind} (VALUES (1)) AS t{}(x) ON t{}.x = t{at}.x", at + 1, at + 1));
            let query = format!("SELECT count(*) FROM (VALUES (1)) AS t0(x) {joins}");
            assert_eq!(number(&session, &query).await, 1, "{kind}");
        }
    });
}

#[test]
fn filters_above_nested_expressions_are_answered() {
    run(async {
        let world = World::with_days(1);
        let session = world.session();
        // Each level doubles what a filter would be below all of them.
        for from in ["(VALUES (1), (2), (3)) AS t(x)", "(SELECT meter AS x FROM SENSOR)"] {
            let nested = (0..20).fold(from.to_owned(), |from, _| format!("(SELECT x % 5 + x % 3 AS x FROM {from})"));
            let all = number(&session, &format!("SELECT count(*) FROM {nested}")).await;
            for clause in ["WHERE x > 2", "WHERE x > 2 ORDER BY 1 LIMIT 10"] {
                let some = number(&session, &format!("SELECT count(*) FROM {nested} {clause}")).await;
                let none =
                    number(&session, &format!("SELECT count(*) FROM {nested} {}", clause.replace('>', "<="))).await;
                assert_eq!(some + none, all, "{from} {clause}");
            }
        }
    });
}

#[test]
fn what_is_too_deep_is_refused_at_once() {
    run(async {
        let world = World::with_days(1);
        let session = world.session();
        let levels = 100_000;
        for (query, is_located) in [
            (format!("SELECT {}1{}", "(".repeat(levels), ")".repeat(levels)), true),
            (format!("SELECT {}true", "NOT ".repeat(levels)), false),
            (format!("SELECT {}1", "- ".repeat(levels)), false),
            (format!("SELECT {}1{}", "abs(".repeat(levels), ")".repeat(levels)), true),
            (format!("SELECT {} 1", "CASE WHEN ".repeat(levels)), true),
            (format!("SELECT * FROM {}SENSOR{}", "(SELECT * FROM ".repeat(levels), ")".repeat(levels)), true),
            (format!("SELECT 1{}", " + 1".repeat(levels)), true),
            (format!("SELECT 1{}", "::INT".repeat(levels)), true),
            (format!("SELECT count(*) FROM SENSOR WHERE true{}", " AND meter > 1".repeat(levels)), true),
            (format!("SELECT 1{}", " UNION ALL SELECT 1".repeat(levels)), true),
        ] {
            let shown = &query[..40];
            let error = session.sql(&query).await.unwrap_err();
            assert!(matches!(error, SqlError::TooDeep { .. }), "{shown}: {error}");
            assert_eq!(error.place().is_some(), is_located, "{shown}");
            assert!(matches!(session.references(&query), Err(SqlError::TooDeep { .. })), "{shown}");
        }
        for sets in
            ["CUBE (a, b, c, d, e, f, g, h, i, j, k, l, m)", "ROLLUP (a, b, c), CUBE (a, b, c, d, e, f, g, h, i, j, k)"]
        {
            let query = format!("SELECT count(*) FROM SENSOR GROUP BY {sets}");
            let error = session.sql(&query).await.unwrap_err();
            assert!(matches!(error, SqlError::TooManyGroupingSets { .. }), "{sets}: {error}");
        }
        let doubled = |ctes: usize| {
            let ctes: Vec<String> =
                (1..ctes).map(|at| format!("c{at} AS (SELECT a.x FROM c{0} AS a, c{0} AS b)", at - 1)).collect();
            format!("WITH c0 AS (SELECT 1 AS x), {} SELECT count(*) FROM c{}", ctes.join(", "), ctes.len())
        };
        for ctes in [14, 25, 200] {
            let error = session.sql(&doubled(ctes)).await.unwrap_err();
            assert!(matches!(error, SqlError::TooManyRelations { .. }), "{ctes}: {error}");
            assert!(error.to_string().contains("more than 4096 relations, most of them in c"), "{error}");
        }
        assert_eq!(number(&session, &doubled(8)).await, 1);
        let memberships = |levels: usize| {
            let member = "(1, 2) IN (SELECT 1, 2)".to_owned();
            (0..levels).fold(member, |member, _| format!("(1, 2) IN (SELECT 1, 2 WHERE {member} OR 1 = 2)"))
        };
        for levels in [10, 15] {
            let error = session.sql(&format!("SELECT {}", memberships(levels))).await.unwrap_err();
            assert!(matches!(error, SqlError::TooManyRelations { .. }), "{levels}: {error}");
            assert!(error.to_string().contains("is planned twice"), "{error}");
        }
        assert_eq!(number(&session, &format!("SELECT count(*) WHERE {}", memberships(3))).await, 1);
        assert_eq!(number(&session, &format!("SELECT {}1{}", "(".repeat(40), ")".repeat(40))).await, 1);
    });
}
