//! The documented queries of GoogleSQL, `tests/data/googlesql.tsv`, through `PrepareQuery` and `ExecuteQuery`.

#[path = "../../../../sql/tests/googlesql/table.rs"]
mod table;
#[expect(dead_code, reason = "shared with the tests of tidetable-sql, which use all of it")]
#[path = "../../../../sql/tests/world/mod.rs"]
mod world;

use std::path::Path;
use std::sync::Arc;

use arrow::array::{Date32Array, TimestampMicrosecondArray};
use arrow::util::display::array_value_to_string;
use prost::Message;
use tidetable_layout::time::days_from_civil;
use tidetable_serving::Tables;
use tokio::runtime::Builder;
use tokio::sync::mpsc;
use tonic::Status;

use crate::proto::data::execute_query_response::Response;
use crate::proto::data::partial_result_set::PartialRows;
use crate::proto::data::value::Kind;
use crate::proto::data::{
    ExecuteQueryRequest, PrepareQueryRequest, ProtoRows, ProtoSchema, ResultSetMetadata, Value, result_set_metadata,
};
use crate::serve::query::Queries;

/// A value as the file has it.
fn show(value: &Value) -> String {
    let Some(kind) = &value.kind else { return "NULL".to_owned() };
    match kind {
        Kind::BytesValue(bytes) => format!("b'{}'", bytes.escape_ascii()),
        Kind::StringValue(text) => text.clone(),
        Kind::IntValue(number) => number.to_string(),
        Kind::FloatValue(number) => format!("{number:?}"),
        Kind::BoolValue(value) => value.to_string(),
        Kind::TimestampValue(time) => {
            let micros = time.seconds * 1_000_000 + i64::from(time.nanos) / 1_000;
            array_value_to_string(&TimestampMicrosecondArray::from(vec![micros]).with_timezone("UTC"), 0).unwrap()
        }
        Kind::DateValue(date) => {
            let days = days_from_civil(date.year.into(), date.month.cast_unsigned(), date.day.cast_unsigned());
            array_value_to_string(&Date32Array::from(vec![i32::try_from(days).unwrap()]), 0).unwrap()
        }
        Kind::ArrayValue(items) => {
            format!("[{}]", items.values.iter().map(show).collect::<Vec<_>>().join(", "))
        }
        other => panic!("{other:?}"),
    }
}

fn width(metadata: &ResultSetMetadata) -> usize {
    match &metadata.schema {
        Some(result_set_metadata::Schema::ProtoSchema(ProtoSchema { columns })) => columns.len(),
        None => 0,
    }
}

/// Prepares and executes a query; its rows as the file has them.
async fn answer(queries: &Queries, query: &str) -> Result<String, Status> {
    let request = PrepareQueryRequest { query: query.to_owned(), ..PrepareQueryRequest::default() };
    let prepared = queries.prepare(request).await?;
    let width = width(&prepared.metadata.unwrap_or_default());

    let request = ExecuteQueryRequest { prepared_query: prepared.prepared_query, ..ExecuteQueryRequest::default() };
    let (sender, mut receiver) = mpsc::channel(4);
    queries.execute(request, None, sender);
    let mut values: Vec<String> = Vec::new();
    while let Some(response) = receiver.recv().await {
        let Some(Response::Results(results)) = response?.response else { continue };
        // The Node client fails on a batch that has one beside its checksum.
        assert_eq!(results.estimated_batch_size, 0);
        let Some(PartialRows::ProtoRowsBatch(rows)) = results.partial_rows else { continue };
        values.extend(ProtoRows::decode(rows.batch_data).unwrap().values.iter().map(show));
    }
    Ok(values.chunks(width.max(1)).map(|row| row.join(" | ")).collect::<Vec<_>>().join(" / "))
}

#[test]
fn documented_queries_are_answered_by_execute_query() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/googlesql.tsv");
    let text = std::fs::read_to_string(path).unwrap();
    let world = table::world();
    let tables = Arc::new(Tables::open(&world.store(), true, "test").unwrap());
    let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let lenient = Queries::new(tables, runtime.handle().clone(), 64 << 20, Arc::default());
    let strict = lenient.clone().with_strict(true);

    let (mut asked, mut failures) = (0, Vec::new());
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let [dialect, query, expected] = line.split('\t').collect::<Vec<_>>()[..] else { panic!("{line}") };
        let queries = match dialect {
            "both" | "serve" => &lenient,
            "strict" => &strict,
            _ => continue,
        };
        asked += 1;
        let found = runtime.block_on(answer(queries, query));
        let is_right = match (expected.strip_prefix("error:"), &found) {
            (Some(words), Err(told)) => told.message().contains(words.trim()),
            (None, Ok(found)) => found == expected,
            _ => false,
        };
        if !is_right {
            failures.push(format!("{query}\n    expected {expected}\n    found    {found:?}"));
        }
    }
    assert!(asked >= 200, "{asked}");
    assert!(failures.is_empty(), "{} of {asked}:\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn equal_names_of_columns_stay_equal() {
    let world = table::world();
    let tables = Arc::new(Tables::open(&world.store(), true, "test").unwrap());
    let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let queries = Queries::new(tables, runtime.handle().clone(), 64 << 20, Arc::default());
    let query = "SELECT 1 AS k, 2 AS k, _key, _key FROM T".to_owned();
    let request = PrepareQueryRequest { query, ..PrepareQueryRequest::default() };
    let prepared = runtime.block_on(queries.prepare(request)).unwrap();
    let Some(result_set_metadata::Schema::ProtoSchema(schema)) = prepared.metadata.unwrap().schema else {
        panic!("no schema")
    };
    let names: Vec<&str> = schema.columns.iter().map(|column| column.name.as_str()).collect();
    assert_eq!(names, ["k", "k", "_key", "_key"]);
}
