//! `tidetable describe`: a table's layout, windows, inputs and files.

use std::io::Write;

use serde_json::json;
use tidetable_layout::{PackedSpec, window_name};
use tidetable_store::{Sst, Version};

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
        other => windows(version).write(other, &mut out)?,
    }
    out.flush()?;
    Ok(())
}

fn windows(version: &Version) -> Rows {
    let mut rows = Rows::new(&["window", "SSTs", "rows", "cells", "bytes", "changed by version"]);
    let name = |start: i64| window_name(version.table.spec.window, start);
    for window in &version.windows {
        let (shared, own): (Vec<&Sst>, Vec<&Sst>) = window.ssts.iter().partition(|sst| sst.joined.is_some());
        let line = |name: String, ssts: &[&Sst], changed: Option<&u64>| {
            let sum = |of: fn(&Sst) -> u64| ssts.iter().map(|sst| of(sst)).sum::<u64>();
            let (rows, cells, bytes) = (sum(|sst| sst.rows), sum(|sst| sst.cells), sum(|sst| sst.bytes));
            vec![json!(name), json!(ssts.len()), json!(rows), json!(cells), json!(bytes), json!(changed)]
        };
        for sst in shared {
            let joined = sst.joined.as_ref().map_or(&[][..], |joined| &joined.windows);
            let (first, last) =
                (joined.first().copied().unwrap_or_default(), joined.last().copied().unwrap_or_default());
            rows.push(line(format!("{} to {}", name(first), name(last)), &[sst], None));
        }
        rows.push(line(name(window.start), &own, window.days.values().max()));
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
