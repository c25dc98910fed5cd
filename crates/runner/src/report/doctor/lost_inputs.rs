//! Inputs that only lost versions of a table hold: their files are gone, so that no run can load them again.

use std::collections::{BTreeMap, BTreeSet};

use tidetable_blobs::Blobs;
use tidetable_job::several;
use tidetable_record::{InputRecord, InputState, LoadRecord, Runs, first_run};
use tidetable_store::{Version, ulid_text};

use crate::fault::error::RunError;
use crate::options::without::{Without, options_for, some};
use crate::report::QUARANTINE;
use crate::report::input_places::InputPlaces;

/// What no run can load again if a table goes back to an earlier version, and was not given up by `--without`.
#[derive(Debug, Default)]
pub(super) struct LostInputs {
    /// The gone inputs, by name.
    gone: Vec<String>,
    /// Why some of these may be there: their buckets do not answer.
    unanswered: Option<String>,
    /// Records of runs that cannot be read: they may name more. Paths inside the store.
    unreadable: Vec<String>,
}

impl LostInputs {
    /// Finds what runs loaded into versions of a table after `readable` and is gone from where it was. Nothing without a project: the
    /// places of inputs are not known then.
    ///
    /// # Errors
    /// If the records of runs cannot be listed.
    pub(super) fn find(
        blobs: &dyn Blobs,
        places: Option<&InputPlaces<'_>>,
        readable: &Version,
        without: &[String],
    ) -> Result<Self, RunError> {
        let without = Without::new(without);
        let Some(places) = places.filter(|_| !without.takes_all()) else { return Ok(Self::default()) };
        // Records of an earlier table of the name count versions of their own.
        let born = u128::from_str_radix(&readable.table_uuid, 16).map(ulid_text).unwrap_or_default();
        let since = first_run(&readable.commit).max(born);

        let mut lost = LoadedInputs::default();
        let mut unreadable = set_aside(blobs, &since)?;
        let names: Vec<String> = Runs::of(blobs).names()?.into_iter().rev().take_while(|name| *name > since).collect();

        for (name, record) in names.iter().zip(Runs::of(blobs).load_each(names.iter().cloned())) {
            let Ok(record) = record else {
                unreadable.push(format!("runs/{name}.json"));
                continue;
            };
            let loads = record.iter().flat_map(|record| &record.loads);
            let table = &readable.table.spec.name;
            for load in loads.filter(|load| load.table == *table && load.version > readable.number) {
                lost.add_older(load);
            }
        }

        let loaded = lost.loaded.into_iter();
        let gone = loaded.filter(|path| !without.takes(path) && places.is_gone(path)).collect();
        Ok(Self { gone, unanswered: places.unanswered().map(str::to_owned), unreadable })
    }

    /// Whether the runs to come can load all that is lost.
    pub(super) fn is_empty(&self) -> bool {
        self.gone.is_empty() && self.unreadable.is_empty()
    }

    /// What the loss of the versions costs, besides the rest.
    pub(super) fn costs(&self) -> String {
        let inputs = match self.gone.as_slice() {
            [] => String::new(),
            [only] => format!("; {only} is gone since, so that no run loads it again"),
            [first, rest @ ..] => format!(
                "; {first} and {} are gone since, so that no run loads them again",
                several(rest.len() as u64, "more input")
            ),
        };
        let records = match self.unreadable.as_slice() {
            [] => String::new(),
            paths => format!("; what else was loaded since is unknown: {} cannot be read", some(paths)),
        };
        let reason = self.unanswered.iter().map(|reason| format!(", or cannot be asked for: {reason}"));
        inputs + &reason.collect::<String>() + &records
    }

    /// What a person does before `--fix`.
    pub(super) fn remedy(&self) -> String {
        let what = match (self.gone.as_slice(), self.unreadable.as_slice()) {
            ([], [record]) => record.clone(),
            ([], records) => several(records.len() as u64, "record"),
            ([input], []) => input.clone(),
            (inputs, []) => several(inputs.len() as u64, "input"),
            (inputs, records) => {
                format!("{} and {}", several(inputs.len() as u64, "input"), several(records.len() as u64, "record"))
            }
        };
        let them = if self.gone.len() + self.unreadable.len() == 1 { "it" } else { "them" };
        format!(
            "put {what} back, or the manifests from a backup, and run `tidetable doctor --fix`; or give {them} up, so that \
             published days of which nothing is left are withdrawn: `tidetable doctor --fix {}`",
            self.options()
        )
    }

    /// The options that give all of it up. What unreadable records name is unknown, so that only a pattern of everything does.
    fn options(&self) -> String {
        match self.unreadable.is_empty() {
            true => options_for(&self.gone).unwrap_or_else(|| "--without PATTERN".to_owned()),
            false => "--without '*'".to_owned(),
        }
    }
}

/// The records of runs after `since` that are in quarantine because they could not be read.
fn set_aside(blobs: &dyn Blobs, since: &str) -> Result<Vec<String>, RunError> {
    let names = blobs.list(&format!("{QUARANTINE}/runs"))?;
    let later = names.into_iter().filter(|name| name.split('.').next().is_some_and(|run| run > since));
    Ok(later.map(|name| format!("{QUARANTINE}/runs/{name}")).collect())
}

/// The inputs that loads brought into a table, as far as no later load took them out again.
#[derive(Debug, Default)]
struct LoadedInputs {
    loaded: BTreeSet<String>,
    /// Names whose rows a later load removed, or gave to another input.
    settled: BTreeSet<String>,
    /// The later names of inputs that were renamed, by the names that they had.
    renamed: BTreeMap<String, String>,
}

impl LoadedInputs {
    /// Adds a load that came before those that were added.
    fn add_older(&mut self, load: &LoadRecord) {
        for input in &load.inputs {
            self.add(input);
        }
    }

    fn add(&mut self, input: &InputRecord) {
        let name = self.renamed.get(&input.path).unwrap_or(&input.path).clone();
        match input.state {
            InputState::New | InputState::Changed | InputState::Grown | InputState::ReadAgain => {
                if !self.settled.contains(&name) {
                    self.loaded.insert(name.clone());
                }
            }
            InputState::TakenOut | InputState::LeftOut | InputState::SameContent => {
                self.settled.insert(name.clone());
            }
            // These loads brought nothing: earlier ones decide.
            InputState::Unchanged | InputState::Renamed | InputState::Gone | InputState::Empty => {}
        }
        if let (InputState::Renamed | InputState::Grown, Some(former)) = (input.state, &input.same_as) {
            self.renamed.insert(former.clone(), name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn loaded(loads: &[&[InputRecord]]) -> Vec<String> {
        let mut inputs = LoadedInputs::default();
        for load in loads.iter().rev() {
            inputs.add_older(&LoadRecord { inputs: load.to_vec(), ..LoadRecord::default() });
        }
        inputs.loaded.into_iter().collect()
    }

    #[test]
    fn loads_that_brought_rows_decide() {
        use InputState::*;
        let of = InputRecord::new;
        for state in [New, Changed, Grown, ReadAgain] {
            assert_eq!(loaded(&[&[of("a", state)]]), ["a"], "{state:?}");
            for later in [Unchanged, Gone, Empty] {
                assert_eq!(loaded(&[&[of("a", state)], &[of("a", later)]]), ["a"], "{state:?} {later:?}");
            }
            for later in [TakenOut, LeftOut, SameContent] {
                assert!(loaded(&[&[of("a", state)], &[of("a", later)]]).is_empty(), "{state:?} {later:?}");
            }
        }
        for state in [Unchanged, Renamed, Gone, Empty, TakenOut, LeftOut, SameContent] {
            assert!(loaded(&[&[of("a", state)]]).is_empty(), "{state:?}");
        }
        assert_eq!(loaded(&[&[of("a", TakenOut)], &[of("a", New)]]), ["a"]);
    }

    #[test]
    fn renamed_inputs_are_looked_for_under_their_last_name() {
        use InputState::*;
        let of = InputRecord::new;
        let renamed = |from: &str, to: &str, state| InputRecord { same_as: Some(from.to_owned()), ..of(to, state) };
        let moves = [renamed("a", "b", Renamed), renamed("b", "c", Grown)];
        assert_eq!(loaded(&[&[of("a", New)], &moves[..1]]), ["b"]);
        assert_eq!(loaded(&[&[of("a", New)], &moves[..1], &moves[1..]]), ["c"]);
        assert!(loaded(&[&[of("a", New)], &moves[..1], &[of("b", LeftOut)]]).is_empty());
    }
}
