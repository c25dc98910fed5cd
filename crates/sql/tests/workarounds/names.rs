//! Names of columns and functions, and maps.

use std::sync::Arc;

use arrow::array::{ArrayRef, BinaryBuilder, MapBuilder, MapFieldNames, RecordBatch};
use arrow::datatypes::{DataType, Field};
use futures::FutureExt;

use super::{batches, failure, plain, still_fails};

#[tokio::test]
async fn still_broken_columns_of_one_name_are_refused() {
    let query = "SELECT column1, column1 FROM (VALUES (1))";
    let remove = "alias_duplicates of crates/sql/src/syntax/statement.rs";
    still_fails(&failure(&plain(), query).await, "Projections require unique expression names", remove);
}

#[tokio::test]
async fn still_broken_subqueries_over_tables_have_one_name() {
    let context = plain();
    context.sql("CREATE TABLE t AS VALUES (1)").await.unwrap().collect().await.unwrap();
    context.sql("CREATE TABLE u AS VALUES (2)").await.unwrap().collect().await.unwrap();
    let query = "SELECT (SELECT count(*) FROM t), (SELECT count(*) FROM u)";
    let remove = "has_subquery of crates/sql/src/syntax/statement.rs";
    still_fails(&failure(&context, query).await, "Projections require unique expression names", remove);
}

#[tokio::test]
async fn still_broken_functions_have_one_name() {
    for (query, name) in [
        ("SELECT sign(1)", "sign"),
        ("SELECT ceiling(1.5)", "ceiling"),
        ("SELECT mod(5, 3)", "mod"),
        ("SELECT xor(1, 2)", "xor"),
    ] {
        let remove = format!("{name} from OTHER_NAMES and operator_of of crates/sql/src/syntax/statement.rs");
        still_fails(&failure(&plain(), query).await, &format!("Invalid function '{name}'"), &remove);
    }
}

#[tokio::test]
async fn still_broken_text_is_no_key_of_a_map_of_bytes() {
    let query = "SELECT column1['a'] FROM (VALUES (MAP {x'61': 1}))";
    let remove = "MapAccess of crates/functions/src/map_get.rs";
    still_fails(&failure(&plain(), query).await, "Utf8 == Binary", remove);
}

#[tokio::test]
async fn still_broken_map_entries_takes_no_map_without_nulls() {
    let names = MapFieldNames { entry: "entries".to_owned(), key: "key".to_owned(), value: "value".to_owned() };
    let values = Field::new("value", DataType::Binary, false);
    let mut maps = MapBuilder::new(Some(names), BinaryBuilder::new(), BinaryBuilder::new()).with_values_field(values);
    maps.keys().append_value("key");
    maps.values().append_value("value");
    maps.append(true).unwrap();
    let map: ArrayRef = Arc::new(maps.finish());
    let context = plain();
    context.register_batch("t", RecordBatch::try_from_iter([("m", map)]).unwrap()).unwrap();
    let query = batches(&context, "SELECT map_entries(m) FROM t");
    let answer = std::panic::AssertUnwindSafe(query).catch_unwind().await;
    let remove = "the nullable value in schema of crates/sql/src/schema.rs";
    assert!(!matches!(answer, Ok(Ok(_))), "{}", super::mended(remove, "it panicked"));
}
