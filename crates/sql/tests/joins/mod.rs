//! Random joins over small tables with nulls, compared with DuckDB: `joins/generate.py` says which.
//!
//! `TIDETABLE_JOINS` is the number of queries, `TIDETABLE_JOINS_SEED` the first seed.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch};
use datafusion::catalog::{CatalogProvider, MemTable, MemoryCatalogProvider, MemorySchemaProvider, SchemaProvider};
use futures::TryStreamExt;
use serde::Deserialize;
use tidetable_sql::{Session, SessionOptions, SqlError};

use super::duckdb::{output_of, python_with};
use super::same::texts;
use super::world::World;

const QUERIES: u64 = 300;
const SEED: u64 = 20_261_130;
/// Queries over the same rows.
const PER_TABLES: u64 = 50;
/// The catalog and schema of the tables, as the generator names them.
const PLACE: (&str, &str) = ("joins", "small");

/// What the generator prints.
#[derive(Deserialize)]
struct Generated {
    tables: BTreeMap<String, Table>,
    queries: Vec<Query>,
}

#[derive(Deserialize)]
struct Table {
    columns: Vec<String>,
    rows: Vec<Vec<Option<i64>>>,
}

#[derive(Deserialize)]
struct Query {
    sql: String,
    /// DuckDB's rows, in no order.
    rows: Vec<Vec<Option<String>>>,
}

impl Table {
    fn registered(&self) -> MemTable {
        let column = |at: usize| -> ArrayRef { Arc::new(self.rows.iter().map(|row| row[at]).collect::<Int64Array>()) };
        let columns = self.columns.iter().enumerate().map(|(at, name)| (name, column(at), true));
        let batch = RecordBatch::try_from_iter_with_nullable(columns).unwrap();
        MemTable::try_new(batch.schema(), vec![vec![batch]]).unwrap()
    }
}

impl Query {
    fn expected(&self) -> Vec<String> {
        let value = |value: &Option<String>| value.clone().unwrap_or_else(|| "NULL".to_owned());
        let mut rows: Vec<String> =
            self.rows.iter().map(|row| row.iter().map(value).collect::<Vec<_>>().join(" | ")).collect();
        rows.sort();
        rows
    }
}

async fn answer(session: &Session, sql: &str) -> Result<Vec<String>, SqlError> {
    let batches: Vec<RecordBatch> = session.stream(sql).await?.try_collect().await?;
    let mut rows = texts(&batches);
    rows.sort();
    Ok(rows)
}

/// Puts the tables into the catalog of the session.
fn register(session: &Session, tables: &BTreeMap<String, Table>) {
    let schema = MemorySchemaProvider::new();
    for (name, table) in tables {
        schema.register_table(name.clone(), Arc::new(table.registered())).unwrap();
    }
    let catalog = MemoryCatalogProvider::new();
    catalog.register_schema(PLACE.1, Arc::new(schema)).unwrap();
    session.context().register_catalog(PLACE.0, Arc::new(catalog));
}

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

#[tokio::test]
async fn joins_equal_those_of_duckdb() {
    let Some(python) = python_with("duckdb") else { return };
    let world = World::with_days(1);
    let options = SessionOptions { target_partitions: Some(2), ..SessionOptions::default() };
    let limited = SessionOptions { memory: Some(64 << 20), ..SessionOptions::default() };
    let session = world.open(&options);
    let sessions = [session.sequential(), session, world.open(&limited)];

    let (queries, seed) = (setting("TIDETABLE_JOINS", QUERIES), setting("TIDETABLE_JOINS_SEED", SEED));
    let (mut wrong, mut right) = (Vec::new(), 0);
    for set in 0..queries.div_ceil(PER_TABLES) {
        let args = [(seed + set).to_string(), PER_TABLES.min(queries - set * PER_TABLES).to_string()];
        let printed = output_of(&python, "joins/generate.py", &args.each_ref().map(String::as_str), String::new());
        let generated: Generated = serde_json::from_str(&printed).unwrap();
        sessions.iter().for_each(|session| register(session, &generated.tables));
        for (at, query) in generated.queries.iter().enumerate() {
            let session = &sessions[at % sessions.len()];
            match answer(session, &query.sql).await {
                Ok(rows) if rows == query.expected() => right += 1,
                found => wrong.push(format!("{}\n  found    {found:?}\n  expected {:?}", query.sql, query.expected())),
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {queries} are wrong or refused:\n{}",
        wrong.len(),
        wrong[..wrong.len().min(5)].join("\n")
    );
    assert_eq!(right, queries);
}
