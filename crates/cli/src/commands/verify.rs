//! `tidetable verify`: reads tables back and says whether they are whole.

use std::io::Write;

use serde_json::json;
use tidetable_layout::window_name;
use tidetable_store::{Store, StoreError, TableReport, VerifyOptions};

use super::{store, table_or_all};
use crate::args::{Global, Output, Verify};
use crate::error::CliError;
use crate::output::{Rows, stdout};
use crate::progress::{bytes, count};

/// Verifies a table, or all of them.
pub fn verify(global: &Global, args: &Verify) -> Result<(), CliError> {
    let store = store(global)?;
    let options = VerifyOptions { all_versions: args.all_versions, checksums_only: args.checksums };
    let mut out = stdout();
    let mut damaged = 0;
    let mut rows = Rows::new(&["table", "file", "window", "version", "bytes", "rows", "cells", "sound", "damage"]);
    for name in table_or_all(&store, args.table.as_deref())? {
        let table = store.table(&name);
        let report = table.verify(options)?;
        damaged += report.manifests.len() + report.rows.len() + report.damaged().count();
        match global.output {
            Output::Table => tell(&report, &mut out)?,
            _ => add(&store, &report, &mut rows),
        }
    }
    if global.output != Output::Table {
        rows.write(global.output, &mut out)?;
    }
    out.flush()?;
    match damaged {
        0 => Ok(()),
        files => Err(CliError::Damaged { files: count(files as u64, "file") }),
    }
}

fn tell(report: &TableReport, out: &mut impl Write) -> Result<(), CliError> {
    let sum = |of: fn(&tidetable_store::Sst) -> u64| report.ssts.iter().map(|file| of(&file.sst)).sum::<u64>();
    let versions = match report.versions.as_slice() {
        [] => "no version that can be read".to_owned(),
        [one] => format!("version {one}"),
        [first, .., last] => format!("versions {first} to {last}"),
    };
    let ssts = format!("{} of {}", count(report.ssts.len() as u64, "SST"), bytes(sum(|sst| sst.bytes)));
    let state = if report.is_sound() { "sound" } else { "damaged" };
    let cells = count(sum(|sst| sst.cells), "cell");
    writeln!(out, "{}: {state}; {versions}, {ssts}, {cells}", report.table)?;
    let others = report.manifests.iter().chain(&report.rows);
    for error in others.chain(report.damaged().flat_map(|file| &file.damage)) {
        writeln!(out, "  {error}")?;
    }
    Ok(())
}

fn add(store: &Store, report: &TableReport, rows: &mut Rows) {
    let table = store.table(&report.table);
    let window_of = table.latest().ok().flatten().map(|version| version.table.spec.window);
    for error in report.manifests.iter().chain(&report.rows) {
        let file = match error {
            StoreError::Manifest { path, .. } | StoreError::Io { path, .. } => json!(path),
            _ => json!(null),
        };
        let nothing = || json!(null);
        rows.push(vec![
            json!(report.table),
            file,
            nothing(),
            nothing(),
            nothing(),
            nothing(),
            nothing(),
            json!(false),
            json!(error.to_string()),
        ]);
    }
    for file in &report.ssts {
        let damage: Vec<String> = file.damage.iter().map(ToString::to_string).collect();
        rows.push(vec![
            json!(report.table),
            json!(table.sst_path(&file.sst.id)),
            json!(window_of.map(|window| window_name(window, file.window))),
            json!(file.version),
            json!(file.sst.bytes),
            json!(file.sst.rows),
            json!(file.sst.cells),
            json!(damage.is_empty()),
            json!(damage.join("; ")),
        ]);
    }
}
