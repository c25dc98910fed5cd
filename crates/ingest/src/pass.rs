//! Passes: inputs are read once for all tables that load them, where the tables' input orders allow it.

use std::collections::{BTreeSet, HashMap};

use tidetable_source::InputFile;

use crate::work::Work;

/// Inputs to be read in this order.
#[derive(Debug, Default)]
pub(crate) struct Pass {
    pub(crate) readings: Vec<Reading>,
    /// The targets that it serves.
    pub(crate) targets: Vec<usize>,
}

/// An input and its uses by targets.
#[derive(Debug)]
pub(crate) struct Reading {
    pub(crate) file: InputFile,
    /// (target, index among its inputs).
    pub(crate) uses: Vec<(usize, usize)>,
}

/// Merges the inputs of all targets into few passes that keep each target's inputs in order of input sequence number.
/// Mostly one pass: tables of a source grow together.
pub(crate) fn passes(works: &[Work]) -> Vec<Pass> {
    let mut passes: Vec<Pass> = Vec::new();
    for (target, work) in works.iter().enumerate().filter(|(_, work)| !work.inputs.is_empty()) {
        let joined = passes.iter_mut().any(|pass| pass.join(target, work));
        if !joined {
            let mut pass = Pass::default();
            pass.join(target, work);
            passes.push(pass);
        }
    }
    passes
}

impl Pass {
    /// The files to read, each with the offsets at which pieces must begin.
    pub(crate) fn files(&self, works: &[Work]) -> Vec<(&InputFile, Vec<u64>)> {
        let files = self.readings.iter().map(|reading| {
            let cut = |(target, input): &(usize, usize)| works[*target].inputs[*input].cut;
            let cuts: BTreeSet<u64> = reading.uses.iter().filter_map(cut).collect();
            (&reading.file, cuts.into_iter().collect())
        });
        files.collect()
    }

    /// Adds a target's inputs, if those already in the pass are in the target's order.
    fn join(&mut self, target: usize, work: &Work) -> bool {
        let known: HashMap<&str, usize> =
            self.readings.iter().enumerate().map(|(at, reading)| (reading.file.path.as_str(), at)).collect();
        let places: Vec<Option<usize>> =
            work.inputs.iter().map(|input| known.get(input.file.path.as_str()).copied()).collect();
        let here: Vec<usize> = places.iter().flatten().copied().collect();
        if !here.is_sorted() {
            return false;
        }
        // An input not in the pass goes before the target's next input that is, or to the end.
        let mut before: Vec<Vec<usize>> = vec![Vec::new(); self.readings.len() + 1];
        let mut next = self.readings.len();
        for (index, place) in places.iter().enumerate().rev() {
            match place {
                Some(at) => {
                    next = *at;
                    if let Some(reading) = self.readings.get_mut(*at) {
                        reading.uses.push((target, index));
                    }
                }
                None => {
                    if let Some(new) = before.get_mut(next) {
                        new.push(index);
                    }
                }
            }
        }
        let new = |index: usize| {
            let file = work.inputs.get(index)?.file.clone();
            Some(Reading { file, uses: vec![(target, index)] })
        };
        let mut old = std::mem::take(&mut self.readings).into_iter();
        for indices in before {
            self.readings.extend(indices.into_iter().rev().filter_map(new));
            self.readings.extend(old.next());
        }
        self.targets.push(target);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::work::ToRead;

    fn work(paths: &[&str]) -> Work {
        let input =
            |(input_seqno, path): (usize, &&str)| ToRead::new(&InputFile::of_rows(path, "1"), input_seqno as u64);
        Work { inputs: paths.iter().enumerate().map(input).collect(), ..Work::default() }
    }

    fn read(lists: &[&[&str]]) -> Vec<Vec<(String, usize)>> {
        let works: Vec<Work> = lists.iter().map(|paths| work(paths)).collect();
        let passes = passes(&works);
        for (target, work) in works.iter().enumerate() {
            let own: Vec<usize> = (passes.iter().flat_map(|pass| &pass.readings))
                .flat_map(|reading| reading.uses.iter().filter(|(to, _)| *to == target).map(|(_, index)| *index))
                .collect();
            assert_eq!(own, (0..work.inputs.len()).collect::<Vec<_>>(), "each input once, in order: {lists:?}");
        }
        let shown = |reading: &Reading| (reading.file.path.clone(), reading.uses.len());
        passes.iter().map(|pass| pass.readings.iter().map(shown).collect()).collect()
    }

    #[test]
    fn tables_that_grow_together_are_read_in_one_pass() {
        let one = |paths: &[(&str, usize)]| -> Vec<(String, usize)> {
            paths.iter().map(|(path, uses)| ((*path).to_owned(), *uses)).collect()
        };
        assert_eq!(read(&[&["a", "b"], &["a", "b"]]), [one(&[("a", 2), ("b", 2)])]);
        assert_eq!(read(&[&["b"], &["a", "b", "c"]]), [one(&[("a", 1), ("b", 2), ("c", 1)])]);
        assert_eq!(read(&[&["a", "d"], &["b", "c", "d"]]), [one(&[("a", 1), ("b", 1), ("c", 1), ("d", 2)])]);
        assert_eq!(read(&[&[], &["a"]]), [one(&[("a", 1)])]);
    }

    #[test]
    fn orders_that_contradict_each_other_take_two() {
        assert_eq!(read(&[&["a", "b"], &["b", "a"], &["b"]]).len(), 2);
    }
}
