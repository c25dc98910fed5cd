//! Published tables, read by an engine that is not ours.

use std::process::Command;

use crate::harness::{Project, python, repository};

#[test]
fn duckdb_reads_the_published_days_as_the_source_has_them() {
    let project = Project::smart_meters();
    let python = match python(&project, "duckdb") {
        Ok(python) => python,
        Err(reason) => {
            eprintln!("skipped: DuckDB could not be installed from PyPI: {reason}");
            return;
        }
    };
    project.run_job("smart-meters");
    let output = Command::new(python)
        .arg(repository().join("tests/e2e/interop/duckdb_check.py"))
        .arg(project.path("sample-data/smart-meters"))
        .arg(project.path("data/exports"))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.contains("15 days equal"), "{said}");
}
