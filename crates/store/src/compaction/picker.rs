//! Which SSTs of which windows are worth compacting. Pure: looks at the manifest alone.

use std::collections::HashSet;
use std::ops::Range;

use crate::compaction::extent::{CompactionExtent, CompactionReason};
use crate::compaction::join::JoinPick;
use crate::version::{Sst, Version, WindowState};

/// SSTs of one merge at most, so that its memory has a bound: more are merged in rounds.
pub(crate) const MOST_RUNS: usize = 32;
/// Runs of about one size that wait to be merged.
const TIER: usize = 8;
/// How many times the largest of them all together must weigh. Less than their number, for no two loads bring
/// quite as much.
const TIER_WEIGHT: u64 = 6;
/// A smaller run counts as if it had so many bytes: to open and search it costs as much.
const LEAST_WEIGHT: u64 = 1 << 20;

/// SSTs that may be worth it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pick {
    /// Start of their window.
    pub(crate) start: i64,
    pub(crate) reason: CompactionReason,
    /// Their places in the window, one after the other; after those that it shares with others.
    pub(crate) ssts: Range<usize>,
}

/// The SSTs that are worth merging, and those of which something may be hidden: whether it is, only their cells tell.
/// Windows in `joins` are left out.
pub(crate) fn pick(version: &Version, extent: CompactionExtent, joins: &[JoinPick]) -> Vec<Pick> {
    let joined: HashSet<i64> = joins.iter().flat_map(|join| &join.windows).copied().collect();
    let others = version.windows.iter().filter(|window| !joined.contains(&window.start));
    others.flat_map(|window| pick_window(version, window, extent)).collect()
}

fn pick_window(version: &Version, window: &WindowState, extent: CompactionExtent) -> Vec<Pick> {
    let own = window.ssts.partition_point(|sst| sst.joined.is_some());
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

/// The places of SSTs of one order, which share no key.
fn runs(ssts: &[Sst]) -> Vec<Range<usize>> {
    let mut runs: Vec<Range<usize>> = Vec::new();
    for (at, sst) in ssts.iter().enumerate() {
        match runs.last_mut() {
            Some(run) if ssts[run.start].order == sst.order => run.end = at + 1,
            _ => runs.push(at..at + 1),
        }
    }
    runs
}

fn weight(ssts: &[Sst]) -> u64 {
    ssts.iter().map(|sst| sst.bytes).sum::<u64>().max(LEAST_WEIGHT)
}

/// The first of the runs to be merged with all that are newer: as many as possible, of which the largest is not much
/// more than its share, so that it is not written again for little. `weights` are of all runs of a window, older first.
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

/// `runs` in merges of [`MOST_RUNS`] at most, all of about as many. What they give is merged in another round.
fn rounds(runs: &[Range<usize>]) -> Vec<Range<usize>> {
    let each = runs.len().div_ceil(runs.len().div_ceil(MOST_RUNS).max(1)).max(1);
    let span = |runs: &[Range<usize>]| Some(runs.first()?.start..runs.last()?.end);
    runs.chunks(each).filter_map(span).collect()
}
