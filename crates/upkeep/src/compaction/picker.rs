//! Picker (size-tiered): selects the SSTs worth compacting. Pure: uses the manifest only.

use std::collections::HashSet;
use std::ops::Range;

use tidetable_store::version::{Sst, Version, WindowState};

use crate::compaction::extent::{CompactionExtent, CompactionReason, LeftReason};
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

/// What a picker decided about the windows of a version.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Picks {
    /// Candidates for merges, by window.
    pub(crate) picked: Vec<Pick>,
    /// Starts of the windows without candidates, and why they have none.
    pub(crate) left: Vec<(i64, LeftReason)>,
}

/// Selects SSTs worth merging, and SSTs that may hold hidden cells, which only reading decides. Skips windows in
/// `joins`.
pub(crate) fn pick(version: &Version, extent: CompactionExtent, joins: &[JoinPick]) -> Picks {
    let joined: HashSet<i64> = joins.iter().flat_map(|join| &join.windows).copied().collect();
    let mut picks = Picks::default();
    for window in version.windows.iter().filter(|window| !joined.contains(&window.start)) {
        match pick_window(version, window, extent) {
            Ok(picked) => picks.picked.extend(picked),
            Err(reason) => picks.left.push((window.start, reason)),
        }
    }

    picks
}

/// The candidates of one window, or why it has none.
fn pick_window(version: &Version, window: &WindowState, extent: CompactionExtent) -> Result<Vec<Pick>, LeftReason> {
    let own = window.ssts.partition_point(|sst| sst.multi_window.is_some());
    let ssts = &window.ssts[own..];
    let runs: Vec<Range<usize>> = runs(ssts).into_iter().map(|run| run.start + own..run.end + own).collect();
    let left = match runs.len() {
        0 => LeftReason::NoSsts,
        1 => LeftReason::OneRun,
        _ => LeftReason::FewRuns,
    };

    if extent == CompactionExtent::Due {
        let weights: Vec<u64> = runs.iter().map(|run| weight(&window.ssts[run.clone()])).collect();
        let from = tier(&weights).ok_or(left)?;
        return Ok(merges(window, &runs[from..]));
    }
    if runs.len() > 1 {
        return Ok(merges(window, &runs));
    }

    let reason = if extent == CompactionExtent::Full && ssts.iter().any(|sst| sst.level == 0) {
        CompactionReason::Fresh
    } else if !ssts.iter().any(|sst| version.may_hide_cells(sst)) {
        return Err(if ssts.is_empty() { LeftReason::NoSsts } else { LeftReason::NothingHidden });
    } else if version.shared_files(window.start).next().is_some() {
        return Err(LeftReason::SharesFiles);
    } else {
        CompactionReason::HiddenCells
    };

    Ok(vec![Pick { start: window.start, reason, ssts: own..window.ssts.len() }])
}

/// The merges of sorted runs of a window, in rounds.
fn merges(window: &WindowState, runs: &[Range<usize>]) -> Vec<Pick> {
    let rounds = rounds(runs).into_iter();
    rounds.map(|ssts| Pick { start: window.start, reason: CompactionReason::SeveralSsts, ssts }).collect()
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
    let rounds = runs.len().div_ceil(MAX_RUNS).max(1);
    let runs_of_round = runs.len().div_ceil(rounds).max(1);

    runs.chunks(runs_of_round).filter_map(|round| Some(round.first()?.start..round.last()?.end)).collect()
}
