//! Doing what a plan says: copy, merge, hide for good, write.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use rayon::prelude::*;

use crate::compaction::filter::CompactionFilter;
use crate::compaction::input::MergeInputs;
use crate::compaction::plan::{CompactionPlan, MergePlan};
use crate::compaction::subcompaction::{Subcompaction, subcompactions};
use crate::compaction::output::{SubcompactionOutput, MergeOutput};
use crate::error::{Result, StoreError};
use crate::ids::Ids;
use crate::read::snapshot::Snapshot;
use crate::version::{Compacted, MultiWindow, Replacement, Sst, VersionEdit};

/// Bytes of a piece: as much as keeps all cores busy, but no less, since what a cut goes through is read twice.
const LEAST_SUBCOMPACTION: u64 = 2 << 20;
/// And no more, since a piece is held until those before it are written.
const MOST_SUBCOMPACTION: u64 = 32 << 20;
/// Pieces for each core, so that none waits long for the last.
const SUBCOMPACTIONS_A_CORE: u64 = 6;

/// A compaction that was done but for its commit.
#[derive(Debug)]
pub struct Compaction {
    /// To be committed at the plan's time.
    pub edit: VersionEdit,
    /// SSTs before, and the bytes of them.
    pub before: (usize, u64),
    /// SSTs after, and the bytes of them.
    pub after: (usize, u64),
    /// Cells that were taken out: hidden by drops or rules, or written over.
    pub removed: u64,
}

/// What became of the SSTs of a merge.
struct Rewritten {
    ssts: Vec<Sst>,
    /// Whether a read at the plan's time shows less than one at the version's.
    expired: bool,
}

impl Compaction {
    /// Does what `plan` says, on all cores.
    ///
    /// # Errors
    /// Those of reading and writing. What was written is removed then.
    pub fn run(plan: &CompactionPlan, ids: &dyn Ids) -> Result<Self> {
        Self::run_while(plan, ids, &|| Ok(()))
    }

    /// The same, as long as `go_on`, which is asked again and again, answers so.
    ///
    /// # Errors
    /// That of `go_on`, or as [`Self::run`].
    pub fn run_while(plan: &CompactionPlan, ids: &dyn Ids, go_on: &(dyn Fn() -> Result<()> + Sync)) -> Result<Self> {
        let snapshot = &plan.snapshot;
        let version = snapshot.version();
        let judge = CompactionFilter::new(snapshot, plan.now)?;
        let run = CompactionRun { snapshot, judge: &judge, ids, go_on };
        let mut merges = plan.merges.clone();
        let mut done = run.rewrite_all(&merges);
        for at in run.widen(&mut merges, &mut done) {
            done[at] = run.rewrite(&merges[at]);
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

/// The days whose answer changes, by window. A merge changes none, nor does taking out what was hidden;
/// only a later logical time does, by hiding more: that is the days of windows in which it does. Where rows
/// span windows, another window may hide more because of it, so all days count.
fn changed_days(snapshot: &Snapshot, expired: &BTreeSet<i64>) -> BTreeMap<i64, BTreeSet<i32>> {
    let all = !expired.is_empty() && !snapshot.layout().rows_keep_to_windows();
    let windows = snapshot.version().windows.iter().filter(|window| all || expired.contains(&window.start));
    windows.map(|window| (window.start, window.days.keys().copied().collect())).collect()
}

fn bytes(ssts: &[Sst]) -> u64 {
    ssts.iter().map(|sst| sst.bytes).sum()
}

/// What is done to every merge of a plan.
struct CompactionRun<'a> {
    snapshot: &'a Snapshot,
    judge: &'a CompactionFilter,
    ids: &'a dyn Ids,
    /// Says when to stop.
    go_on: &'a (dyn Fn() -> Result<()> + Sync),
}

impl CompactionRun<'_> {
    /// Small merges side by side, and the pieces of a large one.
    fn rewrite_all(&self, merges: &[MergePlan]) -> Vec<Result<Rewritten>> {
        let (large, small): (Vec<usize>, Vec<usize>) =
            (0..merges.len()).partition(|at| bytes(&merges[*at].ssts) >= 2 * LEAST_SUBCOMPACTION);
        let small = small.into_par_iter().map(|at| (at, self.rewrite(&merges[at])));
        let mut done: BTreeMap<usize, Result<Rewritten>> = small.collect();
        done.extend(large.into_iter().map(|at| (at, self.rewrite(&merges[at]))));
        done.into_values().collect()
    }

    /// A part of a window may be over a limit that the whole of it keeps to: a sum that later cells lower, or versions of a
    /// cell that rules take out only where all of them are seen. Puts a merge of the whole window in the place of such
    /// parts, and drops what was written for the window: the places of the merges to be done.
    fn widen(&self, merges: &mut Vec<MergePlan>, done: &mut Vec<Result<Rewritten>>) -> Vec<usize> {
        let over = |done: &Result<Rewritten>| {
            matches!(done, Err(StoreError::SumOverflow { .. } | StoreError::RowTooLarge { .. }))
        };
        let failed = merges.iter().zip(&*done).filter(|(_, done)| over(done)).map(|(merge, _)| merge.window);
        let windows: BTreeSet<i64> = failed.collect();
        let mut places = Vec::new();
        for window in windows {
            let Some(whole) = MergePlan::of_window(self.snapshot.version(), window) else { continue };
            let parts: Vec<usize> = (0..merges.len()).filter(|at| merges[*at].window == window).collect();
            if parts.iter().any(|at| !merges[*at].joins.is_empty() || merges[*at].ssts.len() >= whole.ssts.len()) {
                continue;
            }
            for at in parts.iter().rev() {
                let merge = merges.remove(*at);
                if let Ok(written) = done.remove(*at) {
                    self.discard(&merge, written.ssts);
                }
            }
            let at = merges.partition_point(|merge| merge.window < window);
            merges.insert(at, whole);
            done.insert(at, Ok(Rewritten { ssts: Vec::new(), expired: false }));
            places.push(at);
        }
        places
    }

    /// Removes what was written for a merge that is not committed.
    fn discard(&self, merge: &MergePlan, ssts: Vec<Sst>) {
        let replacements = vec![merge.replacement(ssts)];
        let compacted = Some(Compacted { replacements, ..Compacted::default() });
        self.snapshot.table().discard(&VersionEdit { compacted, ..VersionEdit::default() });
    }

    fn rewrite(&self, merge: &MergePlan) -> Result<Rewritten> {
        let table = self.snapshot.table();
        let judge = Some(self.judge).filter(|_| merge.collects);
        let inputs = MergeInputs::new(self.snapshot, merge, judge)?;
        let cores = rayon::current_num_threads() as u64;
        let limit = (bytes(&merge.ssts) / (cores * SUBCOMPACTIONS_A_CORE)).clamp(LEAST_SUBCOMPACTION, MOST_SUBCOMPACTION);
        let pieces = subcompactions(inputs.parts(), limit);
        let collected = judge.and_then(CompactionFilter::stamp);
        let output = Mutex::new(MergeOutput::new(table.ssts(), self.snapshot.schema(), self.ids, collected));
        let state = MergeProgress::default();
        let work = || {
            while !state.failed.load(Ordering::Relaxed) {
                let at = state.next.fetch_add(1, Ordering::Relaxed);
                let Some(piece) = pieces.get(at) else { return };
                let made = (self.go_on)().and_then(|()| match piece {
                    Subcompaction::TrivialMove { sst } => Ok((SubcompactionOutput::Moved(Box::new(inputs.sst(*sst))), false)),
                    Subcompaction::Copy { sst, stripes } => inputs.copy(*sst, stripes.clone()).map(|made| (made, false)),
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
            // Pieces are begun in their order, so that few of them wait for one before.
            rayon::scope(|scope| (0..cores).for_each(|_| scope.spawn(|_| work())));
        }
        let mut output = output.into_inner().unwrap_or_else(PoisonError::into_inner);
        let error = state.error.into_inner().unwrap_or_else(PoisonError::into_inner);
        let done = error.map_or(Ok(()), Err).and_then(|()| output.end());
        let level = merge.ssts.iter().map(|sst| sst.level).max().unwrap_or(0).saturating_add(1);
        let windows = || MultiWindow { windows: merge.joins.clone(), without: Vec::new() };
        let joined = (!merge.joins.is_empty()).then(windows);
        let place = |sst: Sst| Sst { order: merge.order, level, joined: joined.clone(), ..sst };
        let ssts = output.into_ssts().into_iter().map(place).collect();
        match done {
            Ok(()) => Ok(Rewritten { ssts, expired: state.expired.into_inner() }),
            Err(error) => {
                self.discard(merge, ssts);
                Err(error)
            }
        }
    }
}

/// How far the pieces of a merge are.
#[derive(Default)]
struct MergeProgress {
    next: AtomicUsize,
    expired: AtomicBool,
    failed: AtomicBool,
    error: Mutex<Option<StoreError>>,
}
