//! Who did how much of a run.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

use tidetable_record::ExecutorRecord;

use crate::units::wire::{Answer, Done, Unit, Work};

/// The work of other processes so far.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    executors: Mutex<BTreeMap<String, ExecutorRecord>>,
}

/// Counts the answers to some units, each unit once: one that was sent again may be answered twice.
#[derive(Debug)]
pub(crate) struct AnswerTally<'a> {
    tally: &'a Tally,
    units: &'a [Unit],
    counted: Mutex<BTreeSet<usize>>,
}

impl Tally {
    /// Counts the answers to `units`.
    pub(crate) fn of<'a>(&'a self, units: &'a [Unit]) -> AnswerTally<'a> {
        AnswerTally { tally: self, units, counted: Mutex::default() }
    }

    /// Counts the answer to a unit.
    fn add(&self, unit: &Unit, answer: &Answer) {
        let mut executors = self.executors.lock().unwrap_or_else(PoisonError::into_inner);
        let record = executors
            .entry(answer.executor.clone())
            .or_insert_with(|| ExecutorRecord { executor: answer.executor.clone(), ..ExecutorRecord::default() });

        *record.units.entry(unit.kind().to_owned()).or_default() += 1;
        record.seconds += answer.seconds;
        if let Work::Load(work) = &unit.work {
            record.bytes += work.unit.bytes();
        }
        match &answer.done {
            Ok(Done::Load(load)) => record.rows += load.done.stats().map(|stats| stats.rows_read).max().unwrap_or(0),
            Ok(Done::Publish(part)) => record.rows += part.rows,
            _ => {}
        }
    }

    /// The records, by name.
    pub(crate) fn records(&self) -> Vec<ExecutorRecord> {
        self.executors.lock().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }
}

impl AnswerTally<'_> {
    /// Counts an answer to unit `at`, unless one was counted.
    pub(crate) fn add(&self, at: usize, answer: &Answer) {
        let Some(unit) = self.units.get(at) else { return };
        if self.counted.lock().unwrap_or_else(PoisonError::into_inner).insert(at) {
            self.tally.add(unit, answer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_that_two_executors_answer_counts_once() {
        let tally = Tally::default();
        let units = [Unit::waiting("/root", 1), Unit::waiting("/root", 1)];
        let answer = |executor: &str| Answer { executor: executor.to_owned(), seconds: 1.5, done: Ok(Done::Wait) };
        let counted = tally.of(&units);
        for (at, executor) in [(0, "one"), (0, "two"), (1, "one"), (1, "one"), (7, "one")] {
            counted.add(at, &answer(executor));
        }
        // The units of another call are others.
        tally.of(&units).add(0, &answer("two"));

        let found: Vec<_> = tally.records().into_iter().map(|r| (r.executor, r.units["wait"], r.seconds)).collect();
        assert_eq!(found, [("one".to_owned(), 2, 3.0), ("two".to_owned(), 1, 1.5)]);
    }
}
