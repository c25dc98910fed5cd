//! Compaction of a table in rounds, each committed as a version of its own.

use std::collections::BTreeMap;

use tidetable_record::CompactionRecord;
use tidetable_store::{Ids, Result, Snapshot, Sst, Store, Version};
use tidetable_upkeep::compaction::{Compaction, CompactionExtent, CompactionPlan, Merger, RunMerges};

use crate::fault::stop::Stop;
use crate::units::carrier::UnitCarrier;
use crate::units::compact::CarriedMerges;
use crate::units::tally::Tally;

/// Most rounds of one call; the rest waits for the next. One usually suffices, two always should.
const ROUNDS: usize = 8;

/// SSTs of a window.
#[derive(Debug, Clone, Copy, Default)]
struct SstTotals {
    number: usize,
    bytes: u64,
}

impl SstTotals {
    fn add(&mut self, ssts: &[Sst]) {
        self.number += ssts.len();
        self.bytes += ssts.iter().map(|sst| sst.bytes).sum::<u64>();
    }
}

/// The SSTs of a window before and after it is compacted.
#[derive(Debug, Clone, Copy, Default)]
struct WindowTotals {
    before: SstTotals,
    after: SstTotals,
}

/// What does the merges of a compaction in other processes.
#[derive(Clone, Copy)]
pub struct MergesElsewhere<'a> {
    /// Brings the merges to these processes.
    pub carrier: &'a dyn UnitCarrier,
    /// The root that they work in, as the project names it.
    pub root: &'a str,
    /// Stops the compaction on request.
    pub stop: &'a Stop,
    /// Receives notes for the user.
    pub note: &'a (dyn Fn(String) + Sync),
}

/// Compacts `table` as far as `extent` asks, starting with `first`, a plan of its newest version, until `stop` is set.
///
/// # Errors
/// Those of reading, writing and committing. What earlier rounds committed stays.
pub fn compact(
    store: &Store,
    first: CompactionPlan,
    extent: CompactionExtent,
    ids: &dyn Ids,
    stop: &Stop,
) -> Result<CompactionRecord> {
    let table = first.snapshot().table().name().to_owned();
    compact_by(store, first, extent, ids, &Merger { ids, go_on: &|| stop.go_on(&table) })
}

/// As [`compact`], by other processes.
///
/// # Errors
/// As [`compact`], and those of carrying.
pub fn compact_elsewhere(
    store: &Store,
    first: CompactionPlan,
    extent: CompactionExtent,
    ids: &dyn Ids,
    elsewhere: MergesElsewhere<'_>,
) -> Result<CompactionRecord> {
    let MergesElsewhere { carrier, root, stop, note } = elsewhere;
    let tally = Tally::default();
    compact_by(store, first, extent, ids, &CarriedMerges { carrier, root, stop, tally: &tally, note })
}

/// As [`compact`]; `runner` runs the merges.
pub(crate) fn compact_by(
    store: &Store,
    first: CompactionPlan,
    extent: CompactionExtent,
    ids: &dyn Ids,
    runner: &dyn RunMerges,
) -> Result<CompactionRecord> {
    let (mut snapshot, mut plan) = (first.snapshot().clone(), first);
    let (table, now) = (snapshot.table().clone(), plan.asked);
    let mut record = CompactionRecord { table: table.name().to_owned(), ..CompactionRecord::default() };
    (record.before, record.version) = (snapshot.version().number, snapshot.version().number);
    let mut windows: BTreeMap<i64, WindowTotals> = BTreeMap::new();

    for _ in 0..ROUNDS {
        if plan.is_empty() {
            break;
        }

        let done = Compaction::run_by(&plan, runner)?;
        record.version = commit(&snapshot, &done, &plan, ids)?.number;
        record.cells_removed += done.removed;
        note(&mut windows, &plan, &done);
        if plan.is_last() {
            break;
        }

        snapshot = store.snapshot(table.name())?;
        plan = CompactionPlan::of_extent(&snapshot, now, extent)?;
    }

    record.windows = windows.len();
    for WindowTotals { before, after } in windows.into_values() {
        record.ssts_before += before.number;
        record.bytes_before += before.bytes;
        record.ssts_after += after.number;
        record.bytes_after += after.bytes;
    }
    Ok(record)
}

fn commit(snapshot: &Snapshot, done: &Compaction, plan: &CompactionPlan, ids: &dyn Ids) -> Result<Version> {
    snapshot.table().commit(snapshot.version().clone(), &done.edit, ids, plan.now)
}

/// Sums a round by window: the state before counts from the first round, the state after from the last.
fn note(windows: &mut BTreeMap<i64, WindowTotals>, plan: &CompactionPlan, done: &Compaction) {
    let mut round: BTreeMap<i64, WindowTotals> = BTreeMap::new();
    for merge in &plan.merges {
        round.entry(merge.window).or_default().before.add(&merge.ssts);
    }
    for replacement in done.edit.compacted.iter().flat_map(|compacted| &compacted.replacements) {
        round.entry(replacement.window).or_default().after.add(&replacement.ssts);
    }

    for (window, totals) in round {
        windows.entry(window).or_insert(totals).after = totals.after;
    }
}
