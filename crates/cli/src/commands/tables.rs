//! `tidetable tables`: what the store holds.

use std::io::Write;

use serde_json::json;
use tidetable_store::Published;

use super::store;
use crate::args::Global;
use crate::error::CliError;
use crate::output::{Rows, stdout};

/// Lists tables and exports.
pub fn tables(global: &Global) -> Result<(), CliError> {
    let store = store(global)?;
    let mut rows = Rows::new(&["kind", "name", "job", "version", "parts", "rows", "cells", "bytes"]);
    for name in store.tables()? {
        let snapshot = store.snapshot(&name)?;
        let version = snapshot.version();
        let sum = |of: fn(&tidetable_store::Sst) -> u64| version.ssts().map(of).sum::<u64>();
        rows.push(vec![
            json!("table"),
            json!(name),
            json!(version.table.job),
            json!(version.number),
            json!(version.ssts().count()),
            json!(sum(|sst| sst.rows)),
            json!(sum(|sst| sst.cells)),
            json!(sum(|sst| sst.bytes)),
        ]);
    }
    for export in Published::all(store.blobs().as_ref())? {
        let parts = export.parts.values();
        rows.push(vec![
            json!("export"),
            json!(export.name),
            json!(export.job),
            json!(null),
            json!(export.parts.len()),
            json!(parts.clone().map(|part| part.rows).sum::<u64>()),
            json!(null),
            json!(parts.map(|part| part.bytes).sum::<u64>()),
        ]);
    }
    let mut out = stdout();
    rows.write(global.output, &mut out)?;
    out.flush()?;
    Ok(())
}
