//! Groups, and constants that meet NULLs and joins.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch};
use datafusion::datasource::MemTable;
use datafusion::prelude::{SessionConfig, SessionContext};

use super::{failure, plain, rows, run_all, still_broken, still_fails};

const BARRIERS: &str = "crates/upstream/src/property_barriers.rs";

/// A session of one partition with a table `t (meter, kwh)` of one meter in two partitions, and a table `u (kwh)`.
fn one_meter() -> SessionContext {
    let context = SessionContext::new_with_config(SessionConfig::new().with_target_partitions(1));
    let column = |values: [i64; 3]| Arc::new(Int64Array::from(values.to_vec())) as ArrayRef;
    let readings =
        |kwh: [i64; 3]| RecordBatch::try_from_iter([("meter", column([42; 3])), ("kwh", column(kwh))]).unwrap();
    let (one, two) = (readings([1, 2, 3]), readings([4, 5, 6]));
    let table = MemTable::try_new(one.schema(), vec![vec![one], vec![two]]).unwrap();
    context.register_table("t", Arc::new(table)).unwrap();
    let values = |kwh: [i64; 3]| RecordBatch::try_from_iter([("kwh", column(kwh))]).unwrap();
    let (one, two) = (values([1, 0, 2]), values([3, 9, 4]));
    let table = MemTable::try_new(one.schema(), vec![vec![one, two]]).unwrap();
    context.register_table("u", Arc::new(table)).unwrap();
    context
}

async fn sorted(context: &SessionContext, query: &str) -> Vec<String> {
    let mut found = rows(context, query).await;
    found.sort();
    found
}

#[tokio::test]
async fn still_broken_constants_hold_across_grouping_sets() {
    let query = "SELECT meter, count(*) FROM t WHERE meter = 42 GROUP BY ROLLUP (meter)";
    let found = sorted(&one_meter(), query).await;
    still_broken(&found, &["42 | 6", "NULL | 3", "NULL | 3"], &["42 | 6", "NULL | 6"], BARRIERS);
}

#[tokio::test]
async fn still_broken_constants_hold_across_outer_joins() {
    let context = SessionContext::new_with_config(SessionConfig::new().with_target_partitions(1));
    run_all(
        &context,
        &[
            "CREATE TABLE all_kwh AS SELECT value AS kwh FROM generate_series(1, 100000) AS s(value)",
            "CREATE TABLE even AS SELECT 42 AS meter, value * 2 AS kwh FROM generate_series(1, 50000) AS s(value)",
        ],
    )
    .await;
    let query = "SELECT count(*) FROM (SELECT meter, array_agg(a.kwh) FROM (SELECT * FROM even WHERE meter = 42) AS e \
                 RIGHT JOIN all_kwh AS a ON e.kwh = a.kwh GROUP BY meter)";
    let groups: usize = rows(&context, query).await[0].parse().unwrap();
    still_broken(&[(groups > 2).to_string()], &["true"], &["false"], BARRIERS);
}

#[tokio::test]
async fn still_broken_joins_forget_constants_of_their_right_side() {
    let query = "SELECT rank() OVER (PARTITION BY unit ORDER BY r.kwh) FROM u \
                 JOIN (SELECT kwh, 'kWh' AS unit FROM t) AS r ON u.kwh = r.kwh";
    still_fails(&failure(&one_meter(), query).await, "does not satisfy order requirements", BARRIERS);
}

#[tokio::test]
async fn still_broken_case_is_nullable_in_physical_plans_only() {
    let context = SessionContext::new();
    run_all(&context, &["CREATE TABLE t (i BIGINT, s VARCHAR) AS VALUES (1, 'a'), (NULL, NULL)"]).await;
    let condition = "CASE WHEN i > 1 AND s = 'a' THEN i ELSE 0 END IN (1, 2)";
    let query = format!("SELECT count(*) FILTER (WHERE {condition}), sum(i) FILTER (WHERE {condition}) FROM t");
    let remove = "skip_physical_aggregate_schema_check in set_planning_options of crates/sql/src/session.rs";
    still_fails(&failure(&context, &query).await, "field nullability at index 0", remove);
}

#[tokio::test]
async fn still_broken_aggregates_of_one_name_are_refused() {
    let query = "SELECT sum(i) AS a, sum(CAST(i AS DECIMAL)) AS b FROM (VALUES (1)) AS t(i)";
    let remove = "crates/sql/src/syntax/rewrite/cast_labels.rs and crates/functions/src/markers/cast_label.rs";
    still_fails(&failure(&plain(), query).await, "duplicate unqualified field name", remove);
}
