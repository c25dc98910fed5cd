//! Functions whose values have a size that is an argument, under a memory limit.

use arrow::array::RecordBatch;
use arrow::util::pretty::pretty_format_batches;
use futures::TryStreamExt;
use tidetable_sql::{Session, SessionOptions, SqlError};

use crate::world::World;

const MEMORY: u64 = 32 << 20;

async fn rows(session: &Session, query: &str) -> Result<Vec<RecordBatch>, SqlError> {
    Ok(session.stream(query).await?.try_collect().await?)
}

fn limited(world: &World) -> Session {
    world.open(&SessionOptions { memory: Some(MEMORY), ..SessionOptions::default() })
}

#[tokio::test]
async fn large_values_are_refused_before_they_are_made() {
    let world = World::with_days(1);
    let session = limited(&world);
    for value in [
        "repeat('x', 2000000000)",
        "lpad('x', 2000000000, 'y')",
        "rpad('x', 2000000000)",
        "generate_series(1, 3000000000)",
        "generate_series(DATE '0001-01-01', DATE '9999-01-01', INTERVAL '1' DAY)[1] || repeat('x', 2000000000)",
        "range(3000000000)",
        "range(3000000000, 0, -1)",
        "generate_series(TIMESTAMP '2020-01-01', TIMESTAMP '2025-01-01', INTERVAL '1' MICROSECOND)",
        "array_repeat('x', 2000000000)",
        "array_resize([1], 2000000000)",
        "array_resize([1], 2000000000, 7)",
        "replace(repeat('a', 100000), 'a', repeat('b', 100000))",
        "regexp_replace(repeat('a', 100000), 'a', repeat('b', 100000), 'g')",
        "array_to_string(range(100000), repeat('b', 100000))",
        "concat(repeat('a', 20000000), repeat('b', 20000000))",
        "repeat('a', 9000000) || repeat('b', 9000000)",
        "repeat('a', 3000000) || 'b' || repeat('c', 5000000) || repeat('d', 5000000)",
    ] {
        // As a constant, and by row.
        for query in [format!("SELECT {value}"), format!("SELECT {value}, kwh FROM SENSOR WHERE meter = 1")] {
            let error = rows(&session, &query).await.unwrap_err();
            assert!(matches!(error, SqlError::Memory { .. }), "{query}: {error}");
        }
    }
    // Each is small, but not those of a batch.
    let query = "SELECT length(max(repeat('x', 100000 + v % 2))) FROM generate_series(1, 8192) AS t (v)";
    let error = rows(&session, query).await.unwrap_err();
    assert!(matches!(error, SqlError::Memory { .. }), "{error}");
}

#[tokio::test]
async fn small_values_are_those_without_a_limit() {
    let world = World::with_days(1);
    let (session, free) = (limited(&world), world.open(&SessionOptions::default()));
    for query in [
        "SELECT repeat('ab', 3), lpad('x', 5, 'yz'), rpad('é', 4, '-'), replace('abab', 'b', 'ccc')",
        "SELECT repeat('ab', meter), lpad(CAST(meter AS TEXT), 6, '0') FROM SENSOR ORDER BY ts, meter LIMIT 7",
        "SELECT generate_series(1, 5), range(5, 1, -2), range(3), generate_series(5, 1)",
        "SELECT generate_series(DATE '2020-01-30', DATE '2020-03-02', INTERVAL '1' MONTH)",
        "SELECT array_repeat('x', 3), array_resize([1, 2], 4), array_resize([1, 2, 3], 2), array_to_string([1, 2], ', ')",
        "SELECT repeat('x', NULL), lpad(NULL, 3), range(NULL), array_repeat(NULL, 2), concat('a', NULL, 1)",
        "SELECT regexp_replace('aXbX', 'X', '-', 'g'), overlay('abcdef' PLACING 'xx' FROM 2), concat_ws('-', 'a', 'b')",
        "SELECT length(repeat('x', 3000000)), length(lpad('', 200000, 'é')), array_length(range(100000))",
        "SELECT 'a' || 'b' || NULL, 'a' || 1 || 'c', meter || '-' || kwh FROM SENSOR ORDER BY ts, meter LIMIT 7",
        "SELECT count(*) FROM SENSOR WHERE 'x' || meter LIKE 'x' || '1%' GROUP BY meter || 'y' ORDER BY meter || 'y'",
        "SELECT [1] || [2], (SELECT max(meter || 'z') FROM SENSOR)",
        "SELECT count(*), sum(v) FROM (SELECT unnest(generate_series(1, 300000)) AS v)",
        "SELECT max(length(repeat('x', v))) FROM generate_series(1, 200000, 100) AS t (v) WHERE v < 5000",
    ] {
        let shown = |found: Vec<RecordBatch>| pretty_format_batches(&found).unwrap().to_string();
        assert_eq!(shown(rows(&session, query).await.unwrap()), shown(rows(&free, query).await.unwrap()), "{query}");
    }
}

#[tokio::test]
async fn values_that_are_dropped_count_no_longer() {
    let world = World::with_days(1);
    let session = limited(&world);
    // Together they are five times the limit.
    let query = "SELECT sum(length(repeat('x', 5000 + v % 2))) FROM generate_series(1, 32768) AS t (v)";
    let found = rows(&session, query).await.unwrap();
    assert!(pretty_format_batches(&found).unwrap().to_string().contains("163856384"));
}
