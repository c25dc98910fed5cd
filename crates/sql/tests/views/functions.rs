//! Functions of GoogleSQL for Bigtable.

use tidetable_layout::{FieldType, Layout};
use tidetable_sql::{Declared, check_query, query_shape};

use super::{error, lines, table, world};

#[tokio::test]
async fn maps_are_accessed_as_in_google_sql() {
    let world = world();
    let session = world.session();
    let query = "SELECT MAP_KEYS(A), MAP_VALUES(A), MAP_CONTAINS_KEY(A, 'v'), map_contains_key(A, b'v'), MAP_EMPTY(B) \
                 FROM rows.T";
    assert_eq!(
        lines(&session, query).await,
        [
            "[ID v] | [1 12] | true | true | false",
            "[ID v] | [2 20] | true | true | true",
            "[ID] | [3] | false | false | false"
        ]
    );
    // A key that differs by row.
    let query = "SELECT C[substr(CAST(_key AS STRING), 2)] FROM rows.T";
    assert_eq!(lines(&session, query).await, ["11", "20", "null"]);
    assert_eq!(lines(&session, "SELECT cardinality(map_entries(C)) FROM rows.T WHERE _key = 'm01'").await.len(), 1);
    assert!(error(&session, "SELECT A[1] FROM rows.T").await.contains("bytes or text"));
}

#[tokio::test]
async fn bytes_become_numbers_and_text() {
    let world = world();
    let session = world.session();
    let one = async |expr: &str| lines(&session, &format!("SELECT {expr}")).await.join("");
    assert_eq!(one("TO_INT64(X'000000000000002A')").await, "42");
    assert_eq!(one("to_int64(X'FFFFFFFFFFFFFFFF')").await, "-1");
    assert_eq!(one("to_float64(X'3FF8000000000000')").await, "1.5");
    assert_eq!(one("to_int64(NULL) IS NULL").await, "true");
    assert_eq!(one("SAFE_CONVERT_BYTES_TO_STRING(X'61FF62')").await, "a\u{FFFD}b");
    assert_eq!(one("CAST(b'abc' AS STRING)").await, "abc");
    assert_eq!(one("CAST('abc' AS BYTES) = b'abc'").await, "true");
    assert_eq!(one("SAFE_CAST(CAST(b'x' AS STRING) AS FLOAT64) IS NULL").await, "true");
    assert!(error(&session, "SELECT to_int64(A['v']) FROM rows.T").await.contains("not the 2 of '12'"));
    assert!(error(&session, "SELECT to_int64(1)").await.contains("to_int64 takes bytes"));
    // As in GoogleSQL, a cast of invalid UTF-8 fails.
    assert!(error(&session, "SELECT CAST(X'FF' AS STRING)").await.to_lowercase().contains("utf"));
}

#[tokio::test]
async fn queries_over_views_are_checked_without_data() {
    let (columns, spec) = table();
    let columns: Vec<_> =
        columns.into_iter().map(|column| tidetable_layout::Field { name: column.name, kind: column.kind }).collect();
    assert_eq!(columns[1].kind, FieldType::Timestamp);
    let layout = Layout::compile(&spec, &tidetable_layout::SourceSchema { fields: columns, time: 1 }).unwrap();
    let tables = [Declared::new("T", &layout)];
    for query in [
        "SELECT meter, v FROM T",
        "SELECT _key, A['v'] FROM rows.T",
        "SELECT A['v'][1].value FROM T(with_history => true, latest_n => 1)",
        "SELECT _timestamp, A['v'] FROM unpack(T, after => TIMESTAMP '2018-01-01')",
        "SELECT family, value FROM cells.T",
    ] {
        check_query(&tables, query, &[]).await.unwrap();
    }
    for (query, told) in [
        ("SELECT NONE['v'] FROM rows.T", "NONE"),
        ("SELECT * FROM NONE(with_history => true)", "there is no table NONE; there is T"),
        ("SELECT * FROM T(latest_n => 1)", "with_history"),
        ("SELECT meter FROM T WHERE random() < 0.5", "random() gives another value each time"),
        ("SELECT meter FROM T WHERE ts < (SELECT now())", "$now is the time of the run"),
    ] {
        let error = check_query(&tables, query, &[]).await.unwrap_err().to_string();
        assert!(error.contains(told), "{query}: {error}");
    }
    let refused = query_shape(&tables, "SELECT meter, ts, random() AS r FROM T").await.unwrap_err().to_string();
    assert!(refused.contains("random()") && refused.contains("in each run"), "{refused}");
}
