//! Which inputs a load reads, and which windows it builds anew.
//!
//! A changed input rebuilds the windows that its old or its new content touches, from all live
//! inputs of those windows; so they are read again, but only for those windows.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

use tidetable_layout::Window;
use tidetable_layout::time::{window_bounds, window_name};
use tidetable_source::{ContentHash, InputFile};
use tidetable_sstable::tools::failpoints::{self, Bug};

use super::{Loader, MICROS_PER_DAY, Target};
use crate::error::{Result, StoreError};
use crate::load::encode::Outcome;
use crate::load::pass::passes;
use crate::load::plan::Grown;
use crate::load::read::read_ahead;
use crate::load::state::{Encoders, InputRead};
use crate::version::{Input, VersionEdit};

/// An input to be read.
#[derive(Debug)]
pub(crate) struct ToRead {
    pub(crate) file: InputFile,
    pub(crate) sequence: u64,
    /// New or changed: its rows are counted and its rejects told. Otherwise it is only read again
    /// for windows that are built anew.
    pub(crate) counts: bool,
    /// Whether it is changed, so that all its windows must be among those built anew.
    pub(crate) changed: bool,
    /// What it must hold, if that is known.
    pub(crate) expected: Option<ContentHash>,
    /// Where a piece of it must begin.
    pub(crate) cut: Option<u64>,
    /// What the table holds of it and keeps, if it has grown.
    pub(crate) held: Option<Held>,
    /// The pieces whose rejected rows are to be told: a load that begins again has told some already.
    pub(crate) tells: Range<u64>,
}

/// The part of a grown input that a table holds already.
#[derive(Debug)]
pub(crate) struct Held {
    pub(crate) input: Input,
    /// Where it ends.
    pub(crate) end: u64,
    /// Whether some of it lies in windows that are built anew.
    pub(crate) again: bool,
}

/// What a load has to do.
#[derive(Debug)]
pub(crate) struct Work {
    /// What is known of the edit before reading.
    pub(crate) edit: VersionEdit,
    /// In order of sequence.
    pub(crate) inputs: Vec<ToRead>,
}

impl Work {
    /// Tells no rejected rows but those of what inputs of `grown` held before they grew.
    pub(crate) fn tell_only_held(&mut self, grown: &[Grown]) {
        for input in &mut self.inputs {
            let held = grown.iter().find(|grown| grown.file.path == input.file.path).map_or(0, |grown| grown.from);
            (input.tells, input.cut) = (0..held, Some(held).filter(|held| *held > 0));
        }
    }
}

/// Works out what each table has to read.
pub(crate) fn plan(loader: &Loader<'_>) -> Result<Vec<Work>> {
    let surveys = survey(loader)?;
    loader.targets.iter().zip(&surveys).map(|(target, windows)| plan_target(target, windows)).collect()
}

/// `now_in` are the windows that the inputs which are surveyed touch as they are now.
fn plan_target(target: &Target<'_>, now_in: &[BTreeSet<i64>]) -> Result<Work> {
    let Target { base, plan, .. } = target;
    let window = target.layout.spec().window;
    let mut edit = VersionEdit { base: base.number, ..VersionEdit::default() };
    if !failpoints::is(Bug::ForgetCopies) {
        edit.names.clone_from(&plan.names);
    }
    edit.removed.extend(plan.forgotten.iter().cloned());
    edit.inputs.extend(plan.restated.iter().cloned());
    let mut inputs = Vec::new();
    let mut rebuilt = BTreeSet::new();
    for ((file, old), now_in) in plan.changed.iter().zip(now_in) {
        rebuilt.extend(old.windows.iter().chain(now_in).copied());
        for (start, days) in days_by_window(old, window) {
            edit.days.entry(start).or_default().extend(days);
        }
        inputs.push(ToRead { changed: true, ..ToRead::new(file, old.sequence) });
    }
    for ((sequence, file), now_in) in plan.resumed.iter().zip(now_in.iter().skip(plan.changed.len())) {
        rebuilt.extend(now_in.iter().copied());
        inputs.push(ToRead { changed: true, ..ToRead::new(file, *sequence) });
    }
    for old in &plan.given_up {
        let all = if failpoints::is(Bug::TakeOutOfOneWindow) { 1 } else { usize::MAX };
        rebuilt.extend(old.windows.iter().take(all).copied());
        for (start, days) in days_by_window(old, window) {
            edit.days.entry(start).or_default().extend(days);
        }
        edit.removed.push(old.path.clone());
    }
    for Grown { file, held, from, hash } in &plan.grown {
        let again = held.windows.iter().any(|start| rebuilt.contains(start));
        let input = Some(Held { input: held.clone(), end: *from, again }).filter(|held| held.end > 0);
        let cut = input.as_ref().map(|held| held.end);
        inputs.push(ToRead { expected: *hash, held: input, cut, ..ToRead::new(file, held.sequence) });
    }
    for (sequence, file) in &plan.new {
        inputs.push(ToRead::new(file, *sequence));
    }
    let shares = |input: &&(InputFile, Arc<Input>)| input.1.windows.iter().any(|start| rebuilt.contains(start));
    for (file, input) in plan.unchanged.iter().filter(shares) {
        let expected = Some(input.hash);
        inputs.push(ToRead { counts: false, expected, ..ToRead::new(file, input.sequence) });
    }
    none_is_gone(target, &rebuilt)?;
    inputs.sort_by_key(|input| input.sequence);
    edit.rebuilt = rebuilt.into_iter().collect();
    Ok(Work { edit, inputs })
}

/// An input that is gone cannot be read again for the windows that are built anew: the load stops, unless it was given up.
/// Giving one up builds all its windows anew, which others that are gone may be of: all of them are named at once.
fn none_is_gone(target: &Target<'_>, rebuilt: &BTreeSet<i64>) -> Result<()> {
    let Target { table, plan, .. } = target;
    let shared = |input: &Input, anew: &BTreeSet<i64>| input.windows.iter().find(|start| anew.contains(start)).copied();
    let first = plan.vanished.iter().find_map(|input| shared(input, rebuilt));
    let Some(window) = first else { return Ok(()) };
    let (mut anew, mut gone, mut rest) = (rebuilt.clone(), Vec::new(), plan.vanished.iter().collect::<Vec<_>>());
    loop {
        let (more, others): (Vec<&Input>, _) = rest.into_iter().partition(|input| shared(input, &anew).is_some());
        if more.is_empty() {
            break;
        }
        anew.extend(more.iter().flat_map(|input| &input.windows));
        gone.extend(more);
        rest = others;
    }
    gone.sort_by_key(|input| input.sequence);
    let changed = plan.changed.iter().map(|(file, _)| file.path.clone());
    let resumed = plan.resumed.iter().map(|(_, file)| file.path.clone());
    let given_up = plan.given_up.iter().map(|input| input.path.clone());
    Err(StoreError::InputsGone {
        table: table.name().to_owned(),
        window: window_name(target.layout.spec().window, window),
        changed: changed.chain(resumed).chain(given_up).next().unwrap_or_default(),
        gone: gone.into_iter().map(|input| input.path.clone()).collect(),
    })
}

/// For each target the windows that its changed inputs touch, then those that its resumed ones do, in the order of its
/// plan, found by reading them.
fn survey(loader: &Loader<'_>) -> Result<Vec<Vec<BTreeSet<i64>>>> {
    let look = |(sequence, file): (u64, &InputFile)| {
        let to_read = ToRead::new(file, sequence);
        ToRead { counts: false, changed: true, ..to_read }
    };
    let of_target = |target: &Target<'_>| {
        let changed = target.plan.changed.iter().map(|(file, old)| (old.sequence, file));
        let resumed = target.plan.resumed.iter().map(|(sequence, file)| (*sequence, file));
        Work { edit: VersionEdit::default(), inputs: changed.chain(resumed).map(look).collect() }
    };
    let works: Vec<Work> = loader.targets.iter().map(of_target).collect();
    let encoders: Vec<Encoders<'_>> = loader.targets.iter().map(|target| Encoders::new(target.layout)).collect();
    let mut found: Vec<Vec<BTreeSet<i64>>> =
        works.iter().map(|work| vec![BTreeSet::new(); work.inputs.len()]).collect();
    for pass in passes(&works) {
        read_ahead(loader.feed, &pass.files(&works), 2, &|_| {}, |messages| {
            for message in messages {
                let outcome = loader.lay_out(message?, &pass.readings, &works, &encoders)?;
                let Outcome::Laid { input, parts, .. } = outcome else { continue };
                for ((target, index), part) in pass.readings[input].uses.iter().zip(parts) {
                    found[*target][*index].extend(part.chunk.windows.into_keys());
                }
            }
            Ok(())
        })?;
    }
    Ok(found)
}

fn days_by_window(input: &Input, window: Window) -> BTreeMap<i64, Vec<i32>> {
    input.windows.iter().map(|start| (*start, days_in(&input.days, window, *start))).collect()
}

/// Those of `days` that overlap the window at `start`.
fn days_in(days: &[i32], window: Window, start: i64) -> Vec<i32> {
    let bounds = window_bounds(window, start);
    let overlaps = |day: &i32| {
        let begun = i64::from(*day) * MICROS_PER_DAY;
        begun < bounds.end && bounds.start < begun + MICROS_PER_DAY
    };
    days.iter().copied().filter(overlaps).collect()
}

impl ToRead {
    /// An input of which all rows are to be loaded.
    pub(crate) fn new(file: &InputFile, sequence: u64) -> Self {
        let (file, tells) = (file.clone(), 0..u64::MAX);
        Self { file, sequence, counts: true, changed: false, expected: None, cut: None, held: None, tells }
    }

    /// Whether the table holds what begins at `offset` already.
    fn holds(&self, offset: u64) -> bool {
        self.held.as_ref().is_some_and(|held| offset < held.end)
    }

    /// Whether the rows that begin at `offset` count.
    pub(crate) fn counts_at(&self, offset: u64) -> bool {
        self.counts && !self.holds(offset)
    }

    /// Whether rejected rows that begin at `offset` are to be told.
    pub(crate) fn tells_at(&self, offset: u64) -> bool {
        self.counts_at(offset) && self.tells.contains(&offset)
    }

    /// Whether nothing is wanted of the rows that begin at `offset`.
    pub(crate) fn skips(&self, offset: u64) -> bool {
        self.holds(offset) && self.held.as_ref().is_some_and(|held| !held.again)
    }

    /// Whether its cells in the window at `start`, of rows that begin at `offset`, are wanted.
    pub(crate) fn wants(&self, start: i64, offset: u64, rebuilt: &[i64]) -> bool {
        self.counts_at(offset) || self.changed || rebuilt.binary_search(&start).is_ok()
    }

    /// Checks that an input that was read again is the one the version holds.
    pub(crate) fn check(&self, read: &InputRead) -> Result<()> {
        match self.expected {
            Some(expected) if read.hash != Some(expected) => {
                Err(StoreError::InputMoved { path: self.file.path.clone() })
            }
            _ => Ok(()),
        }
    }

    /// The input as the next version records it.
    pub(crate) fn record(&self, read: &InputRead, rebuilt: &[i64]) -> Result<Input> {
        let moved = self.changed && read.days.keys().any(|start| rebuilt.binary_search(start).is_err());
        let Some(hash) = read.hash.filter(|_| !moved) else {
            return Err(StoreError::InputMoved { path: self.file.path.clone() });
        };
        let held = self.held.as_ref().map(|held| &held.input);
        let count = |of: fn(&Input) -> u64| held.map_or(0, of);
        let days = held.into_iter().flat_map(|held| &held.days).chain(read.days.values().flatten());
        let windows = held.into_iter().flat_map(|held| &held.windows).chain(read.days.keys());
        let days: BTreeSet<i32> = days.copied().collect();
        let windows: BTreeSet<i64> = windows.copied().collect();
        Ok(Input {
            sequence: self.sequence,
            path: self.file.path.clone(),
            size: self.file.size,
            version: self.file.version.clone(),
            hash,
            read: count(|held| held.read) + read.counts.read,
            rejected: count(|held| held.rejected) + read.counts.rejected,
            days: days.into_iter().collect(),
            windows: windows.into_iter().collect(),
        })
    }
}
