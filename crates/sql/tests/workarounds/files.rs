//! Locations of files.

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
    let remove = "crates/sql/src/workarounds/directory_patterns.rs";
    still_fails(&failure(&context, &table).await, "No files found", remove);
}
