//! `tidetable check`: a job file, its SQL, and what its layouts give back. Writes nothing.

use std::io::Write;

use serde_json::json;
use tidetable_runner::Job;

use super::project;
use crate::args::{Check, Global, Output};
use crate::error::CliError;
use crate::output::{Rows, stdout};

/// Checks the job.
pub fn check(global: &Global, args: &Check) -> Result<(), CliError> {
    let job = Job::load(&project(global)?, &args.job)?;
    let mut rows = Rows::new(&["kind", "name", "finding"]);
    for table in &job.tables {
        let name = &table.spec.name;
        let read_back: Vec<String> =
            table.layout.records_schema().fields().iter().map(|field| field.name().clone()).collect();
        rows.push(vec![json!("table"), json!(name), json!(format!("reads back {}", read_back.join(", ")))]);
        for lost in table.layout.lost() {
            rows.push(vec![json!("lost"), json!(name), json!(format!("{}: {}", lost.column, lost.why))]);
        }
        for warning in table.layout.warnings() {
            rows.push(vec![json!("warning"), json!(name), json!(warning.to_string())]);
        }
    }
    for export in &job.exports {
        rows.push(vec![json!("export"), json!(export.name), json!(format!("as {}", export.name_template.as_str()))]);
    }
    let mut out = stdout();
    rows.write(global.output, &mut out)?;
    if global.output == Output::Table {
        writeln!(out, "{} is right", job.shown_path.display())?;
    }
    out.flush()?;
    Ok(())
}
