//! Inputs that the last run of a job found gone, or copies of others: `seen/<job>.json`.
//!
//! Such inputs keep their state from run to run, and there may be thousands, where files are moved away after loading.
//! So a record lists a change of state once, and counts the rest. The file is written only on changes. It
//! can be lost: the next run then reports everything once more.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use tidetable_blobs::Blobs;
use tidetable_store::StoreError;

use crate::load::{InputRecord, InputState, LoadRecord};

/// Gone and copied inputs of a job, by table.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Seen {
    tables: BTreeMap<String, Vec<InputRecord>>,
    /// By source, undeclared columns of its files that were told.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    left_out: BTreeMap<String, BTreeSet<String>>,
}

impl Seen {
    /// The gone and copied inputs of `job`; empty if the file is missing or unreadable.
    pub fn load(blobs: &dyn Blobs, job: &str) -> Self {
        let bytes = blobs.read(&path(job)).ok().flatten();
        let mut seen: Self = bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default();
        seen.tables.values_mut().for_each(|inputs| inputs.sort_unstable());
        seen
    }

    /// Whether an input of `table` was in this state before.
    pub fn knows(&self, table: &str, input: &InputRecord) -> bool {
        self.tables.get(table).is_some_and(|inputs| inputs.binary_search(input).is_ok())
    }

    /// Whether it was told that `column` of files of `source` is left out.
    pub fn left_out(&self, source: &str, column: &str) -> bool {
        self.left_out.get(source).is_some_and(|columns| columns.contains(column))
    }

    /// The load record of `inputs` of `table`: those with a new state, and counts of the
    /// others by state.
    pub fn changes(&self, table: &str, inputs: Vec<InputRecord>, unchanged: u64) -> LoadRecord {
        let mut load = LoadRecord { table: table.to_owned(), ..LoadRecord::default() };
        if unchanged > 0 {
            load.standing.insert(InputState::Unchanged, unchanged);
        }
        for input in inputs {
            if matches!(input.state, InputState::Gone | InputState::Empty | InputState::SameContent) {
                load.absent.push(input.clone());
                if self.knows(table, &input) {
                    *load.standing.entry(input.state).or_default() += 1;
                    continue;
                }
            }
            load.inputs.push(input);
        }
        load
    }

    /// Stores the states in `loads`; tables of the job without a load keep theirs.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn save<'a>(
        &self,
        blobs: &dyn Blobs,
        job: &str,
        tables: impl Iterator<Item = &'a str>,
        loads: &[LoadRecord],
    ) -> Result<(), StoreError> {
        let mut next = Self { left_out: self.left_out.clone(), ..Self::default() };
        for load in loads.iter().filter(|load| !load.left_out.is_empty()) {
            next.left_out.entry(load.source.clone()).or_default().extend(load.left_out.iter().cloned());
        }
        for table in tables {
            let load = loads.iter().rev().find(|load| load.table == table);
            let inputs = load.map(|load| &load.absent).or_else(|| self.tables.get(table));
            let mut inputs = inputs.cloned().unwrap_or_default();
            inputs.sort_unstable();
            if !inputs.is_empty() {
                next.tables.insert(table.to_owned(), inputs);
            }
        }
        if next == *self {
            return Ok(());
        }

        let path = path(job);
        let bytes = serde_json::to_vec(&next)
            .map_err(|error| StoreError::Manifest { path: path.clone(), reason: error.to_string() })?;
        Ok(blobs.replace(&path, &bytes)?)
    }
}

/// Path of the file of a job, inside the store.
fn path(job: &str) -> String {
    format!("seen/{job}.json")
}

#[cfg(test)]
mod tests {
    use tidetable_blobs::LocalBlobs;

    use super::*;

    fn input(path: &str, state: InputState) -> InputRecord {
        InputRecord::new(path, state)
    }

    #[test]
    fn what_is_gone_is_a_change_once() {
        let root = tempfile::tempdir().unwrap();
        let blobs = LocalBlobs::new(root.path().to_owned());
        let gone = |paths: &[&str]| paths.iter().map(|path| input(path, InputState::Gone)).collect::<Vec<_>>();
        let changes = |seen: &Seen, inputs| {
            let load = seen.changes("T", inputs, 3);
            let paths: Vec<String> = load.inputs.iter().map(|input| input.path.clone()).collect();
            (paths.concat(), load.count(InputState::Gone), load.count(InputState::Unchanged))
        };
        let first = Seen::load(&blobs, "j");
        assert_eq!(changes(&first, gone(&["b", "a"])), ("ba".to_owned(), 2, 3));
        let load = first.changes("T", gone(&["b", "a"]), 3);
        first.save(&blobs, "j", ["T", "U"].into_iter(), &[load]).unwrap();
        let second = Seen::load(&blobs, "j");
        assert_eq!(changes(&second, gone(&["a", "b", "c"])), ("c".to_owned(), 3, 3));
        // A run without the table keeps what is known of it.
        second.save(&blobs, "j", ["T", "U"].into_iter(), &[]).unwrap();
        assert_eq!(Seen::load(&blobs, "j"), second);
        // An input that came back and disappears again is reported again.
        let load = second.changes("T", gone(&["b"]), 4);
        second.save(&blobs, "j", ["T", "U"].into_iter(), &[load]).unwrap();
        assert_eq!(changes(&Seen::load(&blobs, "j"), gone(&["a", "b"])), ("a".to_owned(), 2, 3));
        // An unreadable file counts as empty.
        blobs.replace("seen/j.json", b"{\"tab").unwrap();
        assert_eq!(changes(&Seen::load(&blobs, "j"), gone(&["a"])), ("a".to_owned(), 1, 3));
        Seen::load(&blobs, "j").save(&blobs, "j", ["U"].into_iter(), &[]).unwrap();
    }
}
