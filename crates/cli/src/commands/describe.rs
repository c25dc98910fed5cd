//! `tidetable describe`: a table's layout, windows, inputs and files.

use std::io::Write;

use serde_json::json;
use tidetable_layout::{PackedSpec, window_name};
use tidetable_store::Version;

use super::store;
use crate::args::{Describe, Global, Output};
use crate::error::CliError;
use crate::output::{Rows, stdout};

/// Describes the table.
pub fn describe(global: &Global, args: &Describe) -> Result<(), CliError> {
    let snapshot = store(global)?.snapshot(&args.table)?;
    let version = snapshot.version();
    let mut out = stdout();
    match global.output {
        Output::Json => writeln!(out, "{}", serde_json::to_string(version)?)?,
        Output::Csv => windows(version).write(Output::Csv, &mut out)?,
        Output::Table => {
            let spec = &version.table.spec;
            writeln!(out, "table    {} of job {}, version {}", spec.name, version.table.job, version.number)?;
            writeln!(out, "row key  {}", spec.row_key)?;
            for family in &spec.families {
                let gc = version.table.gc.get(&family.name).map(|gc| format!(", gc {gc}")).unwrap_or_default();
                writeln!(out, "family   {}{gc}", family.name)?;
                for column in &family.columns {
                    let name = if column.each { "each column" } else { &column.qualifier };
                    let value = match &column.packed {
                        PackedSpec::Json => "a JSON object an event".to_owned(),
                        PackedSpec::Message(message) => format!("a protobuf {message} an event"),
                        PackedSpec::Repeated(message) => format!("one protobuf a row, a {message} an event"),
                        PackedSpec::None if column.value.is_empty() => "(empty)".to_owned(),
                        PackedSpec::None => column.value.clone(),
                    };
                    writeln!(out, "  {name} = {value}")?;
                }
            }
            for field in snapshot.layout().records_schema().fields() {
                writeln!(out, "column   {} {}", field.name(), field.data_type())?;
            }
            for lost in snapshot.layout().lost() {
                writeln!(out, "lost     {}: {}", lost.column, lost.why)?;
            }
            windows(version).write(Output::Table, &mut out)?;
            inputs(version).write(Output::Table, &mut out)?;
        }
    }
    out.flush()?;
    Ok(())
}

fn windows(version: &Version) -> Rows {
    let mut rows = Rows::new(&["window", "SSTs", "rows", "cells", "bytes", "changed by version"]);
    for window in &version.windows {
        let sum = |of: fn(&tidetable_store::Sst) -> u64| window.ssts.iter().map(of).sum::<u64>();
        rows.push(vec![
            json!(window_name(version.table.spec.window, window.start)),
            json!(window.ssts.len()),
            json!(sum(|sst| sst.rows)),
            json!(sum(|sst| sst.cells)),
            json!(sum(|sst| sst.bytes)),
            json!(window.days.values().max()),
        ]);
    }
    rows
}

fn inputs(version: &Version) -> Rows {
    let mut rows = Rows::new(&["input", "sequence", "bytes", "rows read", "rejected"]);
    for input in &version.inputs {
        rows.push(vec![
            json!(input.path),
            json!(input.sequence),
            json!(input.size),
            json!(input.read),
            json!(input.rejected),
        ]);
    }
    rows
}
