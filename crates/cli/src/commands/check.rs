//! `tidetable check`: a job file, its SQL, and what its layouts give back. Writes nothing.

use std::io::Write;

use serde_json::json;
use tidetable_runner::{Job, Project, check_queries, open_store, probe_params, runtime, tables_read};
use tidetable_sql::{Declared, check_query};

use super::project;
use crate::args::{Check, Global, Output};
use crate::error::CliError;
use crate::output::{Rows, stdout};
use crate::progress::count;

/// Columns named before they are only counted.
const SHOWN: usize = 8;

/// Checks the job, or all of them: then each mistake is told, and the exit code is that of the first.
pub fn check(global: &Global, args: &Check) -> Result<(), CliError> {
    let project = project(global)?;
    if let Some(name) = &args.job {
        return check_one(global, &project, name);
    }
    let mut failed: Vec<u8> = Vec::new();
    for name in project.jobs() {
        if let Err(error) = check_one(global, &project, &name) {
            if error.is_closed_pipe() {
                return Err(error);
            }
            failed.push(error.exit_code());
            crate::tell(global, error);
        }
    }
    // Circles, and jobs that are not there.
    if failed.is_empty() {
        super::jobs::in_order(&project)?;
    }
    match failed.first() {
        None => Ok(()),
        Some(code) => Err(CliError::Several { failed: count(failed.len() as u64, "job"), code: *code }),
    }
}

fn check_one(global: &Global, project: &Project, name: &str) -> Result<(), CliError> {
    let job = Job::load(project, name)?;
    let store = open_store(project)?;
    let mut tables: Vec<Declared> = Vec::new();
    for name in store.tables()?.into_iter().filter(|name| job.table(name).is_none()) {
        let snapshot = store.snapshot(&name)?;
        tables.push(Declared::new(&name, snapshot.layout()));
    }
    tables.extend(job.tables.iter().map(|table| Declared::new(&table.spec.name, &table.layout)));
    let runtime = runtime()?;
    for export in &job.exports {
        let wrong = |source| CliError::Export { export: export.name.clone(), source: Box::new(source) };
        let references = runtime.block_on(check_query(&tables, &export.sql, &probe_params(export))).map_err(wrong)?;
        tables_read(export, references)?;
    }
    for check in &job.checks {
        let wrong = |source| CliError::Check { check: check.name.clone(), source: Box::new(source) };
        let params = job.export(&check.on).map(probe_params).unwrap_or_default();
        for query in check_queries(check, job.export(&check.on)) {
            runtime.block_on(check_query(&tables, &query, &params)).map_err(wrong)?;
        }
    }
    let mut rows = Rows::new(&["kind", "name", "finding"]);
    for table in &job.tables {
        let name = &table.spec.name;
        let read_back: Vec<String> =
            table.layout.records_schema().fields().iter().map(|field| field.name().clone()).collect();
        let mut shown = read_back.iter().take(SHOWN).map(String::as_str).collect::<Vec<_>>().join(", ");
        if read_back.len() > SHOWN {
            shown.push_str(&format!(" and {} more", read_back.len() - SHOWN));
        }
        rows.push(vec![json!("table"), json!(name), json!(format!("reads back {shown}"))]);
        for warning in table.layout.warnings() {
            rows.push(vec![json!("warning"), json!(name), json!(warning.to_string())]);
        }
    }
    for export in &job.exports {
        rows.push(vec![json!("export"), json!(export.name), json!(format!("as {}", export.name_template.as_str()))]);
    }
    for check in &job.checks {
        let rules: Vec<String> = check.rules.iter().map(ToString::to_string).collect();
        rows.push(vec![json!("check"), json!(check.name), json!(format!("{}: {}", check.on, rules.join("; ")))]);
    }
    let mut out = stdout();
    rows.write(global.output, &mut out)?;
    if global.output == Output::Table {
        writeln!(out, "{} is right", job.shown_path.display())?;
    }
    out.flush()?;
    Ok(())
}
