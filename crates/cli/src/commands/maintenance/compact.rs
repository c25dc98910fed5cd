//! `tidetable compact`: merges the files of a table, and removes deleted and expired cells.

use std::io::Write;

use serde_json::json;
use tidetable_layout::time::window_name;
use tidetable_runner::{MergesElsewhere, UlidIds};
use tidetable_store::{Ids, ulid_text};
use tidetable_upkeep::compaction::{CompactionExtent, CompactionPlan, CompactionReason, MergePlan};

use crate::args::{Compact, Global, Output};
use crate::commands::cluster::{carrier, scheduler_of};
use crate::commands::{clock, open_newest, project_of_store, store, sums};
use crate::diagnostics::print_message;
use crate::error::CliError;
use crate::objects;
use crate::objects::write_object;
use crate::output::values::{bytes, count};
use crate::output::{ResultRows, row, sentences};
use crate::signals::stop_on_signals;

/// Compacts the table, or shows the plan.
pub fn compact(global: &Global, args: &Compact) -> Result<(), CliError> {
    let store = store(global)?;
    let snapshot = open_newest(&store, &args.table)?;
    let now = args.now.unwrap_or_else(clock);
    let extent = if args.full { CompactionExtent::Full } else { CompactionExtent::Needed };
    let plan = CompactionPlan::of_extent(&snapshot, now, extent)?;

    if args.dry_run {
        return rows(&snapshot, &plan).print(global.output);
    }

    let planned = rows(&snapshot, &plan);
    let is_empty = plan.is_empty();
    let stop = stop_on_signals()?;
    let ids = UlidIds::default();
    let project = project_of_store(global)?;

    let done = match scheduler_of(args.on.as_deref(), &project) {
        None => tidetable_runner::compact(&store, plan, extent, &ids, &stop),
        Some(on) => {
            let carrier = carrier(&on, &ulid_text(ids.next()))?;
            let elsewhere = MergesElsewhere {
                carrier: carrier.as_ref(),
                root: &project.root,
                stop: &stop,
                note: &|note| print_message(global, &note),
            };
            tidetable_runner::compact_elsewhere(&store, plan, extent, &ids, elsewhere)
        }
    };

    if let (Err(_), Some(stopped)) = (&done, stop.asked()) {
        return Err(CliError::CompactionStopped { table: args.table.clone(), signal: stopped.0 });
    }
    let done = done?;

    let mut out = sentences(global.output);
    match global.output {
        Output::Json => write_object(&mut out, json!(done), objects::COMPACTION)?,
        Output::Table if is_empty => writeln!(out, "{}: nothing to compact", args.table)?,
        Output::Table => {
            let windows = count(done.windows as u64, "window");
            writeln!(out, "{}: {windows} compacted, version {}", args.table, done.version)?;
            let (before, after) = (count(done.ssts_before as u64, "SST"), count(done.ssts_after as u64, "SST"));
            writeln!(out, "  before  {before} of {}", bytes(done.bytes_before))?;
            writeln!(out, "  after   {after} of {}", bytes(done.bytes_after))?;
            writeln!(out, "  cells removed: {}", count(done.cells_removed, "cell"))?;
        }
        other => planned.write(other, &mut out)?,
    }

    out.flush()?;
    Ok(())
}

/// A row for each merge.
fn rows(snapshot: &tidetable_store::Snapshot, plan: &CompactionPlan) -> ResultRows {
    let mut rows = ResultRows::of(objects::MERGES);
    for merge in &plan.merges {
        let why = match merge.reason {
            CompactionReason::SeveralSsts => "several SSTs",
            CompactionReason::Fresh => "as loaded",
            CompactionReason::Settled => "settled windows",
            CompactionReason::HiddenCells => "deleted or expired cells",
        };
        let [all_rows, cells, size] = sums(merge.ssts.iter());
        rows.push(row![windows(snapshot, merge), why, merge.ssts.len(), all_rows, cells, size]);
    }
    rows
}

/// The window of a merge, or the first and the last of those it joins.
fn windows(snapshot: &tidetable_store::Snapshot, merge: &MergePlan) -> String {
    let unit = snapshot.layout().spec().window;
    match merge.joins.as_slice() {
        [first, .., last] => format!("{} to {}", window_name(unit, *first), window_name(unit, *last)),
        _ => window_name(unit, merge.window),
    }
}
