//! Compaction plan: the merges that a compaction will do.

use std::collections::BTreeMap;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use tidetable_layout::{KeyRange, Projection};
use tidetable_store::read::{ALL_TIMES, ScanRange, Snapshot};
use tidetable_store::tombstone::cells_of;
use tidetable_store::version::{Replacement, Sst, Version, WindowState, held_windows};
use tidetable_store::{Result, window_names};

use crate::compaction::extent::{CompactionExtent, CompactionReason, LeftReason};
use crate::compaction::join::{JoinPick, joins};
use crate::compaction::picker::{Pick, Picks, pick};

/// The merges worth doing in a version.
#[derive(Debug, Clone)]
pub struct CompactionPlan {
    pub(crate) snapshot: Snapshot,
    /// Logical time at which rules are applied: that of the version, or later.
    pub now: i64,
    /// The requested logical time; rounds before the last use an earlier one.
    pub asked: i64,
    /// By window, older SSTs first.
    pub merges: Vec<MergePlan>,
}

/// SSTs of a window to merge into one sorted run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MergePlan {
    /// Start of the window, microseconds since the epoch; of the first window of a join.
    pub window: i64,
    /// Starts of the joined windows; empty without a join.
    pub joins: Vec<i64>,
    /// Why they are merged.
    pub reason: CompactionReason,
    /// The SSTs to replace, older data first.
    pub ssts: Vec<Sst>,
    /// Sequence number of the output: above those of the inputs and their tombstones, below newer ones.
    pub(crate) seqno: u64,
    /// Whether no older SST of the window shares keys with them. Only then rules may remove cells; otherwise older
    /// versions of removed cells would show.
    pub(crate) collects_garbage: bool,
    /// Whether they are all SSTs with rows of the window or windows.
    whole: bool,
}

impl CompactionPlan {
    /// Plans the compaction of `snapshot` to the extent [`CompactionExtent::Needed`], at `now` or the time of the
    /// version, whichever is later.
    ///
    /// # Errors
    /// Those of reading: a window of one SST is read to find hidden cells.
    pub fn new(snapshot: &Snapshot, now: i64) -> Result<Self> {
        Self::of_extent(snapshot, now, CompactionExtent::Needed)
    }

    /// As [`Self::new`], to another extent. [`CompactionExtent::Due`] applies rules at the time of the version, so
    /// that it changes no answer, and reads nothing. If a window needs rounds, the plan is of the first round only,
    /// at the time of the version: plan again after its commit.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn of_extent(snapshot: &Snapshot, now: i64, extent: CompactionExtent) -> Result<Self> {
        let version = snapshot.version();
        let asked = if extent == CompactionExtent::Due { version.now } else { now.max(version.now) };
        let joined = if snapshot.layout().rows_lie_in_one_window() { joins(version, extent) } else { Vec::new() };
        let Picks { picked, mut left } = pick(version, extent, &joined);

        let mut merges: Vec<MergePlan> = picked.into_iter().filter_map(|pick| merge_of(version, pick)).collect();
        merges.extend(joined.into_iter().filter_map(|join| join_of(version, join)));
        merges.sort_by_key(|merge| merge.window);

        let mut now = asked;
        if merges.iter().any(|merge| !merge.whole) {
            // Expiry at a later time is decided for whole windows.
            let later = merges.extract_if(.., |merge| merge.reason != CompactionReason::SeveralSsts);
            left.extend(later.map(|merge| (merge.window, LeftReason::LaterRound)));
            now = version.now;
        }

        let judged = snapshot.as_of_now(now)?;
        let is_worth: Vec<bool> =
            merges.par_iter().map(|merge| is_worth(merge, snapshot, &judged)).collect::<Result<_>>()?;
        let mut is_worth = is_worth.into_iter();
        let worthless = merges.extract_if(.., |_| is_worth.next() == Some(false));
        left.extend(worthless.map(|merge| (merge.window, LeftReason::NothingRemoved)));

        let plan = Self { snapshot: snapshot.clone(), now, asked, merges };
        plan.log(&left);
        Ok(plan)
    }

    /// Some merges of a plan that another process made, of `snapshot` at `now`.
    pub fn of_merges(snapshot: Snapshot, now: i64, merges: Vec<MergePlan>) -> Self {
        Self { snapshot, now, asked: now, merges }
    }

    /// Logs each merge, and of the windows that are `left` as they are the first and last for each reason.
    fn log(&self, left: &[(i64, LeftReason)]) {
        if !tracing::enabled!(tracing::Level::DEBUG) {
            return;
        }

        let table = self.snapshot.table().name();
        let unit = self.snapshot.version().table.spec.window;
        for merge in &self.merges {
            tracing::debug!(
                table,
                window = window_names(unit, std::iter::once(merge.window).chain(merge.joins.iter().copied())),
                reason = merge.reason.words(),
                ssts = merge.ssts.len(),
                bytes = merge.bytes(),
                "compaction_picked"
            );
        }

        let mut by_reason: BTreeMap<LeftReason, Vec<i64>> = BTreeMap::new();
        for (window, reason) in left {
            by_reason.entry(*reason).or_default().push(*window);
        }
        for (reason, windows) in by_reason {
            tracing::debug!(
                table,
                windows = windows.len(),
                window = window_names(unit, windows),
                reason = reason.words(),
                "compaction_not_picked"
            );
        }
    }

    /// The snapshot to compact.
    pub fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    /// Whether it is the last round.
    pub fn is_last(&self) -> bool {
        self.merges.iter().all(|merge| merge.whole)
    }

    /// Whether there are no merges.
    pub fn is_empty(&self) -> bool {
        self.merges.is_empty()
    }

    /// Number of windows with merges.
    pub fn windows(&self) -> usize {
        self.merges.chunk_by(|a, b| a.window == b.window).count()
    }
}

impl MergePlan {
    /// Bytes of the SSTs to replace.
    pub fn bytes(&self) -> u64 {
        self.ssts.iter().map(|sst| sst.bytes).sum()
    }

    /// The merge of all SSTs of a window, without multi-window files.
    pub(crate) fn of_window(version: &Version, start: i64) -> Option<Self> {
        let window = version.windows.iter().find(|window| window.start == start)?;
        let own = window.ssts.partition_point(|sst| sst.multi_window.is_some());
        let ssts = own..window.ssts.len();
        merge_of(version, Pick { start, reason: CompactionReason::SeveralSsts, ssts })
    }

    /// The replacement of the SSTs of this merge.
    pub(crate) fn replacement(&self, ssts: Vec<Sst>) -> Replacement {
        let replaced = self.ssts.iter().map(|sst| sst.id.clone()).collect();
        let held = held_windows(self.ssts.iter());
        Replacement { window: self.window, joins: self.joins.clone(), held, replaced, ssts }
    }
}

/// The merge of a pick; `None` only if the pick is of another version.
fn merge_of(version: &Version, pick: Pick) -> Option<MergePlan> {
    let window: &WindowState = version.windows.iter().find(|window| window.start == pick.start)?;
    let ssts = window.ssts.get(pick.ssts.clone())?.to_vec();
    let newer = window.ssts.get(pick.ssts.end);

    let shared: Vec<&Sst> = version.shared_files(window.start).collect();
    let own = window.ssts.iter().filter(|sst| sst.multi_window.is_none());
    let own_count = own.clone().count();
    let mut older = shared.iter().copied().chain(own.take_while(|sst| sst.seqno < ssts[0].seqno));

    Some(MergePlan {
        window: pick.start,
        joins: Vec::new(),
        reason: pick.reason,
        seqno: seqno(version, &ssts, newer)?,
        collects_garbage: !older.any(|older| ssts.iter().any(|sst| older.shares_keys(sst))),
        whole: ssts.len() == own_count && shared.is_empty(),
        ssts,
    })
}

/// The merge of all SSTs of the joined windows.
fn join_of(version: &Version, join: JoinPick) -> Option<MergePlan> {
    let mut ssts: Vec<Sst> = Vec::new();
    for window in version.windows.iter() {
        for sst in &window.ssts {
            let is_joined = match &sst.multi_window {
                Some(joined) => join.windows.iter().any(|start| joined.holds(*start)),
                None => join.windows.binary_search(&window.start).is_ok(),
            };
            if is_joined {
                ssts.push(sst.clone());
            }
        }
    }
    ssts.sort_by_key(|sst| sst.seqno);

    Some(MergePlan {
        window: *join.windows.first()?,
        reason: join.reason,
        seqno: seqno(version, &ssts, None)?,
        collects_garbage: true,
        whole: true,
        ssts,
        joins: join.windows,
    })
}

/// Sequence number of an output: newer than every tombstone applied to it, older than all later SSTs.
fn seqno(version: &Version, ssts: &[Sst], newer: Option<&Sst>) -> Option<u64> {
    let applied = version.tombstones.iter().map(|tombstone| tombstone.seqno);
    let applied = applied.filter(|seqno| newer.is_none_or(|newer| *seqno < newer.seqno));
    ssts.iter().map(|sst| sst.seqno).chain(applied).max()
}

/// Whether a merge improves anything. Hidden cells are counted: those that `judged` does not show of what is stored.
fn is_worth(merge: &MergePlan, snapshot: &Snapshot, judged: &Snapshot) -> Result<bool> {
    match merge.reason {
        CompactionReason::SeveralSsts | CompactionReason::Fresh | CompactionReason::Settled => Ok(true),
        CompactionReason::HiddenCells => Ok(count(judged, merge)? < count(&snapshot.as_stored(), merge)?),
    }
}

/// Number of cells that `snapshot` shows of a window.
fn count(snapshot: &Snapshot, merge: &MergePlan) -> Result<u64> {
    let ssts = merge.ssts.iter().map(|sst| sst.id.clone()).collect();
    let slice = ScanRange { keys: KeyRange::all(), ssts, time: ALL_TIMES, bytes: 0 };
    let mut cells = 0;
    for block in snapshot.scan(&slice, &Projection::all(snapshot.schema()))? {
        cells += cells_of(snapshot.schema(), &block?);
    }
    Ok(cells)
}
