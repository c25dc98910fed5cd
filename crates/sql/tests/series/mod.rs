//! SQL over time series: random queries on one and many threads and within little memory, and against DuckDB.

mod generator;

use serde_json::{Value, json};
use tidetable_sql::{Session, SessionOptions};

use self::generator::Generator;
use super::duckdb::{python_with, run_script};
use super::same::texts;
use crate::world::World;

const SEED: u64 = 20_261_128;
/// `TIDETABLE_QUERIES` asks for more.
const QUERIES: usize = 60;

/// The sorted rows of `query` as text, `None` for NULL.
async fn rows(session: &Session, query: &str) -> Result<Vec<Vec<Option<String>>>, String> {
    let asked = async { Ok::<_, tidetable_sql::SqlError>(session.sql(query).await?.collect().await?) };
    let batches = asked.await.map_err(|error| error.to_string())?;
    let split = |row: String| row.split(" | ").map(|value| (value != "NULL").then(|| value.to_owned())).collect();
    let mut rows: Vec<Vec<Option<String>>> = texts(&batches).into_iter().map(split).collect();
    rows.sort();
    Ok(rows)
}

#[tokio::test]
async fn series_have_one_answer_in_all_sessions_and_in_duckdb() {
    let queries = std::env::var("TIDETABLE_QUERIES").ok().and_then(|count| count.parse().ok()).unwrap_or(QUERIES);
    let seed = std::env::var("TIDETABLE_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(SEED);
    let world = World::with_days(1);
    let memory = SessionOptions { memory: Some(64 << 20), ..SessionOptions::default() };
    let of_one = SessionOptions { target_partitions: Some(1), ..SessionOptions::default() };
    let sessions = [
        ("one partition", world.open(&of_one)),
        ("three partitions", world.session()),
        ("memory", world.open(&memory)),
        ("sequential", world.session().sequential()),
    ];

    let mut generator = Generator::new(seed);
    let (mut lines, mut wrong) = (Vec::new(), Vec::new());
    for nth in 0..queries {
        let query = generator.query();
        let expected = rows(&sessions[0].1, &query).await;
        let (kind, other) = &sessions[1 + nth % 3];
        let found = rows(other, &query).await;
        if found != expected {
            wrong.push(format!("{kind}: {query}\n  found    {found:?}\n  expected {expected:?}"));
        }
        match expected {
            Ok(rows) => lines.push(json!({ "query": query, "session": sessions[0].0, "rows": rows })),
            Err(error) => wrong.push(format!("{query}\n  {error}")),
        }
    }
    assert!(wrong.is_empty(), "{} of {queries}:\n{}", wrong.len(), wrong[..wrong.len().min(5)].join("\n"));
    compare_with_duckdb(&lines);
}

/// Asks DuckDB the same, if there is one.
fn compare_with_duckdb(lines: &[Value]) {
    if let Some(python) = python_with("duckdb") {
        let input: String = lines.iter().map(|line| format!("{line}\n")).collect();
        run_script(&python, "series/check.py", &[], input);
    }
}
