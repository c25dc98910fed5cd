//! Units of compactions: some merges of a table.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use tidetable_store::{Ids, Snapshot, Store, StoreError};
use tidetable_upkeep::compaction::{CompactionPlan, MergeFailed, MergePlan, Merged, Merger, RunMerges};

use crate::fault::error::RunError;
use crate::fault::stop::Stop;
use crate::fault::unit_failure::UnitFailure;
use crate::units::carrier::UnitCarrier;
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
    let fails = |done: &Result<Merged, MergeFailed>| matches!(done, Err(failed) if !failed.exceeds);
    if done.iter().any(fails) || done.len() < plan.merges.len() {
        let mut error = StoreError::Unanswered { unit: done.len() };
        for (merge, done) in plan.merges.iter().zip(done) {
            match done {
                Ok(merged) => merged.discard(plan.snapshot(), merge),
                Err(failed) if !failed.exceeds => error = failed.error,
                Err(_) => {}
            }
        }
        return Err(error.into());
    }
    Ok(done.into_iter().map(|done| done.map_err(|failed| (failed.error.to_string(), failed.exceeds))).collect())
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
        let snapshot = plan.snapshot();
        let version = (snapshot.version().number, snapshot.version().commit.clone());
        let groups = groups(merges);
        let unit = |group: &&[MergePlan]| {
            let (table, merges) = (snapshot.table().name().to_owned(), group.to_vec());
            let work = Work::Compact(CompactWork { table, version: version.clone(), now: plan.now, merges });
            Unit { root: self.root.to_owned(), run: String::new(), now: plan.now, job: None, work }
        };
        let units: Vec<Unit> = groups.iter().map(unit).collect();
        let answers: Mutex<BTreeMap<usize, Result<CompactAnswer, UnitFailure>>> = Mutex::default();
        let counted = self.tally.of(&units);
        let take = |at: usize, answer: Answer| {
            counted.add(at, &answer);
            let done = match answer.done {
                Ok(Done::Compact(done)) => Ok(done),
                Ok(_) => Err(UnitFailure {
                    message: "another unit was answered".to_owned(),
                    executor: answer.executor,
                    transient: false,
                    unfit: false,
                }),
                Err(failure) => Err(failure),
            };
            let mut answers = answers.lock().unwrap_or_else(PoisonError::into_inner);
            if answers.contains_key(&at) {
                discard(snapshot, groups.get(at).copied().unwrap_or_default(), done);
                return true;
            }
            let goes_on = done.is_ok();
            answers.insert(at, done);
            goes_on
        };
        let carried = self.carrier.carry(&units, self.stop, &take, self.note);
        let mut answers = answers.into_inner().unwrap_or_else(PoisonError::into_inner);
        let elsewhere = |error: Box<dyn std::error::Error + Send + Sync>| MergeFailed::from(StoreError::Runner(error));
        let mut done = Vec::with_capacity(merges.len());
        for (at, group) in groups.iter().enumerate() {
            match (answers.remove(&at), &carried) {
                (Some(Ok(answer)), _) if answer.len() == group.len() => {
                    let failed =
                        |(message, exceeds): (String, bool)| MergeFailed { exceeds, ..elsewhere(message.into()) };
                    done.extend(answer.into_iter().map(|done| done.map_err(failed)));
                }
                (Some(Err(failure)), _) => {
                    done.extend(group.iter().map(|_| Err(elsewhere(Box::new(failure.clone())))));
                }
                (_, Err(error)) => done.extend(group.iter().map(|_| Err(elsewhere(Box::new(error.clone()))))),
                _ => done.extend(group.iter().map(|_| Err(MergeFailed::from(StoreError::Unanswered { unit: at })))),
            }
        }
        done
    }
}

/// Groups merges into units of [`UNIT_BYTES`] or a little more.
fn groups(merges: &[MergePlan]) -> Vec<&[MergePlan]> {
    let mut bytes = 0;
    let same_unit = |one: &MergePlan, _: &MergePlan| {
        bytes += one.bytes();
        let goes_on = bytes < UNIT_BYTES;
        bytes = if goes_on { bytes } else { 0 };
        goes_on
    };
    merges.chunk_by(same_unit).collect()
}

/// Removes what a second answer wrote.
fn discard(snapshot: &Snapshot, merges: &[MergePlan], done: Result<CompactAnswer, UnitFailure>) {
    for (merge, merged) in merges.iter().zip(done.unwrap_or_default()) {
        if let Ok(merged) = merged {
            merged.discard(snapshot, merge);
        }
    }
}
