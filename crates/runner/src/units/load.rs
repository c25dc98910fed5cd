//! Units of loads: some inputs of a source, or some windows of the tables that a derived table reads.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use tidetable_store::load::{LoadUnit, LoadUnitDone, Progress, RejectedRow, RunLoadUnits};
use tidetable_store::{Result as StoreResult, StoreError};

use crate::run::columns::DifferingFiles;
use crate::run::stages::load::LoadStage;
use crate::units::rejects::CarriedRejects;
use crate::units::wire::{Answer, Done, Unit, Work};

/// Bytes of inputs, as stored, of a unit of files.
const UNIT_BYTES: u64 = 64 << 20;
/// Units of a derived table, at most.
const QUERY_UNITS: u64 = 64;

/// Some inputs to load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct LoadWork {
    pub(crate) from: LoadFrom,
    /// The tables, in the order of the unit.
    pub(crate) tables: Vec<String>,
    pub(crate) unit: LoadUnit,
}

/// Where the rows of a load come from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) enum LoadFrom {
    /// The source of this name.
    Source(String),
    /// The query of the table.
    Query {
        /// The versions of the tables that it reads.
        versions: Versions,
        /// Event times of its inputs, microseconds, half-open.
        times: HashMap<String, (i64, i64)>,
    },
}

/// Versions of tables: number, and the id of its commit, which no other root has.
pub(crate) type Versions = BTreeMap<String, (u64, String)>;

/// What a unit of a load returns.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct LoadAnswer {
    pub(crate) done: LoadUnitDone,
    pub(crate) rejected: CarriedRejects,
    pub(crate) others: Vec<DifferingFiles>,
}

/// Has the units of a load run by other processes.
pub(crate) struct CarriedLoad<'a> {
    pub(crate) stage: &'a LoadStage<'a>,
    pub(crate) from: LoadFrom,
    pub(crate) tables: Vec<String>,
    /// Inputs of the load, at most.
    pub(crate) inputs: usize,
    pub(crate) on_progress: &'a (dyn Fn(Progress) + Sync),
}

/// What came back so far.
struct Taken<'t> {
    take: &'t mut (dyn FnMut(usize, LoadUnitDone) + Send),
    /// By unit.
    rest: BTreeMap<usize, (CarriedRejects, Vec<DifferingFiles>)>,
    failed: Option<StoreError>,
}

impl RunLoadUnits for CarriedLoad<'_> {
    fn unit_bytes(&self) -> Option<u64> {
        Some(match &self.from {
            LoadFrom::Source(_) => UNIT_BYTES,
            // Windows have no size, and count as a byte each.
            LoadFrom::Query { .. } => (self.inputs as u64).div_ceil(QUERY_UNITS).max(1),
        })
    }

    fn run(&self, units: &[LoadUnit], take: &mut (dyn FnMut(usize, LoadUnitDone) + Send)) -> StoreResult<()> {
        let elsewhere = |error| StoreError::Runner(Box::new(error));
        let Some(carrier) = &self.stage.options.carrier else { return Ok(()) };
        let sent: Vec<Unit> = units.iter().map(|unit| self.unit(unit)).collect();
        let taken = Mutex::new(Taken { take, rest: BTreeMap::new(), failed: None });
        let carried = carrier.carry(
            &sent,
            &self.stage.options.stop,
            &|at, answer| {
                self.stage.tally.add(&sent, at, &answer);
                self.take(&mut taken.lock().unwrap_or_else(PoisonError::into_inner), units, at, answer)
            },
            &|note| self.stage.note(note),
        );
        let Taken { rest, failed, .. } = taken.into_inner().unwrap_or_else(PoisonError::into_inner);
        if let Some(error) = failed {
            return Err(error);
        }
        carried.map_err(elsewhere)?;
        let blobs = self.stage.store.blobs().as_ref();
        for (rejected, others) in rest.into_values() {
            rejected.take(blobs, &|row: &RejectedRow| (self.stage.on_reject)(row))?;
            self.stage.others.merge(others);
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
                let own: HashSet<&str> = unit.paths().collect();
                times.retain(|path, _| own.contains(path.as_str()));
                LoadWork { from: LoadFrom::Query { versions, times }, ..work }
            }
            LoadFrom::Source(_) => work,
        };
        self.stage.unit(Work::Load(work))
    }

    /// Takes an answer; returns whether to go on.
    fn take(&self, taken: &mut Taken<'_>, units: &[LoadUnit], at: usize, answer: Answer) -> bool {
        match answer.done {
            Ok(Done::Load(LoadAnswer { done, rejected, others })) => {
                let is_first = !taken.rest.contains_key(&at);
                if is_first {
                    self.report(units.get(at), &done);
                    taken.rest.insert(at, (rejected, others));
                }
                (taken.take)(at, done);
                true
            }
            Ok(_) => {
                let source = crate::run::RunError::OtherAnswer { executor: answer.executor };
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
