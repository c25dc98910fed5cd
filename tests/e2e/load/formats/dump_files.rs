//! Files of dumps: what other programs write, how large they may be, and what becomes of those that are incomplete or of another format.

use std::fs;

use serde_json::json;

use crate::harness::system::{measured, python, run_script};
use crate::harness::Project;

#[test]
fn large_values_of_parquet_take_bounded_memory() {
    const VALUES: usize = 96;
    let project = Project::empty();
    let Some(python) = python(&project, "pyarrow") else { return };
    fs::create_dir_all(project.path("dumps")).unwrap();
    let file = project.path("dumps/1.parquet");
    run_script(
        &python,
        "load/formats/dumps_write.py",
        ["values".as_ref(), file.as_os_str(), VALUES.to_string().as_ref()],
    );
    project.ok(&["new", "large", "--from", "dumps/1.parquet"]);
    let ran = measured(&mut project.command(&["run", "large", "--memory", "64MiB"]));
    assert!(ran.status.success(), "{}", ran.said);
    assert!(ran.most < 200, "{} MiB", ran.most);
    let counted =
        "select count(*) as cells, count(distinct row_key) as \"rows\", max(length(value)) as longest from cells.LARGE";
    assert_eq!(project.sql(counted), [json!({ "cells": 100_000 + VALUES, "rows": 1 + VALUES, "longest": 1 << 20 })]);
}
