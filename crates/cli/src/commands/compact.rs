//! `tidetable compact`: fewer and denser files, without what was deleted or has expired.

use std::io::Write;

use serde_json::json;
use tidetable_layout::window_name;
use tidetable_runner::UlidIds;
use tidetable_store::{Compaction, CompactionExtent, CompactionPlan, CompactionReason, Sst};

use super::store;
use crate::args::{Compact, Global, Output};
use crate::error::CliError;
use crate::output::{Rows, stdout};
use crate::progress::{bytes, count};

/// Compacts the table, or says what that would do.
pub fn compact(global: &Global, args: &Compact) -> Result<(), CliError> {
    let snapshot = store(global)?.snapshot(&args.table)?;
    let now = args.now.unwrap_or_else(|| chrono::Utc::now().timestamp_micros());
    let extent = if args.full { CompactionExtent::Full } else { CompactionExtent::Needed };
    let plan = CompactionPlan::of_extent(&snapshot, now, extent)?;
    let mut out = stdout();
    if args.dry_run {
        rows(&snapshot, &plan).write(global.output, &mut out)?;
        out.flush()?;
        return Ok(());
    }
    let ids = UlidIds::default();
    let done = Compaction::run(&plan, &ids)?;
    let mut version = snapshot.version().clone();
    if !done.edit.is_empty() {
        version = snapshot.table().commit(version, &done.edit, &ids, plan.now)?;
    }
    let windows = plan.windows.len();
    let ((ssts_before, bytes_before), (ssts_after, bytes_after)) = (done.before, done.after);
    match global.output {
        Output::Json => writeln!(
            out,
            "{}",
            json!({
                "table": args.table, "version": version.number, "windows": windows,
                "ssts_before": ssts_before, "ssts_after": ssts_after,
                "bytes_before": bytes_before, "bytes_after": bytes_after, "cells_removed": done.removed,
            })
        )?,
        Output::Csv => rows(&snapshot, &plan).write(Output::Csv, &mut out)?,
        Output::Table if plan.is_empty() => writeln!(out, "{}: nothing to compact", args.table)?,
        Output::Table => {
            let windows = count(windows as u64, "window");
            writeln!(out, "{}: {windows} compacted, version {}", args.table, version.number)?;
            let files = |ssts: usize, size| format!("{} of {}", count(ssts as u64, "SST"), bytes(size));
            writeln!(out, "  before  {}", files(ssts_before, bytes_before))?;
            writeln!(out, "  after   {}", files(ssts_after, bytes_after))?;
            writeln!(out, "  cells taken out: {}", count(done.removed, "cell"))?;
        }
    }
    out.flush()?;
    Ok(())
}

/// A line for each window.
fn rows(snapshot: &tidetable_store::Snapshot, plan: &CompactionPlan) -> Rows {
    let mut rows = Rows::new(&["window", "why", "SSTs", "rows", "cells", "bytes"]);
    for window in &plan.windows {
        let sum = |of: fn(&Sst) -> u64| window.ssts.iter().map(of).sum::<u64>();
        let why = match window.reason {
            CompactionReason::SeveralSsts => "several SSTs",
            CompactionReason::Fresh => "as loaded",
            CompactionReason::HiddenCells => "deleted or expired cells",
        };
        rows.push(vec![
            json!(window_name(snapshot.layout().spec().window, window.start)),
            json!(why),
            json!(window.ssts.len()),
            json!(sum(|sst| sst.rows)),
            json!(sum(|sst| sst.cells)),
            json!(sum(|sst| sst.bytes)),
        ]);
    }
    rows
}
