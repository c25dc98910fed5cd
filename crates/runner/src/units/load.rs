//! Units of loads: some inputs of a source, or some windows of the tables that a derived table reads.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Mutex, PoisonError};

use tidetable_blobs::Blobs;
use tidetable_ingest::{LoadUnit, LoadUnitDone, Progress, RejectedRow, RunLoadUnits};
use tidetable_store::{Result as StoreResult, StoreError};

use crate::fault::error::RunError;
use crate::fault::stop::Stop;
use crate::units::carrier::UnitCarrier;
use crate::units::columns::{DifferingFiles, OtherColumns};
use crate::units::rejects::CarriedRejects;
use crate::units::tally::Tally;
use crate::units::wire::{Answer, Done, Unit, Work};
use crate::units::work::{LoadAnswer, LoadFrom, LoadWork};

/// Least bytes of inputs, as stored, of a unit of files: a unit has costs of its own.
const LEAST_BYTES: u64 = 8 << 20;
/// Most bytes of inputs, as stored, of a unit of files: one that is lost is run again.
const MOST_BYTES: u64 = 64 << 20;
/// Units of files of a load of 128 MiB to 1 GiB, about: executors wait less for the last of many.
const FILE_UNITS: u64 = 16;
/// Units of a derived table, at most.
const QUERY_UNITS: u64 = 64;

/// Has the units of a load run by other processes.
pub(crate) struct CarriedLoad<'a> {
    pub(crate) carrier: &'a dyn UnitCarrier,
    /// Makes a unit of the run.
    pub(crate) unit: &'a (dyn Fn(Work) -> Unit + Sync),
    pub(crate) stop: &'a Stop,
    pub(crate) blobs: &'a dyn Blobs,
    pub(crate) tally: &'a Tally,
    pub(crate) others: &'a OtherColumns,
    pub(crate) from: LoadFrom,
    pub(crate) tables: Vec<String>,
    pub(crate) on_progress: &'a (dyn Fn(Progress) + Sync),
    pub(crate) on_reject: &'a (dyn Fn(&RejectedRow) + Sync),
    pub(crate) note: &'a (dyn Fn(String) + Sync),
}

/// What came back so far.
struct Taken<'t> {
    take: &'t mut (dyn FnMut(usize, LoadUnitDone) + Send),
    /// What waits for the end of the load, by index of the unit.
    rest: BTreeMap<usize, UnitRest>,
    failed: Option<StoreError>,
}

/// What a unit of a load returned beside its rows.
struct UnitRest {
    rejected: CarriedRejects,
    others: Vec<DifferingFiles>,
}

impl RunLoadUnits for CarriedLoad<'_> {
    fn unit_bytes(&self, total: u64) -> Option<u64> {
        Some(match &self.from {
            LoadFrom::Source(_) => (total / FILE_UNITS).clamp(LEAST_BYTES, MOST_BYTES),
            // Windows have no size.
            LoadFrom::Query { .. } => total.div_ceil(QUERY_UNITS).max(1),
        })
    }

    fn run(&self, units: &[LoadUnit], take: &mut (dyn FnMut(usize, LoadUnitDone) + Send)) -> StoreResult<()> {
        let sent: Vec<Unit> = units.iter().map(|unit| self.unit(unit)).collect();
        let counted = self.tally.of(&sent);

        let taken = Mutex::new(Taken { take, rest: BTreeMap::new(), failed: None });
        let carried = self.carrier.carry(
            &sent,
            self.stop,
            &|at, answer| {
                counted.add(at, &answer);
                self.take(&mut taken.lock().unwrap_or_else(PoisonError::into_inner), units, at, answer)
            },
            self.note,
        );

        let Taken { rest, failed, .. } = taken.into_inner().unwrap_or_else(PoisonError::into_inner);
        if let Some(error) = failed {
            return Err(error);
        }
        carried.map_err(|error| StoreError::Runner(Box::new(error)))?;

        for UnitRest { rejected, others } in rest.into_values() {
            rejected.take(self.blobs, &|row: &RejectedRow| (self.on_reject)(row))?;
            self.others.merge(others);
        }
        Ok(())
    }
}

impl CarriedLoad<'_> {
    fn unit(&self, unit: &LoadUnit) -> Unit {
        let work = LoadWork { from: self.from.clone(), tables: self.tables.clone(), unit: unit.clone() };
        let work = match work.from {
            // Only the times of its own inputs.
            LoadFrom::Query { versions, mut times } => {
                let paths: HashSet<&str> = unit.paths().collect();
                times.retain(|path, _| paths.contains(path.as_str()));
                LoadWork { from: LoadFrom::Query { versions, times }, ..work }
            }
            LoadFrom::Source(_) => work,
        };
        (self.unit)(Work::Load(work))
    }

    /// Takes an answer; returns whether to go on. A failure of a unit that is done changes nothing.
    fn take(&self, taken: &mut Taken<'_>, units: &[LoadUnit], at: usize, answer: Answer) -> bool {
        let is_first = !taken.rest.contains_key(&at);

        match answer.done {
            Ok(Done::Load(LoadAnswer { done, rejected, others })) => {
                if is_first {
                    self.report(units.get(at), &done);
                    taken.rest.insert(at, UnitRest { rejected, others });
                }
                (taken.take)(at, done);
                true
            }
            _ if !is_first => true,
            Ok(_) => {
                let source = RunError::OtherAnswer { executor: answer.executor };
                taken.failed.get_or_insert(StoreError::Runner(Box::new(source)));
                false
            }
            Err(failure) => {
                taken.failed.get_or_insert(StoreError::Runner(Box::new(failure)));
                false
            }
        }
    }

    fn report(&self, unit: Option<&LoadUnit>, done: &LoadUnitDone) {
        let bytes = unit.map_or(0, LoadUnit::bytes);
        let rows = done.stats().map(|stats| stats.rows_accepted + stats.rows_filtered).max().unwrap_or_default();
        let written: u64 = done.stats().map(|stats| stats.rows_accepted).sum();

        (self.on_progress)(Progress::Read { bytes, rows });
        (self.on_progress)(Progress::Encoded { rows: written });
        (self.on_progress)(Progress::Wrote { rows: written });
    }
}
