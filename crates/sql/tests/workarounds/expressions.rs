//! Numbers and times.

use super::{failure, plain, rows, run_all, still_broken, still_fails, with_decimals};

#[tokio::test]
async fn still_broken_floats_become_decimals() {
    let context = with_decimals();
    run_all(&context, &["CREATE TABLE t (x DOUBLE) AS VALUES (CAST('17.4' AS DOUBLE))"]).await;
    let remove = "crates/upstream/src/floats, except coerce_expression, which crates/upstream/src/semantics.rs needs";
    for (query, wrong, right) in [
        ("SELECT count(*) FROM t WHERE x = 17.4", "0", "1"),
        ("SELECT count(*) FROM t WHERE x IN (17.4, 1.5)", "0", "1"),
        ("SELECT count(*) FROM t WHERE x BETWEEN 17.4 AND 17.4", "0", "1"),
        ("SELECT count(*) FROM t JOIN (SELECT 17.4 AS y) AS s ON x = y", "0", "1"),
        ("SELECT CAST(coalesce(x, 0.5) AS VARCHAR) FROM t", "17.399999999999998", "17.4"),
    ] {
        still_broken(&rows(&context, query).await, &[wrong], &[right], remove);
    }
    run_all(&context, &["CREATE TABLE u (x DOUBLE) AS VALUES (CAST('1e300' AS DOUBLE))"]).await;
    for query in
        ["SELECT x FROM u WHERE x > 0.5", "SELECT coalesce(x, 0.5) FROM u", "SELECT x FROM u UNION ALL SELECT 0.5"]
    {
        still_fails(&failure(&context, query).await, "Cannot cast to Decimal128(30, 15)", remove);
    }
}

#[tokio::test]
async fn still_broken_nvl2_coerces_what_it_tests() {
    let query = "SELECT arrow_typeof(nvl2('text', 1, 2))";
    let remove = "as_case of crates/upstream/src/floats/coerce.rs";
    still_broken(&rows(&plain(), query).await, &["Utf8"], &["Int64"], remove);
}

#[tokio::test]
async fn still_broken_zeroes_in_lists_differ() {
    let context = plain();
    run_all(&context, &["CREATE TABLE t (x DOUBLE) AS VALUES (CAST('-0.0' AS DOUBLE))"]).await;
    assert_eq!(rows(&context, "SELECT x = 0.0 FROM t").await, ["true"]);
    let remove = "with_both_zeroes of crates/upstream/src/floats/coerce.rs";
    still_broken(&rows(&context, "SELECT x IN (0.0, 1.0, 2.0, 3.0) FROM t").await, &["false"], &["true"], remove);
}

#[tokio::test]
async fn still_broken_nullif_tells_zeroes_apart() {
    let context = plain();
    run_all(&context, &["CREATE TABLE t (x DOUBLE) AS VALUES (CAST('-0.0' AS DOUBLE))"]).await;
    let remove = "crates/functions/src/passing/nullif.rs";
    still_broken(&rows(&context, "SELECT nullif(x, 0) IS NULL FROM t").await, &["false"], &["true"], remove);
}

#[tokio::test]
async fn still_broken_values_of_floats_and_decimals_are_decimals() {
    let query = "SELECT arrow_typeof(column1) FROM (VALUES (CAST('1e-20' AS DOUBLE)), (0.5)) LIMIT 1";
    let remove = "crates/sql/src/syntax/rewrite/float_values.rs";
    still_broken(&rows(&with_decimals(), query).await, &["Decimal128(30, 15)"], &["Float64"], remove);
}

#[tokio::test]
async fn still_broken_casts_of_decimals_round_twice() {
    let query = "SELECT CAST(column1 AS DOUBLE) FROM (VALUES (999999999999999.99999999))";
    let remove = "crates/functions/src/casts/decimal_floats.rs";
    still_broken(&rows(&with_decimals(), query).await, &["999999999999999.9"], &["1000000000000000.0"], remove);
}

#[tokio::test]
async fn still_broken_large_exponents_are_no_decimals() {
    let error = "Decimal scale -300 exceeds the minimum supported scale";
    let remove = "the exponents in post_visit_expr of crates/sql/src/syntax/statement.rs";
    still_fails(&failure(&with_decimals(), "SELECT 1e300").await, error, remove);
}

#[tokio::test]
async fn still_broken_integers_wrap_around() {
    let remove = "crates/functions/src/checked.rs";
    for (query, wrong) in [
        ("SELECT 9223372036854775807 + column1 FROM (VALUES (1))", "-9223372036854775808"),
        ("SELECT 9223372036854775807 * column1 FROM (VALUES (2))", "-2"),
        ("SELECT -column1 FROM (VALUES (CAST('-9223372036854775808' AS BIGINT)))", "-9223372036854775808"),
    ] {
        still_broken(&rows(&plain(), query).await, &[wrong], &["an error"], remove);
    }
}

#[tokio::test]
async fn still_broken_dates_lose_the_hours_of_intervals() {
    let query = "SELECT CAST(column1 + INTERVAL '5 hours' AS VARCHAR) FROM (VALUES (DATE '2024-01-01'))";
    let remove = "crates/functions/src/times/date_intervals.rs";
    still_broken(&rows(&plain(), query).await, &["2024-01-01"], &["2024-01-01T05:00:00"], remove);
}

#[tokio::test]
async fn still_broken_correlations_of_groups_lose_digits() {
    let values = "(VALUES (1, 1000000000.0), (1, 1000000007.0), (1, 1000000015.0)) AS t(g, x)";
    let query = format!("SELECT CAST(round(corr(x, x), 6) AS VARCHAR) FROM {values} GROUP BY g");
    let remove = "the correlation of groups in crates/functions/src/totals/moments_accumulators.rs";
    still_broken(&rows(&plain(), &query).await, &["-1.0"], &["1.0"], remove);
}

#[tokio::test]
async fn still_broken_sums_wrap_around() {
    let remove = "crates/functions/src/totals/sum.rs";
    let integers = "SELECT sum(column1) FROM (VALUES (9223372036854775807), (1))";
    still_broken(&rows(&plain(), integers).await, &["-9223372036854775808"], &["an error"], remove);
    let nines = "CAST('99999999999999999999999999999999999999' AS DECIMAL(38, 0))";
    let decimals = format!("SELECT sum(column1) FROM (VALUES ({nines}), ({nines}))");
    let wrong = "-14028236692093846346337460743176821145";
    // A debug build of DataFusion without overflow checks wraps; one with them panics.
    still_broken(&rows(&plain(), &decimals).await, &[wrong], &["an error"], remove);
}

#[tokio::test]
async fn still_broken_averages_of_decimals_are_truncated() {
    let query = "SELECT avg(CAST(column1 AS DECIMAL(5, 2))) FROM (VALUES (1), (1), (0))";
    still_broken(&rows(&plain(), query).await, &["0.666666"], &["0.666667"], "crates/functions/src/totals/average.rs");
}

#[tokio::test]
async fn still_broken_casts_to_integers_truncate() {
    let remove = "crates/functions/src/casts/rounded.rs";
    for kind in ["DOUBLE", "DECIMAL(5, 2)"] {
        let query = format!("SELECT CAST(CAST(column1 AS {kind}) AS BIGINT) FROM (VALUES (1.7))");
        still_broken(&rows(&plain(), &query).await, &["1"], &["2"], remove);
    }
}

#[tokio::test]
async fn still_broken_date_trunc_ends_in_2262() {
    let remove = "crates/functions/src/times/date_trunc.rs";
    for zone in ["None", "Some(\"UTC\")"] {
        let time = format!("arrow_cast('2300-02-03T00:00:01Z', 'Timestamp(Microsecond, {zone})')");
        let query = format!("SELECT date_trunc('month', column1) FROM (VALUES ({time}))");
        still_fails(&failure(&plain(), &query).await, "out of range", remove);
    }
}

#[tokio::test]
async fn still_broken_timestamps_end_in_2262() {
    let literal = "Timestamp in plan_type_field of crates/sql/src/syntax/statement.rs";
    still_fails(&failure(&plain(), "SELECT TIMESTAMP '2300-01-01'").await, "Nanosecond", literal);
    let function = "to_timestamp in as_cast of crates/upstream/src/semantics.rs";
    still_fails(&failure(&plain(), "SELECT to_timestamp('2300-01-01')").await, "nanoseconds", function);
    let compared = "compared_times of crates/upstream/src/semantics.rs";
    let early = "arrow_cast('2018-01-01T00:00:01', 'Timestamp(Microsecond, None)')";
    for other in ["'2300-01-01'", "DATE '2300-01-01'"] {
        let query = format!("SELECT column1 < {other} FROM (VALUES ({early}))");
        still_fails(&failure(&plain(), &query).await, "", compared);
        assert!(!failure(&plain(), &query).await.contains("no error"), "{}", super::mended(compared, "an error"));
    }
}

#[tokio::test]
async fn still_broken_times_without_seconds_are_no_timestamps() {
    let remove = "the reader of text in crates/functions/src/times.rs";
    for text in ["2018-01-02T03:04", "2018-1-2", "2018-01-02 3:04"] {
        let query = format!("SELECT CAST('{text}' AS TIMESTAMP)");
        still_fails(&failure(&plain(), &query).await, "Error parsing timestamp", remove);
    }
}

#[tokio::test]
async fn still_broken_round_changes_its_type() {
    let context = with_decimals();
    run_all(&context, &["CREATE TABLE t (d DECIMAL(10, 3)) AS VALUES (CAST('-18.62' AS DECIMAL(10, 3)))"]).await;
    let query = "SELECT count(*) FROM t WHERE round(d, 1) = -18.6";
    let remove = "crates/upstream/src/rounded_decimals.rs";
    still_fails(&failure(&context, query).await, "Decimal128(10, 1) == Decimal128(11, 3)", remove);
}

#[tokio::test]
async fn still_broken_decimals_are_no_items_of_lists_of_floats() {
    let query = "SELECT 0.1 = ANY([CAST(0.1 AS DOUBLE)])";
    let remove = "crates/functions/src/markers/comparable.rs and make_comparable of crates/sql/src/syntax/statement.rs";
    still_fails(&failure(&with_decimals(), query).await, "Failed to coerce arguments", remove);
}
