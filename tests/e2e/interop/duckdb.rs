//! DuckDB reads published days and compares them with the source.

use crate::harness::Project;
use crate::harness::system::python_script;

#[test]
fn duckdb_reads_the_published_days_as_the_source_has_them() {
    let project = Project::smart_meters();
    project.run_job("smart-meters");
    let args = [project.path("sample-data/smart-meters"), project.path("data/exports")];
    let Some(said) = python_script(&project, "duckdb", "interop/duckdb_check.py", args) else { return };
    assert!(said.contains("15 days equal"), "{said}");
}
