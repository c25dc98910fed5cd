//! Picker (size-tiered): selects the SSTs worth compacting. Pure: uses the manifest only.

use std::collections::HashSet;
use std::ops::Range;

use tidetable_store::version::{Sst, Version, WindowState};

use crate::compaction::extent::{CompactionExtent, CompactionReason};
use crate::compaction::join::JoinPick;

/// Maximum number of sorted runs of one merge, which bounds its memory: more are merged in rounds.
pub(crate) const MAX_RUNS: usize = 32;
/// Number of runs of similar size that triggers a merge.
const TIER: usize = 8;
/// Total weight of such runs, at least, as a multiple of the largest. Below [`TIER`], since loads differ in size.
const TIER_WEIGHT: u64 = 6;
/// Minimum weight of a run, in bytes: the cost of opening and searching it.
const MIN_WEIGHT: u64 = 1 << 20;

/// Candidate SSTs of a window.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pick {
    /// Start of their window.
    pub(crate) start: i64,
    pub(crate) reason: CompactionReason,
    /// Their indexes in the window, consecutive, after multi-window files.
    pub(crate) ssts: Range<usize>,
}

/// Selects SSTs worth merging, and SSTs that may hold hidden cells, which only reading decides. Skips windows in
/// `joins`.
pub(crate) fn pick(version: &Version, extent: CompactionExtent, joins: &[JoinPick]) -> Vec<Pick> {
    let joined: HashSet<i64> = joins.iter().flat_map(|join| &join.windows).copied().collect();
    let others = version.windows.iter().filter(|window| !joined.contains(&window.start));
    others.flat_map(|window| pick_window(version, window, extent)).collect()
}

fn pick_window(version: &Version, window: &WindowState, extent: CompactionExtent) -> Vec<Pick> {
    let own = window.ssts.partition_point(|sst| sst.multi_window.is_some());
    let runs: Vec<Range<usize>> =
        runs(&window.ssts[own..]).into_iter().map(|run| run.start + own..run.end + own).collect();
    let merges = |runs: &[Range<usize>]| -> Vec<Pick> {
        let pick = |ssts| Pick { start: window.start, reason: CompactionReason::SeveralSsts, ssts };
        rounds(runs).into_iter().map(pick).collect()
    };
    if extent == CompactionExtent::Due {
        let weights: Vec<u64> = runs.iter().map(|run| weight(&window.ssts[run.clone()])).collect();
        return tier(&weights).map_or(Vec::new(), |from| merges(&runs[from..]));
    }
    if runs.len() > 1 {
        return merges(&runs);
    }
    let whole = |reason| vec![Pick { start: window.start, reason, ssts: own..window.ssts.len() }];
    let ssts = &window.ssts[own..];
    if extent == CompactionExtent::Full && ssts.iter().any(|sst| sst.level == 0) {
        return whole(CompactionReason::Fresh);
    }
    let alone = version.shared_files(window.start).next().is_none();
    if alone && ssts.iter().any(|sst| version.may_hide_cells(sst)) {
        whole(CompactionReason::HiddenCells)
    } else {
        Vec::new()
    }
}

/// The sorted runs: index ranges of SSTs with one sequence number, which share no key.
fn runs(ssts: &[Sst]) -> Vec<Range<usize>> {
    let mut runs: Vec<Range<usize>> = Vec::new();
    for (at, sst) in ssts.iter().enumerate() {
        match runs.last_mut() {
            Some(run) if ssts[run.start].seqno == sst.seqno => run.end = at + 1,
            _ => runs.push(at..at + 1),
        }
    }
    runs
}

fn weight(ssts: &[Sst]) -> u64 {
    ssts.iter().map(|sst| sst.bytes).sum::<u64>().max(MIN_WEIGHT)
}

/// The first run of a tier, merged with all newer ones: as many as possible, without a run much larger than the rest,
/// which would be rewritten for little gain. `weights` are of all runs of a window, older first.
fn tier(weights: &[u64]) -> Option<usize> {
    let (mut sum, mut largest, mut from) = (0, 0, None);
    for (at, weight) in weights.iter().enumerate().rev() {
        sum += weight;
        largest = largest.max(*weight);
        if weights.len() - at >= TIER && sum >= TIER_WEIGHT * largest {
            from = Some(at);
        }
    }
    from
}

/// Splits `runs` into merges of at most [`MAX_RUNS`], of similar size. Their outputs are merged in another round.
fn rounds(runs: &[Range<usize>]) -> Vec<Range<usize>> {
    let each = runs.len().div_ceil(runs.len().div_ceil(MAX_RUNS).max(1)).max(1);
    let span = |runs: &[Range<usize>]| Some(runs.first()?.start..runs.last()?.end);
    runs.chunks(each).filter_map(span).collect()
}
