//! Random correlated and quantified subqueries, compared with an evaluation by nested loops in three-valued logic, and
//! with DuckDB where `TIDETABLE_PYTHON` has it.
//!
//! `TIDETABLE_SUBQUERIES` is the number of queries, `TIDETABLE_SUBQUERIES_SEED` the first seed, and
//! `TIDETABLE_SUBQUERIES_SHOWN` the number of failures that are shown. `just subqueries` asks 10,000.

mod evaluate;
mod generate;
mod query;

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::{Field, Schema, TimestampMicrosecondType};
use datafusion::catalog::{MemTable, MemoryCatalogProvider, MemorySchemaProvider, SchemaProvider};
use datafusion::error::DataFusionError;
use datafusion::prelude::SessionContext;
use futures::{FutureExt, TryStreamExt};
use tidetable_sql::{Session, SessionOptions, SqlError};

use super::duckdb::{python_with, run_script};
use super::same::texts;
use super::world::World;
use evaluate::{Table, Tables};
use generate::{COLUMNS, Generator, Random};
use query::{Kind, Query, Value, literal, type_name};

/// Planning is most of the time of a query: a debug build takes a tenth of a second.
const QUERIES: u64 = 1_000;
const SEED: u64 = 20_261_125;
/// Queries over the same rows.
const PER_TABLES: u64 = 50;
const THREADS: u64 = 4;
const CATALOG: &str = "subqueries";
/// 2024-01-01, microseconds.
const START_2024: i64 = 1_704_067_200_000_000;

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// Small tables: with nulls, without, with few values, empty.
fn tables(random: &mut Random) -> Tables {
    let mut tables = Tables::new();
    for name in ["a", "b", "c"] {
        let rows = [0, 1, 3, 5, 5, 6][random.below(6)];
        let nulls = [0, 3, 3, 5][random.below(4)];
        let most = 2 + random.below(3);
        let mut of = |kind: Kind, may_be_null: bool| {
            if may_be_null && nulls > 0 && random.below(nulls) == 0 {
                return Value::Null;
            }
            let int = random.below(most) as i64;
            match kind {
                Kind::Int => Value::Int(int),
                Kind::Text => Value::Text(int.to_string()),
                Kind::Date => Value::Date(int),
                Kind::Time => Value::Time(int * 13),
            }
        };
        let row = |id: i64| {
            let values = COLUMNS.iter().map(|(column, kind)| match *column {
                "id" => Value::Int(id),
                "n" => of(*kind, false),
                _ => of(*kind, true),
            });
            values.collect()
        };
        let rows = (1..=rows).map(row).collect();
        tables.insert(name, Table { columns: COLUMNS.map(|(name, _)| name).to_vec(), rows });
    }
    tables
}

/// A table of a session.
fn registered(table: &Table) -> MemTable {
    let columns = COLUMNS.iter().enumerate().map(|(at, (name, kind))| {
        let values = || table.rows.iter().map(|row| &row[at]);
        let ints = || {
            let int = |value: &Value| match value {
                Value::Int(int) => Some(*int),
                Value::Date(day) => Some(*day),
                Value::Time(hour) => Some(START_2024 + hour * 3_600_000_000),
                _ => None,
            };
            values().map(int).collect::<Int64Array>()
        };
        let array: ArrayRef = match kind {
            Kind::Int => Arc::new(ints()),
            Kind::Text => {
                let text = |value: &Value| (*value != Value::Null).then(|| value.to_string());
                Arc::new(values().map(text).collect::<StringArray>())
            }
            Kind::Date => panic!("no column is a date"),
            Kind::Time => Arc::new(ints().reinterpret_cast::<TimestampMicrosecondType>()),
        };
        (*name, array)
    });
    let columns: Vec<_> = columns.collect();
    let fields =
        columns.iter().map(|(name, array)| Field::new(*name, array.data_type().clone(), array.null_count() > 0));
    let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    let arrays = columns.into_iter().map(|(_, array)| array).collect();
    let batch = RecordBatch::try_new(Arc::clone(&schema), arrays).unwrap();
    MemTable::try_new(schema, vec![vec![batch]]).unwrap()
}

/// Statements that create the tables in DuckDB.
fn created(schema: &str, tables: &Tables) -> Vec<String> {
    let mut statements = vec![format!("CREATE SCHEMA {schema}")];
    for (name, table) in tables {
        let columns: Vec<_> = COLUMNS.iter().map(|(name, kind)| format!("{name} {}", type_name(*kind))).collect();
        statements.push(format!("CREATE TABLE {schema}.{name} ({})", columns.join(", ")));
        for row in &table.rows {
            let cells: Vec<_> = row.iter().map(literal).collect();
            statements.push(format!("INSERT INTO {schema}.{name} VALUES ({})", cells.join(", ")));
        }
    }
    statements
}

#[derive(Debug, Default)]
struct Outcome {
    answered: u64,
    refused: Vec<String>,
    /// Those refused ones that DataFusion itself answers right.
    needless: Vec<String>,
    wrong: Vec<String>,
    /// Lines for DuckDB.
    told: String,
}

async fn answer(session: &Session, sql: &str) -> Result<Vec<String>, SqlError> {
    // Planned on a thread with a large stack, as queries of a user are.
    let asked = async { session.stream(sql).await?.try_collect().await.map_err(SqlError::from) };
    let asked = std::panic::AssertUnwindSafe(asked).catch_unwind().await;
    let batches: Vec<RecordBatch> = asked.unwrap_or_else(|_| panic!("{sql} panics"))?;
    let mut rows = texts(&batches);
    rows.sort();
    Ok(rows)
}

/// The rows that DataFusion gives without the rules of a session, ascending.
async fn plain_rows(session: &Session, sql: &str) -> Result<Vec<String>, DataFusionError> {
    let plain = SessionContext::new();
    plain.register_catalog(CATALOG, session.context().catalog(CATALOG).unwrap());
    let mut rows = texts(&plain.sql(sql).await?.collect().await?);
    rows.sort();
    Ok(rows)
}

async fn ask(session: &Session, query: &Query, tables: &Tables, outcome: &mut Outcome) {
    let sql = query.to_string();
    let row = |row: Vec<Value>| row.iter().map(ToString::to_string).collect::<Vec<_>>().join(" | ");
    let mut expected: Vec<String> = evaluate::rows(query, tables).into_iter().map(row).collect();
    expected.sort();
    match answer(session, &sql).await {
        Ok(found) if found == expected => outcome.answered += 1,
        Ok(found) => outcome.wrong.push(format!("{sql}\n  found    {found:?}\n  expected {expected:?}")),
        Err(error) => {
            let refused = format!("{sql}\n  {error}");
            if plain_rows(session, &sql).await.is_ok_and(|rows| rows == expected) {
                outcome.needless.push(refused.clone());
            }
            outcome.refused.push(refused);
        }
    }
    // DuckDB drops the row of an aggregate over no rows in a correlated set operation.
    if query.has_inner_set() {
        return;
    }
    let quoted = |text: &String| format!("{text:?}");
    let rows = expected.iter().map(quoted).collect::<Vec<_>>().join(", ");
    outcome.told.push_str(&format!("{{\"query\": {}, \"rows\": [{rows}]}}\n", quoted(&sql)));
}

/// Asks the queries of every `THREADS`th set of tables.
fn ask_some(sessions: &[Session], thread: u64, queries: u64) -> Outcome {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut outcome = Outcome::default();
    let seed = setting("TIDETABLE_SUBQUERIES_SEED", SEED);
    for set in (0..queries.div_ceil(PER_TABLES)).filter(|set| set % THREADS == thread) {
        let schema = format!("{CATALOG}.s{set}");
        let mut random = Random(seed + set * 7_919);
        let tables = tables(&mut random);
        let session = &sessions[(set / THREADS) as usize % sessions.len()];
        let provider = MemorySchemaProvider::new();
        for (name, table) in &tables {
            provider.register_table((*name).to_owned(), Arc::new(registered(table))).unwrap();
        }
        session.context().catalog(CATALOG).unwrap().register_schema(&format!("s{set}"), Arc::new(provider)).unwrap();
        let statements: Vec<_> = created(&schema, &tables).iter().map(|text| format!("{text:?}")).collect();
        outcome.told.push_str(&format!("{{\"setup\": [{}]}}\n", statements.join(", ")));
        let mut generator = Generator::new(random, &schema);
        for _ in 0..PER_TABLES.min(queries - set * PER_TABLES) {
            let query = generator.query();
            runtime.block_on(ask(session, &query, &tables, &mut outcome));
        }
    }
    outcome
}

/// Tables of the forms below: `o` has the values 1, 2 and null; `n` has 1 in group 1 and null in group 2.
const TABLES: &str = "WITH o(id, x) AS (VALUES (1, 1), (2, 2), (3, NULL)), n(g, x) AS (VALUES (1, 1), (2, NULL)), \
     d(day) AS (VALUES (DATE '2024-01-01'), (DATE '2024-01-02')), \
     t(ts) AS (VALUES (TIMESTAMP '2024-01-01 01:00:00'), (TIMESTAMP '2024-01-01 02:00:00'), (TIMESTAMP '2024-01-02 01:00:00')), \
     a(k) AS (VALUES (1), (2)), c(j) AS (VALUES (1), (2), (3)), \
     l(x) AS (VALUES (1), (1), (1), (2)), r(x) AS (VALUES (1), (2), (2)), z(x) AS (VALUES (CAST('-0.0' AS DOUBLE)))";

const FORMS: [(&str, &[&str]); 41] = [
    ("SELECT id FROM o WHERE EXISTS (SELECT 1 FROM a WHERE k < o.x AND k < ALL (SELECT min(j) + 1 FROM c))", &["2"]),
    (
        "SELECT id FROM o WHERE id IN (SELECT r.j FROM c AS r WHERE r.j >= o.x AND r.j > ALL (SELECT min(k) FROM a))",
        &["2"],
    ),
    ("SELECT id FROM o WHERE (SELECT min(n.x) FROM n WHERE o.id > 100) = o.x", &[]),
    (
        "SELECT id FROM o WHERE id IN (SELECT n.x FROM (SELECT CAST(x AS SMALLINT) AS x FROM n) AS n WHERE n.x = o.x)",
        &["1"],
    ),
    (
        "SELECT p.k, q.k FROM (VALUES (1, 1), (NULL, 2)) AS p(k, v) RIGHT JOIN (VALUES (1), (NULL), (7)) AS q(k) ON p.k = q.k \
         WHERE p.k = p.k",
        &["1 | 1"],
    ),
    (
        "SELECT id FROM o WHERE EXISTS (SELECT 1 FROM n CROSS JOIN o AS p WHERE p.id = 2 AND n.x + o.id > p.x)",
        &["2", "3"],
    ),
    (
        "SELECT p.a, p.b FROM (VALUES (1, 1), (2, NULL), (NULL, 3), (NULL, NULL)) AS p(a, b) \
         JOIN (VALUES (1, 1), (2, NULL), (NULL, 3), (NULL, NULL)) AS q(a, b) ON p.a IS NOT DISTINCT FROM q.a WHERE p.b = q.b",
        &["1 | 1", "NULL | 3"],
    ),
    (
        "SELECT p.a, p.b FROM (VALUES (1, 1), (2, NULL), (NULL, 3), (NULL, NULL)) AS p(a, b) \
         JOIN (VALUES (1, 1), (2, NULL), (NULL, 3), (NULL, NULL)) AS q(a, b) ON p.a IS NOT DISTINCT FROM q.a \
         JOIN (VALUES (1), (3), (NULL)) AS r(b) ON r.b = p.b",
        &["1 | 1", "NULL | 3", "NULL | 3"],
    ),
    (
        "SELECT day, (SELECT count(*) FROM t WHERE CAST(t.ts AS DATE) = d.day) FROM d",
        &["2024-01-01 | 2", "2024-01-02 | 1"],
    ),
    (
        "SELECT day, n FROM d, LATERAL (SELECT count(*) AS n FROM t WHERE CAST(t.ts AS DATE) = d.day) AS s",
        &["2024-01-01 | 2", "2024-01-02 | 1"],
    ),
    ("SELECT id FROM o WHERE x NOT IN (SELECT x FROM n) OR id > 100", &[]),
    ("SELECT id FROM o WHERE 3 NOT IN (SELECT n.x FROM n WHERE n.g = o.id)", &["1", "3"]),
    ("SELECT id FROM o WHERE id NOT IN (SELECT n.x FROM n WHERE n.g <= o.id)", &[]),
    ("SELECT id FROM o WHERE EXISTS (SELECT count(*) FROM n WHERE n.g = o.id)", &["1", "2", "3"]),
    ("SELECT id FROM o WHERE 0 IN (SELECT count(*) FROM n WHERE n.g = o.id)", &["3"]),
    ("SELECT id FROM o WHERE EXISTS (SELECT 1 FROM n WHERE n.g = o.id OFFSET 1)", &[]),
    ("SELECT id FROM o WHERE x <= ANY (SELECT x FROM o)", &["1", "2"]),
    ("SELECT id FROM o WHERE x > ANY (SELECT x FROM o)", &["2"]),
    ("SELECT id, x > ALL (SELECT x FROM o) FROM o", &["1 | false", "2 | false", "3 | NULL"]),
    ("SELECT id, NULL IN (SELECT x FROM o) FROM o", &["1 | NULL", "2 | NULL", "3 | NULL"]),
    ("SELECT id, x IN (SELECT x FROM n) FROM o", &["1 | true", "2 | NULL", "3 | NULL"]),
    ("SELECT id, (SELECT n.x FROM n WHERE n.g = o.id) FROM o", &["1 | 1", "2 | NULL", "3 | NULL"]),
    ("SELECT count(*) FROM o WHERE (SELECT count(*) FROM o HAVING count(*) > 100) IS NULL", &["3"]),
    (
        "SELECT count(a.k) FROM a LEFT JOIN (SELECT d.k, c.j FROM (SELECT DISTINCT k FROM a) AS d CROSS JOIN c \
         GROUP BY c.j, d.k) AS g ON a.k = g.k",
        &["6"],
    ),
    (
        "SELECT id FROM o WHERE EXISTS (SELECT 1 FROM (SELECT n.x, n.g FROM n WHERE n.g <= o.id) AS m(p, q) WHERE p = o.x)",
        &["1"],
    ),
    ("SELECT x FROM l EXCEPT ALL SELECT x FROM r", &["1", "1"]),
    ("SELECT x FROM l INTERSECT ALL SELECT x FROM r", &["1", "2"]),
    (
        "SELECT * FROM (VALUES (1, NULL), (1, NULL), (1, NULL), (2, 3), (2, 3)) AS p(a, b) EXCEPT ALL \
         SELECT * FROM (VALUES (1, NULL), (2, 3), (2, 3), (2, 3), (4, 4)) AS q(a, b)",
        &["1 | NULL", "1 | NULL"],
    ),
    (
        "SELECT * FROM (VALUES (1, NULL), (1, NULL), (1, NULL), (2, 3), (2, 3)) AS p(a, b) INTERSECT ALL \
         SELECT * FROM (VALUES (1, NULL), (1, NULL), (2, 3), (4, 4)) AS q(a, b)",
        &["1 | NULL", "1 | NULL", "2 | 3"],
    ),
    ("(SELECT x FROM l EXCEPT ALL SELECT x FROM r) EXCEPT ALL SELECT 1", &["1"]),
    ("SELECT count(*) FROM (SELECT x FROM l UNION ALL SELECT x FROM l EXCEPT ALL SELECT x FROM r) AS s", &["5"]),
    ("SELECT nullif(CAST('-0.0' AS DOUBLE), 0), nullif(x, 0) FROM z", &["NULL | NULL"]),
    ("SELECT nullif(0, x), nullif(x, 1) FROM z", &["NULL | -0.0"]),
    ("SELECT CASE x WHEN 0 THEN 'zero' END, x IS DISTINCT FROM 0 FROM z", &["zero | false"]),
    ("SELECT count(DISTINCT x) FROM (SELECT x FROM z UNION ALL SELECT CAST('0.0' AS DOUBLE))", &["1"]),
    ("SELECT * FROM (VALUES (1e-20), (0.5), (NULL), (-2))", &["-2.0", "0.5", "1e-20", "NULL"]),
    ("SELECT CAST(999999999999999.99999999 AS DOUBLE), CAST(17.4 AS DOUBLE)", &["1000000000000000.0 | 17.4"]),
    ("SELECT v, v = 1e-20 FROM (VALUES (0.5), (CAST('1e-20' AS DOUBLE))) AS t(v)", &["0.5 | false", "1e-20 | true"]),
    (
        "SELECT x = 0.1, 0.1 = ANY([x]), 0.1 = ALL([x, x]), x = ANY([0.3, 0.1]) FROM (VALUES (CAST(0.1 AS DOUBLE))) AS t(x)",
        &["true | true | true | true"],
    ),
    ("SELECT nullif(x, 0.0) IS NULL, nullif(CAST(x AS REAL), 0) IS NULL FROM z", &["true | true"]),
    (
        "SELECT CAST(x AS DOUBLE), x = 1e15 FROM (VALUES (999999999999999.99999999)) AS v(x)",
        &["1000000000000000.0 | true"],
    ),
];

/// Tuples and rows for the memberships below, with and without nulls.
const TUPLES: &str = "WITH t(i, a, b) AS (VALUES (1, 1, 2), (2, 1, NULL), (3, 3, 4), (4, 4, NULL), (5, NULL, NULL), (6, 5, 5), \
     (7, 3, NULL)), s(x, y) AS (VALUES (1, 2), (3, NULL)), u(x, y) AS (VALUES (1, 2), (5, 6))";

/// Memberships of tuples, with the rows that DuckDB gives; it does not answer those of correlated subqueries.
const MEMBERSHIPS: [(&str, &[&str]); 17] = [
    (
        "SELECT i, (a, b) IN (SELECT x, y FROM s) FROM t",
        &["1 | true", "2 | NULL", "3 | NULL", "4 | false", "5 | NULL", "6 | false", "7 | NULL"],
    ),
    (
        "SELECT i, (a, b) NOT IN (SELECT * FROM s) FROM t",
        &["1 | false", "2 | NULL", "3 | NULL", "4 | true", "5 | NULL", "6 | true", "7 | NULL"],
    ),
    ("SELECT i FROM t WHERE (a, b) IN (SELECT x, y FROM s)", &["1"]),
    ("SELECT i FROM t WHERE (a, b) NOT IN (SELECT x, y FROM s)", &["4", "6"]),
    ("SELECT i FROM t WHERE NOT (a, b) IN (SELECT x, y FROM u)", &["3", "4", "6", "7"]),
    ("SELECT i FROM t WHERE i > 1 AND (a, b) NOT IN (SELECT x, y FROM u WHERE x > 1)", &["2", "3", "4", "6", "7"]),
    ("SELECT i FROM t WHERE (a, b) IN (SELECT x, y FROM s) OR i = 7", &["1", "7"]),
    ("SELECT i FROM t WHERE (a, b) NOT IN (SELECT x, y FROM s WHERE x = a)", &["4", "5", "6"]),
    ("SELECT i FROM t WHERE (a, b) IN (SELECT x, y FROM s WHERE x = a)", &["1"]),
    ("SELECT i FROM t WHERE ((a, b) IN (SELECT x, y FROM s WHERE false)) IS NULL", &[]),
    ("SELECT i FROM t WHERE (a, b) = ANY (SELECT x, y FROM s)", &["1"]),
    ("SELECT i FROM t WHERE (a, b) <> ALL (SELECT x, y FROM s)", &["4", "6"]),
    ("SELECT (1, 2) IN (SELECT x, y FROM s WHERE (x, y) IN (SELECT 1, 2))", &["true"]),
    (
        "SELECT i FROM t WHERE i = 7 OR (a, b) IN (SELECT x, y FROM s WHERE x = 3 OR (x, y) IN (SELECT x, y FROM u))",
        &["1", "7"],
    ),
    ("SELECT (1, (2, 3) IN (SELECT 2, 3)) IN (SELECT 1, (2, 3) IN (SELECT 2, 3)) OR false", &["true"]),
    ("SELECT i FROM t WHERE (a, b) IN (SELECT x, y FROM s WHERE (x, y) IN (SELECT x, y FROM u) OR x > 100)", &["1"]),
    (
        "SELECT (1, 2) IN (SELECT (1, 2)), (1, 2) IN ((1, 2), (3, 4)), (1, 3) IN (SELECT 1, 2 UNION ALL SELECT 1, 3)",
        &["true | true | true"],
    ),
];

#[tokio::test]
async fn tuples_are_found_among_rows() {
    let world = World::with_days(1);
    let session = world.session();
    let mut wrong = Vec::new();
    for (query, expected) in MEMBERSHIPS {
        let found = answer(&session, &format!("{TUPLES} {query}")).await;
        if found.as_ref().ok().is_none_or(|rows| rows != expected) {
            wrong.push(format!("{query}\n  found    {found:?}\n  expected {expected:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));

    let query = "SELECT i FROM t WHERE (a, b, i) IN (SELECT x, y FROM s)";
    let told = answer(&session, &format!("{TUPLES} {query}")).await.unwrap_err().to_string();
    assert!(told.contains("a tuple of 3 values") && told.contains("2 columns"), "{told}");
}

#[tokio::test]
async fn forms_that_datafusion_answers_wrongly_are_answered() {
    let world = World::with_days(1);
    let options = SessionOptions { target_partitions: Some(2), ..SessionOptions::default() };
    let session = world.open(&options);
    let mut wrong = Vec::new();
    for (query, expected) in FORMS {
        let found = answer(&session, &format!("{TABLES} {query}")).await;
        if found.as_ref().ok().is_none_or(|rows| rows != expected) {
            wrong.push(format!("{query}\n  found    {found:?}\n  expected {expected:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));

    for (query, words) in [
        ("SELECT (SELECT n.x FROM n WHERE n.g <= o.id) FROM o", "has more than one row"),
        ("SELECT id FROM o WHERE 1 = ANY (SELECT g, x FROM n WHERE n.g = o.id)", "one column"),
        (
            "SELECT id, EXISTS (SELECT 1 FROM n WHERE n.g = p.id) FROM (SELECT id, random() AS r FROM o) AS p",
            "has another value each time",
        ),
    ] {
        let told = answer(&session, &format!("{TABLES} {query}")).await.unwrap_err().to_string();
        assert!(told.contains(words), "{query}: {told}");
    }
}

#[test]
fn subqueries_equal_nested_loops_and_duckdb() {
    let world = World::with_days(1);
    let options = SessionOptions { target_partitions: Some(2), ..SessionOptions::default() };
    let limited = SessionOptions { memory: Some(64 << 20), ..SessionOptions::default() };
    let session = world.open(&options);
    let sessions = [session.sequential(), session, world.open(&limited)];
    for session in &sessions {
        session.context().register_catalog(CATALOG, Arc::new(MemoryCatalogProvider::new()));
    }
    let queries = setting("TIDETABLE_SUBQUERIES", QUERIES);
    let mut total = Outcome::default();
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|thread| {
                scope.spawn({
                    let sessions = &sessions;
                    move || ask_some(sessions, thread, queries)
                })
            })
            .collect();
        for thread in threads {
            let outcome = thread.join().unwrap();
            total.answered += outcome.answered;
            total.refused.extend(outcome.refused);
            total.needless.extend(outcome.needless);
            total.wrong.extend(outcome.wrong);
            total.told.push_str(&outcome.told);
        }
    });
    let (wrong, refused) = (total.wrong.len() as u64, total.refused.len() as u64);
    let shown = setting("TIDETABLE_SUBQUERIES_SHOWN", 5) as usize;
    let some = |all: &[String]| all.iter().take(shown).cloned().collect::<Vec<_>>().join("\n");
    eprintln!("{} right, {wrong} wrong, {refused} refused\n{}", total.answered, some(&total.refused));
    assert!(wrong == 0, "{wrong} of {queries} are wrong:\n{}", some(&total.wrong));
    assert!(refused * 50 <= queries, "{refused} of {queries} are refused:\n{}", some(&total.refused));
    assert!(total.needless.is_empty(), "DataFusion answers what is refused:\n{}", some(&total.needless));
    if let Some(python) = python_with("duckdb") {
        run_script(&python, "subqueries/check.py", &[], total.told);
    }
}
