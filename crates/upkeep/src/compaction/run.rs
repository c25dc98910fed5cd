//! Runs a compaction plan: copies, merges and writes SSTs.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use tidetable_store::Ids;
use tidetable_store::read::Snapshot;
use tidetable_store::version::{Compacted, MultiWindow, Sst, VersionEdit};
use tidetable_store::{Result, StoreError};

use crate::compaction::filter::CompactionFilter;
use crate::compaction::input::MergeInputs;
use crate::compaction::output::{MergeOutput, SubcompactionOutput};
use crate::compaction::plan::{CompactionPlan, MergePlan};
use crate::compaction::subcompaction::{Subcompaction, subcompactions};

/// Minimum size of a subcompaction, in bytes: stripes at its boundaries are read twice.
const MIN_SUBCOMPACTION: u64 = 2 << 20;
/// Maximum size of a subcompaction, in bytes: its output is held until those before it are written.
const MAX_SUBCOMPACTION: u64 = 32 << 20;
/// Subcompactions per core, so that no core waits long for the last.
const SUBCOMPACTIONS_A_CORE: u64 = 6;

/// A finished compaction, to be committed.
#[derive(Debug)]
pub struct Compaction {
    /// The edit, to be committed at the plan's time.
    pub edit: VersionEdit,
    /// Number and bytes of the replaced SSTs.
    pub before: (usize, u64),
    /// Number and bytes of the output SSTs.
    pub after: (usize, u64),
    /// Removed cells: tombstoned, expired, or replaced by newer ones.
    pub removed: u64,
}

/// Result of a merge.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Merged {
    pub(crate) ssts: Vec<Sst>,
    /// Whether a read at the plan's time returns fewer cells than one at the version's.
    pub(crate) expired: bool,
}

/// Why a merge failed.
#[derive(Debug)]
pub struct MergeFailed {
    /// The error.
    pub error: StoreError,
    /// Whether its rows exceed a limit, which a merge of the whole window may keep to.
    pub exceeds: bool,
}

impl From<StoreError> for MergeFailed {
    fn from(error: StoreError) -> Self {
        let exceeds = matches!(error, StoreError::SumOverflow { .. } | StoreError::RowTooLarge { .. });
        Self { error, exceeds }
    }
}

/// Runs merges, in this process or elsewhere.
pub trait RunMerges {
    /// Runs `merges` of `plan`, and returns the result of each.
    fn run(&self, plan: &CompactionPlan, merges: &[MergePlan]) -> Vec<std::result::Result<Merged, MergeFailed>>;
}

/// Runs merges on all cores of this process.
pub struct Merger<'a> {
    /// Ids of new SSTs.
    pub ids: &'a dyn Ids,
    /// Called repeatedly; an error cancels the merges.
    pub go_on: &'a (dyn Fn() -> Result<()> + Sync),
}

impl RunMerges for Merger<'_> {
    fn run(&self, plan: &CompactionPlan, merges: &[MergePlan]) -> Vec<std::result::Result<Merged, MergeFailed>> {
        let snapshot = &plan.snapshot;
        let filter = match CompactionFilter::new(snapshot, plan.now) {
            Ok(filter) => filter,
            Err(error) => return vec![Err(error.into())],
        };
        let run = CompactionRun { snapshot, filter: &filter, ids: self.ids, go_on: self.go_on };
        run.rewrite_all(merges).into_iter().map(|done| done.map_err(MergeFailed::from)).collect()
    }
}

impl Merged {
    /// Removes the output of `merge`, which is not used.
    pub fn discard(self, snapshot: &Snapshot, merge: &MergePlan) {
        discard(snapshot, merge, self.ssts);
    }
}

impl Compaction {
    /// Runs `plan` on all cores.
    ///
    /// # Errors
    /// Those of reading and writing; written SSTs are removed.
    pub fn run(plan: &CompactionPlan, ids: &dyn Ids) -> Result<Self> {
        Self::run_while(plan, ids, &|| Ok(()))
    }

    /// As [`Self::run`]; calls `go_on` repeatedly, which may cancel it.
    ///
    /// # Errors
    /// That of `go_on`, and those of [`Self::run`].
    pub fn run_while(plan: &CompactionPlan, ids: &dyn Ids, go_on: &(dyn Fn() -> Result<()> + Sync)) -> Result<Self> {
        Self::run_by(plan, &Merger { ids, go_on })
    }

    /// As [`Self::run`]; `runner` runs the merges.
    ///
    /// # Errors
    /// Those of the runner, and [`StoreError::Unanswered`] if it left a merge out.
    pub fn run_by(plan: &CompactionPlan, runner: &dyn RunMerges) -> Result<Self> {
        let snapshot = &plan.snapshot;
        let version = snapshot.version();
        let mut merges = plan.merges.clone();
        let mut done = answered(runner, plan, &merges);
        let again = widen(snapshot, &mut merges, &mut done);
        let whole: Vec<MergePlan> = again.iter().map(|at| merges[*at].clone()).collect();
        for (at, wide) in again.into_iter().zip(answered(runner, plan, &whole)) {
            done[at] = wide;
        }
        let done = done.into_iter().map(|done| done.map_err(|failed| failed.error));
        let mut compacted = Compacted { now: plan.now, gc: version.table.gc.clone(), ..Compacted::default() };
        let (mut failed, mut expired) = (None, BTreeSet::new());
        for (merge, done) in merges.iter().zip(done) {
            match done {
                Ok(done) => {
                    if done.expired {
                        expired.extend(std::iter::once(&merge.window).chain(&merge.joins));
                    }
                    compacted.replacements.push(merge.replacement(done.ssts));
                }
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        let old = || merges.iter().flat_map(|merge| &merge.ssts);
        let new = || compacted.replacements.iter().flat_map(|replacement| &replacement.ssts);
        let sum = |of: fn(&Sst) -> u64| (old().map(of).sum::<u64>(), new().map(of).sum::<u64>());
        let ((bytes_before, bytes_after), (cells_before, cells_after)) = (sum(|sst| sst.bytes), sum(|sst| sst.cells));
        let (before, after) = ((old().count(), bytes_before), (new().count(), bytes_after));
        let mut edit = VersionEdit { base: version.number, ..VersionEdit::default() };
        if !plan.is_empty() {
            edit.days = changed_days(snapshot, &expired);
            edit.compacted = Some(compacted);
        }
        match failed {
            None => Ok(Self { edit, before, after, removed: cells_before.saturating_sub(cells_after) }),
            Some(error) => {
                snapshot.table().discard(&edit);
                Err(error)
            }
        }
    }
}

/// The days whose answers change, by window. Merging and removing hidden cells change none; a later logical time
/// changes the days of windows in which more cells expired. Where rows span windows, that may expire cells in other
/// windows, so all days count.
fn changed_days(snapshot: &Snapshot, expired: &BTreeSet<i64>) -> BTreeMap<i64, BTreeSet<i32>> {
    let all = !expired.is_empty() && !snapshot.layout().rows_lie_in_one_window();
    let windows = snapshot.version().windows.iter().filter(|window| all || expired.contains(&window.start));
    windows.map(|window| (window.start, window.days.keys().copied().collect())).collect()
}

/// Context of all merges of a plan.
struct CompactionRun<'a> {
    snapshot: &'a Snapshot,
    filter: &'a CompactionFilter,
    ids: &'a dyn Ids,
    /// Returns an error to cancel.
    go_on: &'a (dyn Fn() -> Result<()> + Sync),
}

/// The result of each of `merges`.
fn answered(
    runner: &dyn RunMerges,
    plan: &CompactionPlan,
    merges: &[MergePlan],
) -> Vec<std::result::Result<Merged, MergeFailed>> {
    if merges.is_empty() {
        return Vec::new();
    }
    let mut done = runner.run(plan, merges);
    for unit in done.len()..merges.len() {
        done.push(Err(StoreError::Unanswered { unit }.into()));
    }
    done.truncate(merges.len());
    done
}

/// A part of a window may exceed a limit that the whole keeps to: later cells may lower a sum, or rules may
/// remove versions only where all are seen. Replaces such partial merges by a merge of the whole window, and
/// discards the window's outputs. Returns the indexes of the merges to run.
fn widen(
    snapshot: &Snapshot,
    merges: &mut Vec<MergePlan>,
    done: &mut Vec<std::result::Result<Merged, MergeFailed>>,
) -> Vec<usize> {
    let over = |done: &std::result::Result<Merged, MergeFailed>| matches!(done, Err(failed) if failed.exceeds);
    let failed = merges.iter().zip(&*done).filter(|(_, done)| over(done)).map(|(merge, _)| merge.window);
    let windows: BTreeSet<i64> = failed.collect();
    let mut places = Vec::new();
    for window in windows {
        let Some(whole) = MergePlan::of_window(snapshot.version(), window) else { continue };
        let parts: Vec<usize> = (0..merges.len()).filter(|at| merges[*at].window == window).collect();
        if parts.iter().any(|at| !merges[*at].joins.is_empty() || merges[*at].ssts.len() >= whole.ssts.len()) {
            continue;
        }
        for at in parts.iter().rev() {
            let merge = merges.remove(*at);
            if let Ok(written) = done.remove(*at) {
                discard(snapshot, &merge, written.ssts);
            }
        }
        let at = merges.partition_point(|merge| merge.window < window);
        merges.insert(at, whole);
        done.insert(at, Ok(Merged { ssts: Vec::new(), expired: false }));
        places.push(at);
    }
    places
}

/// Removes the output of a merge that is not committed.
pub(crate) fn discard(snapshot: &Snapshot, merge: &MergePlan, ssts: Vec<Sst>) {
    let replacements = vec![merge.replacement(ssts)];
    let compacted = Some(Compacted { replacements, ..Compacted::default() });
    snapshot.table().discard(&VersionEdit { compacted, ..VersionEdit::default() });
}

impl CompactionRun<'_> {
    /// Runs small merges in parallel, and large ones by parallel subcompactions.
    fn rewrite_all(&self, merges: &[MergePlan]) -> Vec<Result<Merged>> {
        let (large, small): (Vec<usize>, Vec<usize>) =
            (0..merges.len()).partition(|at| merges[*at].bytes() >= 2 * MIN_SUBCOMPACTION);
        let small = small.into_par_iter().map(|at| (at, self.rewrite(&merges[at])));
        let mut done: BTreeMap<usize, Result<Merged>> = small.collect();
        done.extend(large.into_iter().map(|at| (at, self.rewrite(&merges[at]))));
        done.into_values().collect()
    }

    fn rewrite(&self, merge: &MergePlan) -> Result<Merged> {
        let table = self.snapshot.table();
        let filter = Some(self.filter).filter(|_| merge.collects_garbage);
        let inputs = MergeInputs::new(self.snapshot, merge, filter)?;
        let cores = rayon::current_num_threads() as u64;
        let limit = (merge.bytes() / (cores * SUBCOMPACTIONS_A_CORE)).clamp(MIN_SUBCOMPACTION, MAX_SUBCOMPACTION);
        let pieces = subcompactions(inputs.parts(), limit);
        let gc_stamp = filter.and_then(CompactionFilter::stamp);
        let output = Mutex::new(MergeOutput::new(table.ssts(), self.snapshot.schema(), self.ids, gc_stamp));
        let state = MergeProgress::default();
        let work = || {
            while !state.failed.load(Ordering::Relaxed) {
                let at = state.next.fetch_add(1, Ordering::Relaxed);
                let Some(piece) = pieces.get(at) else { return };
                let made = (self.go_on)().and_then(|()| match piece {
                    Subcompaction::TrivialMove { sst } => {
                        Ok((SubcompactionOutput::Moved(Box::new(inputs.sst(*sst))), false))
                    }
                    Subcompaction::Copy { sst, stripes } => {
                        inputs.copy(*sst, stripes.clone()).map(|made| (made, false))
                    }
                    Subcompaction::Merge { keys } => inputs.merge(keys),
                });
                let taken = made.and_then(|(made, expired)| {
                    state.expired.fetch_or(expired, Ordering::Relaxed);
                    output.lock().unwrap_or_else(PoisonError::into_inner).take(at, made)
                });
                if let Err(error) = taken {
                    state.failed.store(true, Ordering::Relaxed);
                    state.error.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
                }
            }
        };
        if pieces.len() == 1 {
            work();
        } else {
            // Subcompactions start in key order, so that few outputs wait for an earlier one.
            rayon::scope(|scope| (0..cores).for_each(|_| scope.spawn(|_| work())));
        }
        let mut output = output.into_inner().unwrap_or_else(PoisonError::into_inner);
        let error = state.error.into_inner().unwrap_or_else(PoisonError::into_inner);
        let done = error.map_or(Ok(()), Err).and_then(|()| output.end());
        let level = merge.ssts.iter().map(|sst| sst.level).max().unwrap_or(0).saturating_add(1);
        let windows = || MultiWindow { windows: merge.joins.clone(), without: Vec::new() };
        let multi_window = (!merge.joins.is_empty()).then(windows);
        let place = |sst: Sst| Sst { seqno: merge.seqno, level, multi_window: multi_window.clone(), ..sst };
        let ssts = output.into_ssts().into_iter().map(place).collect();
        match done {
            Ok(()) => Ok(Merged { ssts, expired: state.expired.into_inner() }),
            Err(error) => {
                discard(self.snapshot, merge, ssts);
                Err(error)
            }
        }
    }
}

/// Progress of the subcompactions of a merge.
#[derive(Default)]
struct MergeProgress {
    next: AtomicUsize,
    expired: AtomicBool,
    failed: AtomicBool,
    error: Mutex<Option<StoreError>>,
}
