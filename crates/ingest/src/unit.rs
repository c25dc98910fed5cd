//! Units of a load: some of its inputs, for all tables that read them. A unit can be run anywhere; it commits nothing.
//!
//! Inputs are split in the order in which they are read, and the SSTs of a unit come after those of the units before it:
//! among equal cells the later input wins, however a load is split.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tidetable_store::Table;
use tidetable_store::version::{Sst, VersionEdit};
use tidetable_store::{Result, StoreError};

use crate::pass::{Pass, passes};
use crate::spec::UnitLoader;
use crate::stats::{EmptyRow, LoadStats};
use crate::work::{InputRead, Work};

/// Some inputs of a load with what is to be done with them. It has no handle and no secret, and can be sent.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LoadUnit {
    /// For each target of the load, in its order.
    pub(crate) works: Vec<Work>,
}

/// The result of a unit, which names SSTs that no version names yet.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LoadUnitDone {
    /// For each target of the load.
    pub(crate) tables: Vec<TableDone>,
}

/// What a unit wrote of a table.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct TableDone {
    /// SSTs by window, those of earlier inputs first.
    pub(crate) ssts: BTreeMap<i64, Vec<Sst>>,
    /// Totals for each input of the work.
    pub(crate) read: Vec<InputRead>,
    pub(crate) stats: LoadStats,
    /// The first row without cells, with the sequence number of its input.
    pub(crate) first_empty: Option<(u64, EmptyRow)>,
}

/// Runs the units of a load, in this process or elsewhere.
pub trait RunLoadUnits {
    /// Bytes of inputs, as stored, of a unit of a load of `total` bytes; `None`: one unit has all of them. An input of unknown
    /// size counts as one byte.
    fn unit_bytes(&self, total: u64) -> Option<u64>;

    /// Runs `units`, and passes the result of each to `take` with its index, in any order.
    ///
    /// # Errors
    /// Those of a unit. The SSTs of results that were taken are the caller's to remove.
    fn run(&self, units: &[LoadUnit], take: &mut (dyn FnMut(usize, LoadUnitDone) + Send)) -> Result<()>;
}

impl RunLoadUnits for UnitLoader<'_> {
    fn unit_bytes(&self, _: u64) -> Option<u64> {
        None
    }

    fn run(&self, units: &[LoadUnit], take: &mut (dyn FnMut(usize, LoadUnitDone) + Send)) -> Result<()> {
        for (at, unit) in units.iter().enumerate() {
            take(at, self.run(unit)?);
        }
        Ok(())
    }
}

impl LoadUnitDone {
    /// Its counts, one for each table in the order of the load.
    pub fn stats(&self) -> impl Iterator<Item = &LoadStats> {
        self.tables.iter().map(|table| &table.stats)
    }
}

impl LoadUnit {
    /// Bytes of the inputs, as stored; an input that several tables read counts once.
    pub fn bytes(&self) -> u64 {
        bytes(&passes(&self.works))
    }

    /// The same unit with each input changed by `change`, such as to give it its place on this machine.
    ///
    /// # Errors
    /// Those of `change`.
    pub fn with_files<E>(
        mut self,
        change: &dyn Fn(tidetable_source::InputFile) -> std::result::Result<tidetable_source::InputFile, E>,
    ) -> std::result::Result<Self, E> {
        for input in self.works.iter_mut().flat_map(|work| &mut work.inputs) {
            input.file = change(input.file.clone())?;
        }
        Ok(self)
    }

    /// A unit of these works, before it gets inputs.
    fn without_inputs(works: &[Work]) -> Self {
        let mut empty = Vec::with_capacity(works.len());
        for Work { rebuilt, tombstones, .. } in works {
            empty.push(Work { rebuilt: rebuilt.clone(), tombstones: tombstones.clone(), inputs: Vec::new() });
        }
        Self { works: empty }
    }

    /// Paths of the inputs, those of each table in order.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        self.works.iter().flat_map(|work| &work.inputs).map(|input| input.file.path.as_str())
    }
}

/// Bytes of the inputs of passes.
pub(crate) fn bytes(passes: &[Pass]) -> u64 {
    passes.iter().flat_map(|pass| &pass.readings).map(|reading| reading.file.size).sum()
}

/// Splits works, which are read in `passes`, into units of about `limit(total)` bytes; `None`: one unit has all. An input
/// of unknown size counts as one byte.
pub(crate) fn split(works: Vec<Work>, passes: Vec<Pass>, limit: &dyn Fn(u64) -> Option<u64>) -> Vec<LoadUnit> {
    let readings = passes.iter().flat_map(|pass| &pass.readings);
    let total = readings.map(|reading| reading.file.size.max(1)).sum();
    let Some(limit) = limit(total) else { return vec![LoadUnit { works }] };

    let mut units = Vec::new();
    for pass in passes {
        let mut unit = LoadUnit::without_inputs(&works);
        let mut bytes = 0;
        for reading in pass.readings {
            let size = reading.file.size.max(1);
            // Nearer to the limit without this input than with it.
            if bytes > 0 && bytes + size / 2 >= limit {
                units.push(std::mem::replace(&mut unit, LoadUnit::without_inputs(&works)));
                bytes = 0;
            }

            bytes += size;
            for used in reading.uses {
                unit.works[used.target].inputs.push(used.of(&works).clone());
            }
        }
        units.push(unit);
    }

    units
}

/// The results of units, by unit. A second answer of a unit is not kept: its SSTs are removed.
pub(crate) struct Answers<'a> {
    pub(crate) tables: Vec<&'a Table>,
    pub(crate) done: Vec<Option<LoadUnitDone>>,
}

impl Answers<'_> {
    pub(crate) fn take(&mut self, at: usize, done: LoadUnitDone) {
        match self.done.get_mut(at) {
            Some(empty @ None) => *empty = Some(done),
            _ => self.discard(&done),
        }
    }

    fn discard(&self, done: &LoadUnitDone) {
        self.tables.iter().zip(&done.tables).for_each(|(table, done)| done.discard(table));
    }

    pub(crate) fn discard_all(&self) {
        self.done.iter().flatten().for_each(|done| self.discard(done));
    }

    /// The results of each unit with its work, for one target.
    pub(crate) fn of_target<'u>(
        &'u self,
        units: &'u [LoadUnit],
        target: usize,
    ) -> impl Iterator<Item = Result<(&'u Work, &'u TableDone)>> {
        units.iter().zip(&self.done).enumerate().filter_map(move |(unit, (work, done))| {
            let work = work.works.get(target)?;
            let done = done.as_ref().and_then(|done| done.tables.get(target));
            let done = done.filter(|done| done.read.len() == work.inputs.len());
            Some(done.map(|done| (work, done)).ok_or(StoreError::Unanswered { unit }))
        })
    }
}

impl TableDone {
    /// Removes its SSTs, because they will not be committed.
    pub(crate) fn discard(&self, table: &Table) {
        table.discard(&VersionEdit { ssts: self.ssts.clone(), ..VersionEdit::default() });
    }
}

#[cfg(test)]
mod tests {
    use tidetable_source::InputFile;

    use super::*;
    use crate::work::ToRead;

    fn work(sizes: &[(&str, u64)]) -> Work {
        let input = |(at, (path, size)): (usize, &(&str, u64))| {
            let mut file = InputFile::of_rows(path, "1");
            file.size = *size;
            ToRead::new(&file, at as u64)
        };
        Work { rebuilt: vec![7], tombstones: Vec::new(), inputs: sizes.iter().enumerate().map(input).collect() }
    }

    fn paths(units: &[LoadUnit]) -> Vec<Vec<Vec<&str>>> {
        let of = |work: &Work| work.inputs.len();
        units
            .iter()
            .map(|unit| {
                let mut paths = unit.paths();
                unit.works.iter().map(|work| paths.by_ref().take(of(work)).collect()).collect()
            })
            .collect()
    }

    #[test]
    fn a_unit_has_inputs_up_to_its_bytes_for_all_tables() {
        let works = vec![work(&[("a", 4), ("b", 5), ("c", 100), ("d", 1)]), work(&[("b", 5), ("d", 1), ("e", 0)])];
        let all = || passes(&works);
        let whole = split(works.clone(), all(), &|_| None);
        assert_eq!(whole, [LoadUnit { works: works.clone() }]);
        assert_eq!(whole[0].bytes(), 110);
        let units = split(works.clone(), all(), &|total| Some(total / 14));
        assert_eq!(paths(&units), [[vec!["a", "b"], vec!["b"]], [vec!["c"], vec![]], [vec!["d"], vec!["d", "e"]]]);
        assert!(units.iter().flat_map(|unit| &unit.works).all(|work| work.rebuilt == [7]));
        for limit in [1, 2, 5, 9, 1000] {
            let units = split(works.clone(), all(), &|_| Some(limit));
            for (target, work) in works.iter().enumerate() {
                let inputs: Vec<ToRead> = units.iter().flat_map(|unit| unit.works[target].inputs.clone()).collect();
                assert_eq!(inputs, work.inputs, "each input once, in order, with {limit} bytes a unit");
            }
        }
    }

    #[test]
    fn a_unit_survives_the_wire() {
        let unit = LoadUnit { works: vec![work(&[("a", 4)]), Work::default()] };
        let sent: LoadUnit = serde_json::from_slice(&serde_json::to_vec(&unit).unwrap()).unwrap();
        // Without its place: that is looked for where it arrives.
        assert_eq!(sent.paths().collect::<Vec<_>>(), ["a"]);
        assert_eq!(sent.works[0].inputs[0].reports, 0..u64::MAX);
        let done = LoadUnitDone {
            tables: vec![TableDone {
                ssts: BTreeMap::from([(-5, Vec::new())]),
                read: vec![InputRead {
                    hash: Some(tidetable_source::ContentHash(u128::MAX)),
                    days: BTreeMap::from([(-86_400_000_000, [-1].into())]),
                    ..InputRead::default()
                }],
                ..TableDone::default()
            }],
        };
        assert_eq!(serde_json::from_slice::<LoadUnitDone>(&serde_json::to_vec(&done).unwrap()).unwrap(), done);
    }
}
