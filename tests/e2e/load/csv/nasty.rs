//! Generated CSV files that a reference reader in Python reads, too: `tests/nasty_csv`.

use std::ffi::OsStr;

use crate::harness::system::python_script;
use crate::harness::{Project, TIDETABLE};

#[test]
fn nasty_csv_is_loaded_as_the_reference_reads_it() {
    let project = Project::empty();
    let folder = project.path("nasty");
    let args: [&OsStr; 4] = [TIDETABLE.as_ref(), folder.as_ref(), "--files".as_ref(), "200".as_ref()];
    let Some(said) = python_script(&project, "pyarrow.parquet", "../nasty_csv/compare.py", args) else { return };
    assert!(said.contains("200 files equal"), "{said}");
}

#[test]
fn the_reference_reads_as_pythons_csv_and_duckdb_where_these_agree() {
    let project = Project::empty();
    let folder = project.path("nasty");
    let args: [&OsStr; 3] = [folder.as_ref(), "--files".as_ref(), "300".as_ref()];
    let Some(said) = python_script(&project, "duckdb", "../nasty_csv/agree.py", args) else { return };
    assert!(said.contains("of 300 files are read alike by all three"), "{said}");
}
