//! Who did how much of a run.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use tidetable_record::ExecutorRecord;

use crate::units::wire::{Answer, Done, Unit, Work};

/// The work of other processes so far.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    executors: Mutex<BTreeMap<String, ExecutorRecord>>,
}

impl Tally {
    /// Counts the answer of unit `at`.
    pub(crate) fn add(&self, units: &[Unit], at: usize, answer: &Answer) {
        let mut executors = self.executors.lock().unwrap_or_else(PoisonError::into_inner);
        let named = || ExecutorRecord { executor: answer.executor.clone(), ..ExecutorRecord::default() };
        let record = executors.entry(answer.executor.clone()).or_insert_with(named);
        let Some(unit) = units.get(at) else { return };
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
