//! `tidetable describe`: a table's layout, windows, inputs and files.

use std::io::Write;

use serde_json::{Value, json};
use tidetable_layout::spec::{ColumnSpec, PackedSpec, TimestampSpec};
use tidetable_layout::time::window_name;
use tidetable_page::table_page;
use tidetable_page::view::TablePage;
use tidetable_store::version::Tombstone;
use tidetable_store::{Snapshot, Sst, Store, Version};

use super::table_page::{self as page, ColumnText};
use crate::args::{Describe, Global, Output};
use crate::commands::{open_newest, store, sums, warn_of_lost_windows};
use crate::error::CliError;
use crate::objects;
use crate::objects::shape::shaped;
use crate::objects::write_object;
use crate::output::values::{count, time_to_second};
use crate::output::{ResultRows, row, sentences};
use crate::page_file::PageFile;

/// Most deletes that are named.
const DELETES: usize = 8;

/// Prints the layout, windows and inputs of the newest version of a table, or writes them as a page.
pub fn describe(global: &Global, args: &Describe) -> Result<(), CliError> {
    let file = PageFile::of(args.report.as_ref())?;
    let store = store(global)?;
    let snapshot = open_newest(&store, &args.table)?;
    warn_of_lost_windows(global, [&snapshot]);
    if file.as_ref().is_none_or(|file| !file.is_stdout()) {
        show(global, &snapshot)?;
    }
    if let Some(file) = file {
        file.write(global, &table_page(&page_of(&store, &snapshot)?)?)?;
    }
    Ok(())
}

/// The page of a table.
pub(crate) fn page_of(store: &Store, snapshot: &Snapshot) -> Result<TablePage, CliError> {
    page::of(store, snapshot, shaped(manifest(snapshot)?, objects::MANIFEST))
}

fn show(global: &Global, snapshot: &Snapshot) -> Result<(), CliError> {
    let version = snapshot.version();
    let mut out = sentences(global.output);
    match global.output {
        Output::Json => write_object(&mut out, manifest(snapshot)?, objects::MANIFEST)?,
        Output::Table => {
            let spec = &version.table.spec;
            writeln!(out, "table    {} of job {}, version {}", spec.name, version.table.job, version.number)?;
            writeln!(out, "row key  {}", spec.row_key)?;
            for family in &spec.families {
                let gc = version.table.gc.get(&family.name).map(|gc| format!(", gc {gc}")).unwrap_or_default();
                writeln!(out, "family   {}{gc}", family.name)?;
                for column in &family.columns {
                    let ColumnText { qualifier, value } = ColumnText::of(column);
                    writeln!(out, "  {qualifier} = {value}")?;
                }
            }

            for field in snapshot.layout().records_schema().fields() {
                writeln!(out, "column   {} {}", field.name(), field.data_type())?;
            }
            for lost in snapshot.layout().lost() {
                writeln!(out, "lost     {}: {}", lost.column, lost.why)?;
            }

            deletes(version, &mut out)?;

            windows(version).write(Output::Table, &mut out)?;
            inputs(version).write(Output::Table, &mut out)?;
        }
        other => windows(version).write(other, &mut out)?,
    }

    out.flush()?;
    Ok(())
}

/// Prints the newest deletes with the versions that made them: the version before one still has its rows.
fn deletes(version: &Version, out: &mut dyn Write) -> Result<(), CliError> {
    for tombstone in version.tombstones.iter().rev().take(DELETES) {
        let Tombstone { target, version, now, .. } = tombstone;
        writeln!(out, "delete   version {version}, {}: {target}", time_to_second(*now).unwrap_or_default())?;
    }

    let others = version.tombstones.len().saturating_sub(DELETES);
    if others > 0 {
        writeln!(out, "delete   {} before, in --output json", count(others as u64, "other"))?;
    }
    Ok(())
}

/// The manifest, with the layout in terms of the job file.
fn manifest(snapshot: &Snapshot) -> Result<Value, CliError> {
    let (version, layout) = (snapshot.version(), snapshot.layout());
    let (identity, spec) = (&version.table, &version.table.spec);
    let families = spec.families.iter().map(|family| {
        let columns: Vec<Value> = family.columns.iter().map(laid_out).collect();
        let gc = identity.gc.get(&family.name);
        json!({ "name": family.name, "kind": family.kind.word(), "gc": gc, "columns": columns })
    });

    let schema = layout.records_schema();
    let columns =
        schema.fields().iter().map(|field| json!({ "name": field.name(), "type": field.data_type().to_string() }));
    let lost = layout.lost().iter().map(|lost| json!({ "column": lost.column, "why": lost.why.to_string() }));

    let windows = version.windows.iter().map(|window| {
        let days = window.days.iter().map(|(day, version)| json!({ "day": day, "version": version }));
        json!({ "start": window.start, "days": days.collect::<Value>(), "ssts": window.ssts })
    });

    let mut manifest = serde_json::to_value(version)?;
    manifest["windows"] = windows.collect();
    manifest["table"] = json!({
        "name": spec.name,
        "job": identity.job,
        "layout": identity.layout,
        "row_key": spec.row_key,
        "window": spec.window,
        "granularity": spec.granularity,
        "upsert": spec.upsert,
        "unpivot": spec.unpivot,
        "families": families.collect::<Value>(),
        "columns": columns.collect::<Value>(),
        "lost": lost.collect::<Value>(),
    });
    Ok(manifest)
}

fn laid_out(column: &ColumnSpec) -> Value {
    let (holds, message) = match &column.packed {
        PackedSpec::None => ("value", None),
        PackedSpec::Json => ("json", None),
        PackedSpec::Message(message) => ("message", Some(message)),
        PackedSpec::Repeated(message) => ("repeated", Some(message)),
    };
    let timestamp = match &column.timestamp {
        TimestampSpec::Implied => None,
        TimestampSpec::Zero => Some("0"),
        TimestampSpec::Field(name) => Some(name.as_str()),
    };

    json!({
        "qualifier": column.qualifier,
        "each": column.each,
        "except": column.except,
        "value": column.value,
        "holds": holds,
        "message": message,
        "encoding": column.encoding,
        "timestamp": timestamp,
    })
}

fn windows(version: &Version) -> ResultRows {
    let mut rows = ResultRows::new(&["window", "SSTs", "rows", "cells", "bytes", "changed by version"]);
    let unit = version.table.spec.window;
    for window in &version.windows {
        let (shared, own): (Vec<&Sst>, Vec<&Sst>) = window.ssts.iter().partition(|sst| sst.multi_window.is_some());

        for sst in shared {
            let joined = sst.multi_window.as_ref().map_or(&[][..], |joined| &joined.windows);
            let (first, last) =
                (joined.first().copied().unwrap_or_default(), joined.last().copied().unwrap_or_default());
            let names = format!("{} to {}", window_name(unit, first), window_name(unit, last));
            rows.push(window_row(names, &[sst], None));
        }
        rows.push(window_row(window_name(unit, window.start), &own, window.days.values().max()));
    }
    rows
}

/// The files of a window, and the newest version that changed one of its days.
fn window_row(name: String, ssts: &[&Sst], changed: Option<&u64>) -> Vec<Value> {
    let [rows, cells, bytes] = sums(ssts.iter().copied());
    row![name, ssts.len(), rows, cells, bytes, changed]
}

fn inputs(version: &Version) -> ResultRows {
    let mut rows = ResultRows::new(&["input", "sequence", "bytes", "rows read", "rejected"]);
    for input in &version.inputs {
        rows.push(row![input.path, input.input_seqno, input.size, input.read, input.rejected]);
    }
    rows
}
