//! Subqueries and set operations.

use datafusion::prelude::SessionContext;

use super::{failure, plain, rows, run_all, still_broken, still_fails};

const SUBQUERIES: &str = "crates/upstream/src/subqueries";

/// `o` has the values 1, 2 and null; `n` has 1 in group 1 and null in group 2.
async fn tables() -> SessionContext {
    let context = plain();
    let tables = [
        "CREATE TABLE o(id INT, x INT) AS VALUES (1, 1), (2, 2), (3, NULL)",
        "CREATE TABLE n(g INT, x INT) AS VALUES (1, 1), (2, NULL)",
        "CREATE TABLE d(day DATE) AS VALUES (DATE '2024-01-01'), (DATE '2024-01-02')",
        "CREATE TABLE t(ts TIMESTAMP) AS VALUES (TIMESTAMP '2024-01-01T01:00:00'), (TIMESTAMP '2024-01-01T02:00:00'), \
         (TIMESTAMP '2024-01-02T01:00:00'), (TIMESTAMP '2024-01-02T02:00:00')",
    ];
    run_all(&context, &tables).await;
    context
}

#[tokio::test]
async fn still_broken_subqueries_group_by_the_column_of_a_cast() {
    let query = "SELECT day, (SELECT count(*) FROM t WHERE CAST(t.ts AS DATE) = d.day) FROM d ORDER BY 1";
    let wrong = ["2024-01-01 | 1", "2024-01-01 | 1", "2024-01-02 | 1", "2024-01-02 | 1"];
    let right = ["2024-01-01 | 2", "2024-01-02 | 2"];
    still_broken(&rows(&tables().await, query).await, &wrong, &right, SUBQUERIES);
}

#[tokio::test]
async fn still_broken_not_in_under_or_ignores_nulls() {
    let query = "SELECT id FROM o WHERE x NOT IN (SELECT x FROM n) OR id > 100 ORDER BY 1";
    still_broken(&rows(&tables().await, query).await, &["2", "3"], &[], SUBQUERIES);
}

#[tokio::test]
async fn still_broken_correlated_not_in_ignores_nulls() {
    let context = tables().await;
    let constant = "SELECT id FROM o WHERE 3 NOT IN (SELECT n.x FROM n WHERE n.g = o.id) ORDER BY 1";
    still_broken(&rows(&context, constant).await, &["1", "2", "3"], &["1", "3"], SUBQUERIES);
    let under_or = "SELECT id FROM o WHERE id NOT IN (SELECT n.x FROM n WHERE n.g <= o.id) OR id > 100 ORDER BY 1";
    still_broken(&rows(&context, under_or).await, &["2", "3"], &[], SUBQUERIES);
}

#[tokio::test]
async fn still_broken_aggregates_of_no_rows_do_not_exist() {
    let query = "SELECT id FROM o WHERE EXISTS (SELECT count(*) FROM n WHERE n.g = o.id) ORDER BY 1";
    still_broken(&rows(&tables().await, query).await, &["1", "2"], &["1", "2", "3"], SUBQUERIES);
}

#[tokio::test]
async fn still_broken_any_and_all_confuse_columns_of_one_name() {
    let context = tables().await;
    for (query, wrong, right) in [
        ("SELECT id FROM o WHERE x <= ANY (SELECT x FROM o) ORDER BY 1", vec!["1", "2", "3"], vec!["1", "2"]),
        ("SELECT id FROM o WHERE x > ANY (SELECT x FROM o) ORDER BY 1", vec![], vec!["2"]),
    ] {
        still_broken(&rows(&context, query).await, &wrong, &right, SUBQUERIES);
    }
}

#[tokio::test]
async fn still_broken_filters_of_subqueries_confuse_columns_of_one_name() {
    let query = "SELECT id FROM o WHERE EXISTS (SELECT 1 FROM n CROSS JOIN o AS p WHERE p.id = 2 AND n.x + o.id > p.x) ORDER BY 1";
    still_broken(&rows(&tables().await, query).await, &["1", "2", "3"], &["2", "3"], SUBQUERIES);
}

#[tokio::test]
async fn still_broken_correlated_offsets_are_dropped() {
    let query = "SELECT id FROM o WHERE EXISTS (SELECT 1 FROM n WHERE n.g = o.id OFFSET 1) ORDER BY 1";
    still_broken(&rows(&tables().await, query).await, &["1", "2"], &[], SUBQUERIES);
}

#[tokio::test]
async fn still_broken_subqueries_must_aggregate() {
    let query = "SELECT id, (SELECT n.x FROM n WHERE n.g = o.id) FROM o";
    still_fails(&failure(&tables().await, query).await, "must be aggregated to return at most one row", SUBQUERIES);
}

#[tokio::test]
async fn still_broken_set_operations_do_not_count() {
    let context = plain();
    let tables =
        ["CREATE TABLE l(x INT) AS VALUES (1), (1), (1), (2)", "CREATE TABLE r(x INT) AS VALUES (1), (2), (2)"];
    run_all(&context, &tables).await;
    let remove = "crates/upstream/src/multisets.rs";
    let except = "SELECT x FROM l EXCEPT ALL SELECT x FROM r";
    still_broken(&rows(&context, except).await, &[], &["1", "1"], remove);
    let intersect = "SELECT x FROM l INTERSECT ALL SELECT x FROM r ORDER BY 1";
    still_broken(&rows(&context, intersect).await, &["1", "1", "1", "2"], &["1", "2"], remove);
}

#[tokio::test]
async fn still_broken_repeated_keys_count_as_unique() {
    let context = plain();
    run_all(&context, &["CREATE TABLE a(k INT) AS VALUES (1), (2)", "CREATE TABLE c(j INT) AS VALUES (1), (2), (3)"])
        .await;
    let groups = "SELECT d.k, c.j FROM (SELECT DISTINCT k FROM a) AS d CROSS JOIN c GROUP BY c.j, d.k";
    let query = format!("SELECT count(a.k) FROM a LEFT JOIN ({groups}) AS g ON a.k = g.k");
    let remove = "crates/upstream/src/dependencies.rs and crates/functions/src/passing/opaque.rs";
    still_broken(&rows(&context, &query).await, &["2"], &["6"], remove);
}

#[tokio::test]
async fn still_broken_missing_values_are_not_null() {
    let query = "SELECT count(*) FROM o WHERE (SELECT count(*) FROM o HAVING count(*) > 100) IS NULL";
    let remove = "is_wrongly_not_null of crates/upstream/src/subqueries/kept.rs";
    still_broken(&rows(&tables().await, query).await, &["0"], &["3"], remove);
}

#[tokio::test]
async fn still_broken_filters_below_renamed_columns_are_lost() {
    let query = "SELECT id FROM o WHERE EXISTS \
                 (SELECT 1 FROM (SELECT n.x, n.g FROM n WHERE n.g <= o.id) AS m(p, q) WHERE p = o.x)";
    still_fails(&failure(&tables().await, query).await, "No field named", SUBQUERIES);
}

#[tokio::test]
async fn still_broken_tuples_are_in_no_subquery() {
    let query = "SELECT id FROM o WHERE (id, x) IN (SELECT g, x FROM n)";
    let remove = "crates/sql/src/syntax/rewrite/tuple_members.rs";
    still_fails(&failure(&tables().await, query).await, "Too many columns", remove);
}
