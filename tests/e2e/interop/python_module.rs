//! The Python module of the wheel, with the packages that take its results.

use crate::harness::system::python_script;
use crate::harness::{TIDETABLE, repository};
use crate::interop::readers::project;

#[test]
fn results_in_python() {
    let project = project("per = \"query\"\nname = \"E\"\nquery = { sql = \"select meter from T\" }");
    project.run_job("j");
    let modules = "duckdb, pandas, polars, pyarrow";
    let packages = repository().join("packaging/python").into_os_string();
    let args = [packages, TIDETABLE.into(), project.path("").into_os_string()];
    python_script(&project, modules, "interop/python_module_check.py", args);
}
