//! Locations of files.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::catalog::{SchemaProvider, TableProvider};
use datafusion::common::plan_err;
use datafusion::datasource::TableType;
use datafusion::error::Result;
use datafusion::prelude::{SessionConfig, SessionContext};
use tempfile::TempDir;

use super::{failure, plain, rows, run_all, still_broken, still_fails};

#[tokio::test]
async fn still_broken_missing_files_are_empty() {
    let folder = TempDir::new().unwrap();
    let context = plain();
    let missing = folder.path().join("none.parquet");
    let table = format!("CREATE EXTERNAL TABLE t (a BIGINT) STORED AS PARQUET LOCATION '{}'", missing.display());
    run_all(&context, &[&table]).await;
    let remove = "the existence checks of check in crates/sql/src/catalog/external.rs and of gone in crates/sql/src/catalog/published.rs";
    still_broken(&rows(&context, "SELECT count(*) FROM t").await, &["0"], &["an error"], remove);
}

#[tokio::test]
async fn still_broken_patterns_of_folders_match_nothing() {
    let folder = TempDir::new().unwrap();
    let at = folder.path().display();
    let context = plain();
    run_all(&context, &[&format!("COPY (SELECT 1 AS a) TO '{at}/one/x.parquet'")]).await;
    let table = format!("CREATE EXTERNAL TABLE t STORED AS PARQUET LOCATION '{at}/*/x.parquet'");
    let remove = "crates/upstream/src/directory_patterns.rs";
    still_fails(&failure(&context, &table).await, "No files found", remove);
}

/// A schema whose table cannot be opened, though its type is known.
#[derive(Debug)]
struct Closed;

#[async_trait]
impl SchemaProvider for Closed {
    fn table_names(&self) -> Vec<String> {
        vec!["closed".to_owned()]
    }

    async fn table(&self, _: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        plan_err!("it was opened")
    }

    async fn table_type(&self, _: &str) -> Result<Option<TableType>> {
        Ok(Some(TableType::Base))
    }

    fn table_exist(&self, name: &str) -> bool {
        name == "closed"
    }
}

#[tokio::test]
async fn still_broken_tables_of_files_open_every_table_that_is_listed() {
    let context = SessionContext::new_with_config(SessionConfig::new().with_information_schema(true));
    context.catalog("datafusion").unwrap().register_schema("closed", Arc::new(Closed)).unwrap();
    let listed = "SELECT table_name FROM information_schema.tables WHERE table_schema = 'closed'";
    assert_eq!(rows(&context, listed).await, ["closed"]);
    let remove = "urls in crates/sql/src/catalog.rs, for enable_url_table";
    still_fails(&failure(&context.enable_url_table(), listed).await, "it was opened", remove);
}

#[tokio::test]
async fn still_broken_damaged_arrow_files_are_not_named() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("x.arrow");
    let context = plain();
    let rows = "SELECT value AS a, CAST(value AS VARCHAR) AS b FROM generate_series(1, 50)";
    run_all(&context, &[&format!("COPY ({rows}) TO '{}'", path.display())]).await;
    let table = format!("CREATE EXTERNAL TABLE t STORED AS ARROW LOCATION '{}'", path.display());
    run_all(&context, &[&table]).await;

    // Some damage ends the process: a length that is reserved.
    let whole = std::fs::read(&path).unwrap();
    std::fs::write(&path, &whole[..whole.len() / 2]).unwrap();
    let said = failure(&context, "SELECT max(a), max(b) FROM t").await;
    assert!(!said.contains("no error"), "{said}");
    let remove = "crates/sql/src/catalog/files/arrow_format.rs and crates/source/src/blocks/ipc_check.rs";
    still_broken(&[said.contains("x.arrow").to_string()], &["false"], &["true"], remove);
}
