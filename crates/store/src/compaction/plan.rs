//! What a compaction will do, to be shown before it is done.

use rayon::prelude::*;
use tidetable_layout::{KeyRange, Projection};

use crate::compaction::extent::{CompactionExtent, CompactionReason};
use crate::compaction::join::{JoinPick, joins};
use crate::compaction::picker::{Pick, pick};
use crate::error::Result;
use crate::read::snapshot::{ALWAYS, ScanRange, Snapshot};
use crate::tombstone::cells_of;
use crate::version::compacted::held_windows;
use crate::version::{Replacement, Sst, Version, WindowState};

/// The merges of a version that are worth it.
#[derive(Debug, Clone)]
pub struct CompactionPlan {
    pub(crate) snapshot: Snapshot,
    /// Logical time at which rules are judged: that of the version, or later.
    pub now: i64,
    /// The logical time that was asked for; rounds before the last judge at an earlier one.
    pub asked: i64,
    /// By window, older SSTs first.
    pub merges: Vec<MergePlan>,
}

/// SSTs of a window that become one run of files.
#[derive(Debug, Clone, PartialEq)]
pub struct MergePlan {
    /// Start of the window, microseconds since the epoch; the first if several are joined.
    pub window: i64,
    /// The windows that are joined, if any are.
    pub joins: Vec<i64>,
    /// Why.
    pub reason: CompactionReason,
    /// The SSTs to be replaced, older data first.
    pub ssts: Vec<Sst>,
    /// The order of what takes their place: above all of them and the drops that hold for them, below what is newer.
    pub(crate) order: u64,
    /// Whether no older SST of the window shares keys with them: then rules may take cells out. What an older SST
    /// holds of such a cell would be shown otherwise.
    pub(crate) collects: bool,
    /// Whether they are all SSTs that hold rows of the window, or windows.
    whole: bool,
}

impl CompactionPlan {
    /// Plans the compaction of what is needed of `snapshot` at `now`; before the time of its version that counts.
    ///
    /// # Errors
    /// Those of reading: a window of one SST is read to see whether anything of it is hidden.
    pub fn new(snapshot: &Snapshot, now: i64) -> Result<Self> {
        Self::of_extent(snapshot, now, CompactionExtent::Needed)
    }

    /// Plans the compaction of so much of `snapshot` at `now`, as [`Self::new`] does. What is due after a load is judged
    /// at the time of the version, so that it changes no answer, and planned without reading. If a window has so many SSTs that
    /// they are merged in rounds, the plan is of the first round alone, and judges rules at the time of the version:
    /// compact what comes of it again.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn of_extent(snapshot: &Snapshot, now: i64, extent: CompactionExtent) -> Result<Self> {
        let version = snapshot.version();
        let asked = if extent == CompactionExtent::Due { version.now } else { now.max(version.now) };
        let mut now = asked;
        let joined = if snapshot.layout().rows_keep_to_windows() { joins(version, extent) } else { Vec::new() };
        let picked = pick(version, extent, &joined).into_iter().filter_map(|pick| merge_of(version, pick));
        let mut picked: Vec<MergePlan> =
            picked.chain(joined.into_iter().filter_map(|join| join_of(version, join))).collect();
        picked.sort_by_key(|merge| merge.window);
        if picked.iter().any(|merge| !merge.whole) {
            // What expires by a later time is told by windows as a whole.
            picked.retain(|merge| merge.reason == CompactionReason::SeveralSsts);
            now = version.now;
        }
        let judged = snapshot.as_of_now(now)?;
        let worth = |merge: MergePlan| -> Result<Option<MergePlan>> {
            let is_worth = match merge.reason {
                CompactionReason::SeveralSsts | CompactionReason::Fresh | CompactionReason::Settled => true,
                CompactionReason::HiddenCells => count(&judged, &merge)? < count(&snapshot.as_stored(), &merge)?,
            };
            Ok(is_worth.then_some(merge))
        };
        let merges: Vec<Option<MergePlan>> = picked.into_par_iter().map(worth).collect::<Result<_>>()?;
        Ok(Self { snapshot: snapshot.clone(), now, asked, merges: merges.into_iter().flatten().collect() })
    }

    /// What it is about.
    pub fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    /// Whether nothing is left to do once it is done.
    pub fn is_last(&self) -> bool {
        self.merges.iter().all(|merge| merge.whole)
    }

    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.merges.is_empty()
    }

    /// In how many windows there is something to do.
    pub fn windows(&self) -> usize {
        self.merges.chunk_by(|a, b| a.window == b.window).count()
    }
}

impl MergePlan {
    /// The merge of all SSTs of a window but for those it shares with others.
    pub(crate) fn of_window(version: &Version, start: i64) -> Option<Self> {
        let window = version.windows.iter().find(|window| window.start == start)?;
        let own = window.ssts.partition_point(|sst| sst.joined.is_some());
        let ssts = own..window.ssts.len();
        merge_of(version, Pick { start, reason: CompactionReason::SeveralSsts, ssts })
    }

    /// What takes the place of the SSTs of this merge.
    pub(crate) fn replacement(&self, ssts: Vec<Sst>) -> Replacement {
        let replaced = self.ssts.iter().map(|sst| sst.id.clone()).collect();
        let held = held_windows(self.ssts.iter());
        Replacement { window: self.window, joins: self.joins.clone(), held, replaced, ssts }
    }
}

/// What was picked, with its surroundings; `None` only if the pick is of another version.
fn merge_of(version: &Version, pick: Pick) -> Option<MergePlan> {
    let window: &WindowState = version.windows.iter().find(|window| window.start == pick.start)?;
    let ssts = window.ssts.get(pick.ssts.clone())?.to_vec();
    let newer = window.ssts.get(pick.ssts.end);
    let own = window.ssts.iter().filter(|sst| sst.joined.is_none());
    let (in_all, older) = (own.clone().count(), own.take_while(|sst| sst.order < ssts[0].order));
    let shared: Vec<&Sst> = version.shared_files(window.start).collect();
    let mut older = shared.iter().copied().chain(older);
    Some(MergePlan {
        window: pick.start,
        joins: Vec::new(),
        reason: pick.reason,
        order: order(version, &ssts, newer)?,
        collects: !older.any(|older| ssts.iter().any(|sst| older.shares_keys(sst))),
        whole: ssts.len() == in_all && shared.is_empty(),
        ssts,
    })
}

/// All SSTs of the windows to be joined.
fn join_of(version: &Version, join: JoinPick) -> Option<MergePlan> {
    let of_join = |home: i64, sst: &Sst| match &sst.joined {
        Some(joined) => join.windows.iter().any(|start| joined.holds(*start)),
        None => join.windows.binary_search(&home).is_ok(),
    };
    let windows = version.windows.iter();
    let ssts = windows.flat_map(|window| window.ssts.iter().filter(move |sst| of_join(window.start, sst)));
    let mut ssts: Vec<Sst> = ssts.cloned().collect();
    ssts.sort_by_key(|sst| sst.order);
    Some(MergePlan {
        window: *join.windows.first()?,
        reason: join.reason,
        order: order(version, &ssts, None)?,
        collects: true,
        whole: true,
        ssts,
        joins: join.windows,
    })
}

/// Newer than every drop that is applied, so that it is not asked again, and older than what comes: that gets an order
/// above all SSTs and drops there are.
fn order(version: &Version, ssts: &[Sst], newer: Option<&Sst>) -> Option<u64> {
    let applied = version.drops.iter().map(|drop| drop.order);
    let applied = applied.filter(|order| newer.is_none_or(|newer| *order < newer.order));
    ssts.iter().map(|sst| sst.order).chain(applied).max()
}

/// Cells that `snapshot` shows of a window.
fn count(snapshot: &Snapshot, merge: &MergePlan) -> Result<u64> {
    let ssts = merge.ssts.iter().map(|sst| sst.id.clone()).collect();
    let slice = ScanRange { keys: KeyRange::all(), ssts, time: ALWAYS, bytes: 0 };
    let mut cells = 0;
    for block in snapshot.scan(&slice, &Projection::all(snapshot.schema()))? {
        cells += cells_of(snapshot.schema(), &block?);
    }
    Ok(cells)
}
