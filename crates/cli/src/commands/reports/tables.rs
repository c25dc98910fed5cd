//! `tidetable tables`: what the store holds.

use std::io::Write;

use serde_json::json;
use tidetable_store::{Published, leave_out};

use crate::args::Global;
use crate::commands::store;
use crate::error::CliError;
use crate::objects;
use crate::output::{Rows, stdout};

/// Lists tables and exports.
pub fn tables(global: &Global) -> Result<(), CliError> {
    let store = store(global)?;
    let mut rows = Rows::of(objects::TABLES);
    for name in store.tables()? {
        let snapshot = match store.snapshot(&name) {
            Ok(snapshot) => snapshot,
            Err(error) => {
                leave_out(&error);
                let unknown = || json!(null);
                rows.push(vec![
                    json!("table"),
                    json!(name),
                    unknown(),
                    unknown(),
                    unknown(),
                    unknown(),
                    unknown(),
                    unknown(),
                ]);
                continue;
            }
        };
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
    let (lists, damaged) = Published::readable(store.blobs().as_ref())?;
    damaged.iter().for_each(leave_out);
    for export in lists {
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
