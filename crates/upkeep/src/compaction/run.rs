//! Runs a compaction plan: copies, merges and writes SSTs.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use tidetable_store::read::Snapshot;
use tidetable_store::version::{Compacted, MultiWindow, Sst, VersionEdit};
use tidetable_store::{Ids, Result, StoreError};

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
    /// The error that ended it.
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
        let widened = widen(snapshot, &mut merges, &mut done);
        let whole: Vec<MergePlan> = widened.iter().map(|index| merges[*index].clone()).collect();
        for (index, wide) in widened.into_iter().zip(answered(runner, plan, &whole)) {
            done[index] = wide;
        }

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
                Err(failure) => failed = failed.or(Some(failure.error)),
            }
        }

        let before = SstTotals::of(merges.iter().flat_map(|merge| &merge.ssts));
        let after = SstTotals::of(compacted.replacements.iter().flat_map(|replacement| &replacement.ssts));
        let mut edit = VersionEdit { base: version.number, ..VersionEdit::default() };
        if !plan.is_empty() {
            edit.days = changed_days(snapshot, &expired);
            edit.compacted = Some(compacted);
        }

        if let Some(error) = failed {
            snapshot.table().discard(&edit);
            return Err(error);
        }
        Ok(Self {
            edit,
            before: (before.ssts, before.bytes),
            after: (after.ssts, after.bytes),
            removed: before.cells.saturating_sub(after.cells),
        })
    }
}

/// What some SSTs hold together.
#[derive(Debug, Default)]
struct SstTotals {
    ssts: usize,
    bytes: u64,
    cells: u64,
}

impl SstTotals {
    fn of<'a>(ssts: impl Iterator<Item = &'a Sst>) -> Self {
        let mut totals = Self::default();
        for sst in ssts {
            totals.ssts += 1;
            totals.bytes += sst.bytes;
            totals.cells += sst.cells;
        }

        totals
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
    let exceeding = merges.iter().zip(&*done).filter(|(_, done)| matches!(done, Err(failed) if failed.exceeds));
    let windows: BTreeSet<i64> = exceeding.map(|(merge, _)| merge.window).collect();
    let mut widened = Vec::new();
    for window in windows {
        let Some(whole) = MergePlan::of_window(snapshot.version(), window) else { continue };
        let parts: Vec<usize> = (0..merges.len()).filter(|index| merges[*index].window == window).collect();
        if parts.iter().any(|index| !merges[*index].joins.is_empty() || merges[*index].ssts.len() >= whole.ssts.len()) {
            continue;
        }

        for index in parts.iter().rev() {
            let merge = merges.remove(*index);
            if let Ok(written) = done.remove(*index) {
                discard(snapshot, &merge, written.ssts);
            }
        }

        let index = merges.partition_point(|merge| merge.window < window);
        merges.insert(index, whole);
        done.insert(index, Ok(Merged { ssts: Vec::new(), expired: false }));
        widened.push(index);
    }

    widened
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

    /// Copies and merges the SSTs of one merge into new ones.
    fn rewrite(&self, merge: &MergePlan) -> Result<Merged> {
        let table = self.snapshot.table();
        let filter = Some(self.filter).filter(|_| merge.collects_garbage);
        let inputs = MergeInputs::new(self.snapshot, merge, filter)?;
        let cores = rayon::current_num_threads() as u64;
        let limit = (merge.bytes() / (cores * SUBCOMPACTIONS_A_CORE)).clamp(MIN_SUBCOMPACTION, MAX_SUBCOMPACTION);
        let gc_stamp = filter.and_then(CompactionFilter::stamp);
        let work = MergeWork {
            pieces: subcompactions(inputs.parts(), limit),
            inputs: &inputs,
            go_on: self.go_on,
            output: Mutex::new(MergeOutput::new(table.ssts(), self.snapshot.schema(), self.ids, gc_stamp)),
            next: AtomicUsize::new(0),
            expired: AtomicBool::new(false),
            failed: AtomicBool::new(false),
            error: Mutex::default(),
        };

        if work.pieces.len() == 1 {
            work.run();
        } else {
            // Subcompactions start in key order, so that few outputs wait for an earlier one.
            rayon::scope(|scope| (0..cores).for_each(|_| scope.spawn(|_| work.run())));
        }

        let mut output = work.output.into_inner().unwrap_or_else(PoisonError::into_inner);
        let error = work.error.into_inner().unwrap_or_else(PoisonError::into_inner);
        let done = error.map_or(Ok(()), Err).and_then(|()| output.end());
        let ssts = placed(output.into_ssts(), merge);
        match done {
            Ok(()) => Ok(Merged { ssts, expired: work.expired.into_inner() }),
            Err(error) => {
                discard(self.snapshot, merge, ssts);
                Err(error)
            }
        }
    }
}

/// The output SSTs of a merge with their place in the window: sequence number, level and joined windows.
fn placed(ssts: Vec<Sst>, merge: &MergePlan) -> Vec<Sst> {
    let level = merge.ssts.iter().map(|sst| sst.level).max().unwrap_or(0).saturating_add(1);
    let multi_window = match merge.joins.is_empty() {
        true => None,
        false => Some(MultiWindow { windows: merge.joins.clone(), without: Vec::new() }),
    };

    let ssts = ssts.into_iter();
    ssts.map(|sst| Sst { seqno: merge.seqno, level, multi_window: multi_window.clone(), ..sst }).collect()
}

/// The subcompactions of a merge, which several threads take one after the other.
struct MergeWork<'a> {
    inputs: &'a MergeInputs<'a>,
    pieces: Vec<Subcompaction>,
    /// Returns an error to cancel.
    go_on: &'a (dyn Fn() -> Result<()> + Sync),
    output: Mutex<MergeOutput<'a>>,
    /// Index of the next piece.
    next: AtomicUsize,
    /// Whether cells expired since the version.
    expired: AtomicBool,
    /// Whether a piece failed, so that no other begins.
    failed: AtomicBool,
    /// The first error of a piece.
    error: Mutex<Option<StoreError>>,
}

impl MergeWork<'_> {
    /// Runs pieces until none is left, or one has failed.
    fn run(&self) {
        while !self.failed.load(Ordering::Relaxed) {
            let index = self.next.fetch_add(1, Ordering::Relaxed);
            let Some(piece) = self.pieces.get(index) else { return };
            if let Err(error) = self.run_piece(index, piece) {
                self.failed.store(true, Ordering::Relaxed);
                self.error.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
            }
        }
    }

    fn run_piece(&self, index: usize, piece: &Subcompaction) -> Result<()> {
        (self.go_on)()?;
        let made = match piece {
            Subcompaction::TrivialMove { sst } => SubcompactionOutput::Moved(Box::new(self.inputs.sst(*sst))),
            Subcompaction::Copy { sst, stripes } => self.inputs.copy(*sst, stripes.clone())?,
            Subcompaction::Merge { keys } => {
                let (made, expired) = self.inputs.merge(keys)?;
                self.expired.fetch_or(expired, Ordering::Relaxed);
                made
            }
        };

        self.output.lock().unwrap_or_else(PoisonError::into_inner).take(index, made)
    }
}
