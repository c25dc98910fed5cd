//! Passes: inputs are read once for all tables that load them, where the tables' input orders allow it.

use std::collections::{BTreeSet, HashMap};

use tidetable_source::InputFile;

use crate::input::read::FeedInput;
use crate::work::{ToRead, Work};

/// Inputs to be read in this order, each once for all targets that want it.
#[derive(Debug, Default)]
pub(crate) struct Pass {
    pub(crate) readings: Vec<Reading>,
    pub(crate) targets: Vec<usize>,
}

/// An input, and where its rows are wanted.
#[derive(Debug)]
pub(crate) struct Reading {
    pub(crate) file: InputFile,
    pub(crate) uses: Vec<InputUse>,
}

/// Where the rows of an input are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct InputUse {
    pub(crate) target: usize,
    /// Index of the input among those of the target's work.
    pub(crate) input: usize,
}

impl InputUse {
    /// The input as the work of its target has it.
    pub(crate) fn of<'w>(&self, works: &'w [Work]) -> &'w ToRead {
        &works[self.target].inputs[self.input]
    }
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
    pub(crate) fn files(&self, works: &[Work]) -> Vec<FeedInput<'_>> {
        let mut files = Vec::with_capacity(self.readings.len());
        for reading in &self.readings {
            let cuts: BTreeSet<u64> = reading.uses.iter().filter_map(|used| used.of(works).cut).collect();
            files.push(FeedInput { file: &reading.file, cuts: cuts.into_iter().collect() });
        }
        files
    }

    /// Adds a target's inputs, if those already in the pass are in the target's order. Returns whether it did.
    fn join(&mut self, target: usize, work: &Work) -> bool {
        let known: HashMap<&str, usize> =
            self.readings.iter().enumerate().map(|(at, reading)| (reading.file.path.as_str(), at)).collect();
        let places: Vec<Option<usize>> =
            work.inputs.iter().map(|input| known.get(input.file.path.as_str()).copied()).collect();
        if !places.iter().flatten().is_sorted() {
            return false;
        }

        // An input not in the pass goes before the target's next input that is, or to the end.
        let mut before: Vec<Vec<Reading>> = self.readings.iter().map(|_| Vec::new()).collect();
        let mut last = Vec::new();
        let mut next = None;
        for (input, (to_read, place)) in work.inputs.iter().zip(places).enumerate().rev() {
            let used = InputUse { target, input };
            match place {
                Some(at) => {
                    next = Some(at);
                    self.readings[at].uses.push(used);
                }
                None => {
                    let new = Reading { file: to_read.file.clone(), uses: vec![used] };
                    next.map_or(&mut last, |at| &mut before[at]).push(new);
                }
            }
        }

        for (reading, before) in std::mem::take(&mut self.readings).into_iter().zip(before) {
            self.readings.extend(before.into_iter().rev());
            self.readings.push(reading);
        }
        self.readings.extend(last.into_iter().rev());
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
                .flat_map(|reading| reading.uses.iter().filter(|used| used.target == target).map(|used| used.input))
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
