//! Sorts, limits and orders.

use datafusion::datasource::physical_plan::FileScanConfig;
use datafusion::datasource::source::DataSourceExec;
use datafusion::prelude::SessionContext;
use tempfile::TempDir;

use super::{plain, rows, run_all, still_broken};

const LIMITS: &str = "FixLimits and FreeLimits of crates/upstream/src/limits.rs (all three tests of limits must fail)";

/// A session with the table `t` of the numbers 1 to 40 in two sorted files; `odd` is 1 for odd numbers.
async fn sorted_files() -> (SessionContext, TempDir) {
    let folder = TempDir::new().unwrap();
    let at = folder.path().display();
    let context = plain();
    for (file, start) in [("a", 0), ("b", 20)] {
        let numbers = format!("SELECT value + {start} AS a, value % 2 AS odd FROM generate_series(1, 20) AS s(value)");
        run_all(&context, &[&format!("COPY ({numbers}) TO '{at}/{file}.parquet'")]).await;
    }
    let table = format!("CREATE EXTERNAL TABLE t STORED AS PARQUET WITH ORDER (a ASC) LOCATION '{at}/'");
    run_all(&context, &[&table]).await;
    (context, folder)
}

#[tokio::test]
async fn still_broken_limits_move_below_filters_windows_and_offsets() {
    let (context, _folder) = sorted_files().await;
    let filtered = "SELECT a FROM (SELECT a, odd FROM t LIMIT 20) WHERE odd = 1 ORDER BY a LIMIT 4";
    still_broken(&rows(&context, filtered).await, &["1", "3"], &["1", "3", "5", "7"], LIMITS);
    let windowed = "SELECT a, n FROM (SELECT a, count(*) OVER () AS n FROM t) ORDER BY a LIMIT 2";
    still_broken(&rows(&context, windowed).await, &["1 | 2", "2 | 2"], &["1 | 40", "2 | 40"], LIMITS);
    let skipped = "SELECT a FROM (SELECT a FROM t OFFSET 10) ORDER BY a LIMIT 2";
    still_broken(&rows(&context, skipped).await, &[], &["11", "12"], LIMITS);
}

#[tokio::test]
async fn still_broken_sorts_move_below_limits() {
    let context = plain();
    run_all(&context, &["CREATE TABLE t AS SELECT 100 - value AS a FROM generate_series(1, 20) AS s(value)"]).await;
    let query = "SELECT count(*) FROM (SELECT a FROM (SELECT a FROM t LIMIT 4 OFFSET 3) ORDER BY a)";
    let ordered = "SELECT a FROM (SELECT a FROM t LIMIT 4 OFFSET 3) ORDER BY a";
    assert_eq!(rows(&context, query).await, ["4"], "without the sort");
    still_broken(&rows(&context, ordered).await, &["96"], &["93", "94", "95", "96"], LIMITS);
}

#[tokio::test]
async fn still_broken_sorts_below_offsets_are_removed() {
    let context = plain();
    run_all(&context, &["CREATE TABLE t AS VALUES ('second', 2), ('first', 1)"]).await;
    let query = "SELECT x.column1 FROM (SELECT column1 FROM t ORDER BY column2 OFFSET 1) AS x \
                 JOIN t AS y ON x.column1 = y.column1";
    still_broken(&rows(&context, query).await, &["first"], &["second"], LIMITS);
}

#[tokio::test]
async fn still_broken_limits_take_the_order_from_scans() {
    let (context, _folder) = sorted_files().await;
    let frame = context.sql("SELECT a FROM t ORDER BY a LIMIT 3").await.unwrap();
    let plan = frame.create_physical_plan().await.unwrap();
    let scan = plan.children()[0].downcast_ref::<DataSourceExec>().unwrap();
    let config = scan.data_source().downcast_ref::<FileScanConfig>().unwrap();
    assert_eq!((config.file_groups.len(), config.output_ordering.len(), config.limit), (2, 1, Some(3)));
    assert!(
        !config.preserve_order,
        "{}",
        super::mended("crates/upstream/src/preserved_order.rs", "a limited scan did not preserve its order")
    );
}

#[tokio::test]
async fn still_broken_casts_to_dates_make_timestamps_constant() {
    let context = plain();
    let times =
        "(TIMESTAMP '2018-01-02T05:00:00'), (TIMESTAMP '2018-01-02T03:00:00'), (TIMESTAMP '2018-01-02T04:00:00')";
    run_all(&context, &[&format!("CREATE TABLE t AS VALUES {times}")]).await;
    let query = "SELECT extract(hour FROM column1) FROM \
                 (SELECT column1 FROM t WHERE CAST(column1 AS DATE) = DATE '2018-01-02' ORDER BY column1 LIMIT 3)";
    let remove = "crates/upstream/src/date_comparisons.rs (unless its bounds are needed to skip files)";
    still_broken(&rows(&context, query).await, &["5", "3", "4"], &["3", "4", "5"], remove);
}
