//! Units of compactions: some merges of a table.

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::{Arc, Mutex, PoisonError};

use tidetable_store::{Ids, Snapshot, Store, StoreError};
use tidetable_upkeep::compaction::{CompactionPlan, MergeFailed, MergePlan, Merged, Merger, RunMerges};

use crate::fault::error::RunError;
use crate::fault::stop::Stop;
use crate::fault::unit_failure::{CarryError, UnitFailure};
use crate::units::carrier::{Carried, UnitCarrier};
use crate::units::tally::Tally;
use crate::units::wire::{Answer, Done, Unit, Work};
use crate::units::work::{CompactAnswer, CompactWork};

/// Bytes of SSTs from which a unit of merges is full.
const UNIT_BYTES: u64 = 64 << 20;

/// Runs the merges of a unit. The output of others is removed if one fails for another reason than a limit.
pub(crate) fn run(store: &Store, work: &CompactWork, ids: &dyn Ids, stop: &Stop) -> Result<CompactAnswer, RunError> {
    let table = store.table(&work.table);
    let version = table.version(work.version.0)?;
    if version.commit != work.version.1 {
        let run = format!("version {} of {}", work.version.0, work.table);
        return Err(RunError::NotHere { run, root: store.blobs().display() });
    }

    let snapshot = Snapshot::new(table, Arc::new(version))?;
    let plan = CompactionPlan::of_merges(snapshot, work.now, work.merges.clone());
    let done = Merger { ids, go_on: &|| stop.go_on(&work.table) }.run(&plan, &plan.merges);

    let is_failed = done.iter().any(|done| matches!(done, Err(failed) if !failed.exceeds));
    if is_failed || done.len() < plan.merges.len() {
        return Err(discard_unit(&plan, done).into());
    }
    Ok(done.into_iter().map(|done| done.map_err(|failed| (failed.error.to_string(), failed.exceeds))).collect())
}

/// Removes what the merges of a unit that failed have written. Gives the error that it failed by.
fn discard_unit(plan: &CompactionPlan, done: Vec<Result<Merged, MergeFailed>>) -> StoreError {
    let mut error = StoreError::Unanswered { unit: done.len() };
    for (merge, done) in plan.merges.iter().zip(done) {
        match done {
            Ok(merged) => merged.discard(plan.snapshot(), merge),
            Err(failed) if !failed.exceeds => error = failed.error,
            Err(_) => {}
        }
    }
    error
}

/// Has merges run by other processes.
pub(crate) struct CarriedMerges<'a> {
    pub(crate) carrier: &'a dyn UnitCarrier,
    pub(crate) root: &'a str,
    pub(crate) stop: &'a Stop,
    pub(crate) tally: &'a Tally,
    pub(crate) note: &'a (dyn Fn(String) + Sync),
}

impl RunMerges for CarriedMerges<'_> {
    fn run(&self, plan: &CompactionPlan, merges: &[MergePlan]) -> Vec<Result<Merged, MergeFailed>> {
        let groups = groups(merges);
        let units: Vec<Unit> = groups.iter().map(|group| self.unit(plan, group)).collect();

        let answers: Mutex<BTreeMap<usize, Result<CompactAnswer, UnitFailure>>> = Mutex::default();
        let counted = self.tally.of(&units);
        let carried = self.carrier.carry(
            &units,
            self.stop,
            &|at, answer| {
                counted.add(at, &answer);
                let done = compact_answer(answer);

                let mut answers = answers.lock().unwrap_or_else(PoisonError::into_inner);
                if answers.contains_key(&at) {
                    discard(plan.snapshot(), groups.get(at).copied().unwrap_or_default(), done);
                    return true;
                }
                let goes_on = done.is_ok();
                answers.insert(at, done);
                goes_on
            },
            self.note,
        );

        let mut answers = answers.into_inner().unwrap_or_else(PoisonError::into_inner);
        let mut done = Vec::with_capacity(merges.len());
        for (at, group) in groups.iter().enumerate() {
            match answers.remove(&at) {
                Some(Ok(answer)) if answer.len() == group.len() => done.extend(answer.into_iter().map(merge_result)),
                Some(Err(failure)) => done.extend(group.iter().map(|_| Err(failed_elsewhere(failure.clone())))),
                _ => done.extend(group.iter().map(|_| Err(unanswered(&carried, at)))),
            }
        }
        done
    }
}

impl CarriedMerges<'_> {
    /// The unit of a group of merges.
    fn unit(&self, plan: &CompactionPlan, group: &[MergePlan]) -> Unit {
        let snapshot = plan.snapshot();
        let work = CompactWork {
            table: snapshot.table().name().to_owned(),
            version: (snapshot.version().number, snapshot.version().commit.clone()),
            now: plan.now,
            merges: group.to_vec(),
        };
        Unit::of_run(self.root, "", plan.now, None, Work::Compact(work))
    }
}

/// What a unit of merges answered; a failure if it is the answer of another kind of unit.
fn compact_answer(answer: Answer) -> Result<CompactAnswer, UnitFailure> {
    match answer.done {
        Ok(Done::Compact(done)) => Ok(done),
        Ok(_) => Err(UnitFailure {
            message: "another unit was answered".to_owned(),
            executor: answer.executor,
            transient: false,
            unfit: false,
        }),
        Err(failure) => Err(failure),
    }
}

/// The result of a merge, as the answer of its unit has it.
fn merge_result(done: Result<Merged, (String, bool)>) -> Result<Merged, MergeFailed> {
    done.map_err(|(message, exceeds)| MergeFailed { exceeds, ..failed_elsewhere(message) })
}

/// Why unit `at` has no usable answer.
fn unanswered(carried: &Result<Carried, CarryError>, at: usize) -> MergeFailed {
    match carried {
        Err(error) => failed_elsewhere(error.clone()),
        Ok(_) => MergeFailed::from(StoreError::Unanswered { unit: at }),
    }
}

/// The failure of a merge that another process was to do.
fn failed_elsewhere(error: impl Into<Box<dyn Error + Send + Sync>>) -> MergeFailed {
    MergeFailed::from(StoreError::Runner(error.into()))
}

/// Groups merges into units of [`UNIT_BYTES`] or a little more.
fn groups(merges: &[MergePlan]) -> Vec<&[MergePlan]> {
    let mut bytes = 0;
    merges
        .chunk_by(|merge, _| {
            bytes += merge.bytes();
            let goes_on = bytes < UNIT_BYTES;
            bytes = if goes_on { bytes } else { 0 };
            goes_on
        })
        .collect()
}

/// Removes what a second answer wrote.
fn discard(snapshot: &Snapshot, merges: &[MergePlan], done: Result<CompactAnswer, UnitFailure>) {
    for (merge, merged) in merges.iter().zip(done.unwrap_or_default()) {
        if let Ok(merged) = merged {
            merged.discard(snapshot, merge);
        }
    }
}
