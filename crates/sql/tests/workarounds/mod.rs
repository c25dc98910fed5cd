//! Defects of DataFusion that this crate works around, run on a plain session. A test fails when DataFusion answers
//! differently; its message names the code to remove. `docs/datafusion-workarounds.md` has a row for each.

mod expressions;
mod files;
mod groups;
mod joins;
mod limits;
mod names;
mod parser;
mod register;
mod sizes;
mod subqueries;

use arrow::array::RecordBatch;
use datafusion::error::Result;
use datafusion::prelude::{SessionConfig, SessionContext};

use super::same::texts;

/// A plain DataFusion session with two partitions.
fn plain() -> SessionContext {
    SessionContext::new_with_config(SessionConfig::new().with_target_partitions(2))
}

/// A plain session in which `17.4` is a decimal, as in sessions of this crate.
fn with_decimals() -> SessionContext {
    let mut config = SessionConfig::new().with_target_partitions(2);
    config.options_mut().sql_parser.parse_float_as_decimal = true;
    SessionContext::new_with_config(config)
}

async fn batches(context: &SessionContext, query: &str) -> Result<Vec<RecordBatch>> {
    context.sql(query).await?.collect().await
}

/// The rows of `query`, columns separated by ` | `.
async fn rows(context: &SessionContext, query: &str) -> Vec<String> {
    texts(&batches(context, query).await.unwrap())
}

/// The error of `query`; the rows, if there is none.
async fn failure(context: &SessionContext, query: &str) -> String {
    match batches(context, query).await {
        Ok(batches) => format!("no error, but the rows {:?}", texts(&batches)),
        Err(error) => error.strip_backtrace(),
    }
}

async fn run_all(context: &SessionContext, statements: &[&str]) {
    for statement in statements {
        batches(context, statement).await.unwrap();
    }
}

/// Asserts that DataFusion still gives the wrong answer `wrong`. `remove`: the workaround.
#[track_caller]
fn still_broken(found: &[String], wrong: &[&str], right: &[&str], remove: &str) {
    assert_ne!(wrong, right, "this is no defect");
    assert_eq!(found, wrong, "{}", mended(remove, &format!("the right answer is {right:?}")));
}

/// Asserts that DataFusion still fails with an error that contains `error`.
#[track_caller]
fn still_fails(found: &str, error: &str, remove: &str) {
    assert!(found.contains(error), "{found}\n{}", mended(remove, "there was an error"));
}

fn mended(remove: &str, expected: &str) -> String {
    format!(
        "DataFusion answers otherwise than before ({expected}). If its answer is right, remove {remove}, \
         this test and the row of docs/datafusion-workarounds.md"
    )
}
