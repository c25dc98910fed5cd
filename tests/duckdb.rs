//! Published tables, read by an engine that is not ours.

use std::path::PathBuf;
use std::process::Command;

use crate::harness::{Project, repository};

/// A Python that can import DuckDB: the one `just test` has made, or one in a venv of this test's.
fn python(project: &Project) -> Result<PathBuf, String> {
    let has_duckdb = |python: &PathBuf| {
        let tried = Command::new(python).args(["-c", "import duckdb"]).output();
        tried.is_ok_and(|output| output.status.success())
    };
    if let Some(python) = std::env::var_os("TIDETABLE_PYTHON").map(PathBuf::from).filter(has_duckdb) {
        return Ok(python);
    }
    let venv = project.path("venv");
    let step = |command: &mut Command| match command.output() {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
        Err(error) => Err(error.to_string()),
    };
    step(Command::new("python3").args(["-m", "venv"]).arg(&venv))?;
    let python = venv.join("bin/python");
    let requirements = repository().join("tests/requirements.txt");
    step(Command::new(&python).args(["-m", "pip", "install", "--quiet", "-r"]).arg(requirements))?;
    Ok(python)
}

#[test]
fn duckdb_reads_the_published_days_as_the_source_has_them() {
    let project = Project::smart_meters();
    let python = match python(&project) {
        Ok(python) => python,
        Err(reason) => {
            eprintln!("skipped: DuckDB could not be installed from PyPI: {reason}");
            return;
        }
    };
    project.run_job("smart-meters");
    let output = Command::new(python)
        .arg(repository().join("tests/duckdb_check.py"))
        .arg(project.path("sample-data/smart-meters"))
        .arg(project.path("data/exports"))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.contains("15 days equal"), "{said}");
}
