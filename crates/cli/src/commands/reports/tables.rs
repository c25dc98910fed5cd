//! `tidetable tables`: tables and exports of the store.

use tidetable_runner::record::NewestVersions;
use tidetable_store::leave_out;
use tidetable_store::published::Published;

use crate::args::Global;
use crate::commands::{store, sums};
use crate::error::CliError;
use crate::objects;
use crate::output::{ResultRows, row};

/// Lists tables and exports.
pub fn tables(global: &Global) -> Result<(), CliError> {
    let store = store(global)?;
    let mut rows = ResultRows::of(objects::TABLES).minor(&["version", "cells", "parts", "bytes", "job"]);
    let newest = NewestVersions::default();
    for name in store.tables()? {
        let snapshot = match newest.snapshot(&store, &name) {
            Ok(snapshot) => snapshot,
            Err(error) => {
                leave_out(&error);
                rows.push(row!["table", name, (), (), (), (), (), ()]);
                continue;
            }
        };
        let version = snapshot.version();
        let files = version.ssts().count();
        let [all_rows, cells, bytes] = sums(version.ssts());
        rows.push(row!["table", name, version.table.job, version.number, files, all_rows, cells, bytes]);
    }

    let (lists, damaged) = Published::readable(store.blobs().as_ref())?;
    damaged.iter().for_each(leave_out);
    for export in lists {
        let parts = export.parts.values();
        rows.push(row![
            "export",
            export.name,
            export.job,
            (),
            export.parts.len(),
            parts.clone().map(|part| part.rows).sum::<u64>(),
            (),
            parts.map(|part| part.bytes).sum::<u64>()
        ]);
    }
    rows.print(global.output)
}
