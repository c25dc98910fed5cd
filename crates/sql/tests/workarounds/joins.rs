//! Sort-merge joins and aggregations.

use std::sync::Arc;

use arrow::compute::SortOptions;
use datafusion::common::{JoinSide, JoinType, NullEquality};
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::expressions::{BinaryExpr, Column};
use datafusion::physical_plan::joins::SortMergeJoinExec;
use datafusion::physical_plan::joins::utils::{ColumnIndex, JoinFilter};
use datafusion::physical_plan::{ExecutionPlan, collect};
use datafusion::prelude::{SessionConfig, SessionContext};
use futures::FutureExt;

use crate::plan;
use crate::world::World;

use super::{batches, failure, plain, rows, run_all, still_broken, still_fails, texts};

const MERGES: &str = "crates/upstream/src/joins/merge_joins.rs";

#[tokio::test]
async fn still_broken_merge_joins_panic_on_nan() {
    let context = plain();
    run_all(
        &context,
        &[
            "SET datafusion.optimizer.prefer_hash_join = false",
            // Equal keys span batches.
            "SET datafusion.execution.batch_size = 1",
            "CREATE TABLE t AS VALUES (CAST('NaN' AS DOUBLE)), (CAST('NaN' AS DOUBLE))",
        ],
    )
    .await;
    assert_eq!(rows(&context, "SELECT count(*) FROM t").await, ["2"]);
    let query = batches(&context, "SELECT a.column1 FROM t AS a LEFT SEMI JOIN t AS b ON a.column1 = b.column1");
    let answer = std::panic::AssertUnwindSafe(query).catch_unwind().await;
    let remove = format!("the list of types in keys_are_comparable of {MERGES}");
    assert!(answer.is_err(), "{}", super::mended(&remove, "it panicked"));
}

#[tokio::test]
async fn still_broken_keys_of_one_join_are_all_null_equal() {
    let context = plain();
    run_all(&context, &["CREATE TABLE t(x INT, y INT) AS VALUES (1, 1), (2, NULL), (NULL, 3), (NULL, NULL)"]).await;
    let joined = "SELECT a.x, a.y FROM t AS a JOIN t AS b ON a.x IS NOT DISTINCT FROM b.x";
    let keys = "crates/upstream/src/joins/null_equal_keys.rs";
    let wrong = ["1 | 1", "2 | NULL", "NULL | 3", "NULL | NULL"];
    let filtered = rows(&context, &format!("{joined} WHERE a.y = b.y ORDER BY 1, 2")).await;
    still_broken(&filtered, &wrong, &["1 | 1", "NULL | 3"], keys);
    let neighbours = rows(&context, &format!("{joined} JOIN t AS c ON c.y = a.y ORDER BY 1, 2")).await;
    still_broken(&neighbours, &["1 | 1"], &["1 | 1", "NULL | 3", "NULL | 3"], keys);
}

#[tokio::test]
async fn still_broken_filters_find_columns_by_their_names() {
    let query = "WITH p(k, v) AS (VALUES (1, 1), (NULL, 2)), q(k) AS (VALUES (1), (NULL), (7)) \
                 SELECT p.k, q.k FROM p RIGHT JOIN q ON p.k = q.k WHERE p.k = p.k ORDER BY 2";
    let right = ["1 | 1"];
    still_broken(&rows(&plain(), query).await, &["1 | 1", "NULL | 7"], &right, "crates/upstream/src/same_names.rs");
}

/// A scan of two columns `k` and `v` of one row.
async fn one_row(context: &SessionContext, v: i64) -> Arc<dyn ExecutionPlan> {
    let frame = context.sql(&format!("SELECT * FROM (VALUES (1, {v})) AS t(k, v)")).await.unwrap();
    frame.create_physical_plan().await.unwrap()
}

#[tokio::test]
async fn still_broken_merge_joins_ignore_the_column_order_of_filters() {
    let context = plain();
    let (left, right) = (one_row(&context, 5).await, one_row(&context, 7).await);
    // right.v > left.v, which is true.
    let of_filter = |name: &str, at: usize| Arc::new(Column::new(name, at));
    let greater = BinaryExpr::new(of_filter("right", 0), Operator::Gt, of_filter("left", 1));
    let columns = [JoinSide::Right, JoinSide::Left].map(|side| ColumnIndex { index: 1, side });
    let field = |name: &str| left.schema().field(1).clone().with_name(name);
    let schema = arrow::datatypes::Schema::new(vec![field("right"), field("left")]);
    let filter = JoinFilter::new(Arc::new(greater), columns.to_vec(), Arc::new(schema));
    let key = || Arc::new(Column::new("k", 0)) as _;
    let join = SortMergeJoinExec::try_new(
        left,
        right,
        vec![(key(), key())],
        Some(filter),
        JoinType::Inner,
        vec![SortOptions::default()],
        NullEquality::NullEqualsNothing,
    );
    let found = texts(&collect(Arc::new(join.unwrap()), context.task_ctx()).await.unwrap());
    still_broken(&found, &[], &["1 | 5 | 1 | 7"], &format!("left_columns_first of {MERGES}"));
}

#[tokio::test]
async fn still_broken_projections_below_merge_joins_move_their_filters() {
    let context = plain();
    run_all(&context, &["SET datafusion.optimizer.prefer_hash_join = false"]).await;
    // x > y, which is true; without x and y, the filter compares a and b.
    let query = "SELECT l.k, l.a, r.k, r.b FROM (VALUES (9, 1, 0)) AS l(x, k, a) JOIN (VALUES (8, 1, 7)) AS r(y, k, b) \
                 ON l.k = r.k AND l.x > r.y";
    let found = rows(&context, query).await;
    still_broken(&found, &[], &["1 | 0 | 1 | 7"], &format!("below_projections of {MERGES}"));
}

#[tokio::test]
async fn still_broken_distinct_beside_sums_of_decimals() {
    let context = plain();
    run_all(&context, &["CREATE TABLE t (price DECIMAL(10, 2), meter BIGINT) AS VALUES (1.25, 1), (2.50, 2)"]).await;
    assert_eq!(rows(&context, "SELECT sum(price), count(DISTINCT meter) FROM t").await, ["3.75 | 2"]);
    let query = "SELECT sum(price), count(DISTINCT meter) FROM t HAVING sum(price) > 3";
    let error = "Invalid comparison operation: Decimal128(30, 2) > Decimal128(20, 2)";
    still_fails(&failure(&context, query).await, error, "crates/upstream/src/distinct_decimals.rs");
}

#[tokio::test]
async fn still_broken_hash_joins_do_not_spill() {
    use datafusion::execution::memory_pool::FairSpillPool;
    use datafusion::execution::runtime_env::RuntimeEnvBuilder;
    use datafusion::prelude::SessionConfig;

    let pool = Arc::new(FairSpillPool::new(1 << 20));
    let runtime = RuntimeEnvBuilder::new().with_memory_pool(pool).build_arc().unwrap();
    let context = SessionContext::new_with_config_rt(SessionConfig::new().with_target_partitions(1), runtime);
    let query =
        "SELECT count(*) FROM generate_series(1, 200000) AS a(v) JOIN generate_series(1, 200000) AS b(v) ON a.v = b.v";
    let remove = "crates/sql/src/optimizer/sort_merge_join.rs and crates/upstream/src/joins/merge_joins.rs";
    still_fails(&failure(&context, query).await, "HashJoinInput", remove);
}

#[tokio::test]
async fn still_broken_joins_do_not_yield() {
    let query = "SELECT count(*) FROM t a CROSS JOIN t b WHERE a.column1 + b.column1 > 0";
    let table = "CREATE TABLE t AS SELECT value AS column1 FROM generate_series(1, 2000) AS s(value)";
    let first_poll = async |context: SessionContext| {
        run_all(&context, &[table]).await;
        let plan = context.sql(query).await.unwrap().create_physical_plan().await.unwrap();
        // A fresh task has its whole budget, of 128 batches.
        tokio::spawn(async move { collect(plan, context.task_ctx()).now_or_never().is_some() }).await.unwrap()
    };
    let config = SessionConfig::new().with_target_partitions(1).with_batch_size(100);
    let ends = first_poll(SessionContext::new_with_config(config)).await;
    assert!(ends, "{}", super::mended("crates/upstream/src/joins/yielding_joins.rs", "a join yielded"));
}

#[tokio::test]
async fn joins_of_our_sessions_yield() {
    let world = World::with_days(1);
    let session = world.session().sequential();
    for query in [
        "SELECT count(*) FROM SENSOR a CROSS JOIN SENSOR b",
        "SELECT count(*) FROM SENSOR a JOIN SENSOR b ON a.kwh + b.kwh > 0",
        "SELECT count(*) FROM SENSOR a JOIN SENSOR b ON a.ts = b.ts",
    ] {
        let plan = plan(&session, query).await;
        let lines: Vec<&str> = plan.lines().map(str::trim).collect();
        let join = lines.iter().position(|line| line.contains("JoinExec")).unwrap();
        assert!(lines[join - 1].contains("CooperativeExec"), "{plan}");
    }
}
