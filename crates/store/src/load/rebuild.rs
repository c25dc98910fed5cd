//! Which inputs a load reads, and which windows it builds anew.
//!
//! A changed input rebuilds the windows that its old or its new content touches, from all live
//! inputs of those windows; so they are read again, but only for those windows.

use std::collections::{BTreeMap, BTreeSet};

use tidetable_layout::{Window, window_bounds, window_name};
use tidetable_source::{ContentHash, InputFile};

use super::lay::Outcome;
use super::pass::passes;
use super::read::read_ahead;
use super::state::{Encoders, InputRead};
use super::{Loader, MICROS_PER_DAY, Target};
use crate::error::{Result, StoreError};
use crate::version::{Edit, Input};

/// An input to be read.
#[derive(Debug)]
pub(super) struct ToRead {
    pub(super) file: InputFile,
    pub(super) sequence: u64,
    /// New or changed: its rows are counted and its rejects told. Otherwise it is only read again
    /// for windows that are built anew.
    pub(super) counts: bool,
    /// Whether it is changed, so that all its windows must be among those built anew.
    pub(super) changed: bool,
    /// What it must hold, if it is only read again.
    pub(super) expected: Option<ContentHash>,
}

/// What a load has to do.
#[derive(Debug)]
pub(super) struct Work {
    /// What is known of the edit before reading.
    pub(super) edit: Edit,
    /// In order of sequence.
    pub(super) inputs: Vec<ToRead>,
}

/// Works out what each table has to read.
pub(super) fn plan(loader: &Loader<'_>) -> Result<Vec<Work>> {
    let surveys = survey(loader)?;
    loader.targets.iter().zip(&surveys).map(|(target, windows)| plan_target(target, windows, loader.without)).collect()
}

/// `now_in` are the windows that the changed inputs touch as they are now.
fn plan_target(target: &Target<'_>, now_in: &[BTreeSet<i64>], without: &[String]) -> Result<Work> {
    let Target { base, plan, .. } = target;
    let window = target.layout.spec().window;
    let mut edit = Edit { base: base.number, ..Edit::default() };
    let mut inputs = Vec::new();
    let mut rebuilt = BTreeSet::new();
    for ((file, old), now_in) in plan.changed.iter().zip(now_in) {
        rebuilt.extend(old.windows.iter().chain(now_in).copied());
        for (start, days) in days_by_window(old, window) {
            edit.days.entry(start).or_default().extend(days);
        }
        inputs.push(ToRead { file: file.clone(), sequence: old.sequence, counts: true, changed: true, expected: None });
    }
    for old in &plan.given_up {
        rebuilt.extend(old.windows.iter().copied());
        for (start, days) in days_by_window(old, window) {
            edit.days.entry(start).or_default().extend(days);
        }
        edit.removed.push(old.path.clone());
    }
    for (file, old) in &plan.grown {
        inputs.push(ToRead {
            file: file.clone(),
            sequence: old.sequence,
            counts: true,
            changed: false,
            expected: None,
        });
    }
    for (sequence, file) in plan.new_in_sequence(base.next_sequence()) {
        inputs.push(ToRead { file: file.clone(), sequence, counts: true, changed: false, expected: None });
    }
    let shares = |input: &&(InputFile, Input)| input.1.windows.iter().any(|start| rebuilt.contains(start));
    for (file, input) in plan.unchanged.iter().filter(shares) {
        let expected = Some(input.hash);
        inputs.push(ToRead { file: file.clone(), sequence: input.sequence, counts: false, changed: false, expected });
    }
    leave_out_the_gone(target, without, &rebuilt, &mut edit)?;
    inputs.sort_by_key(|input| input.sequence);
    edit.rebuilt = rebuilt.into_iter().collect();
    Ok(Work { edit, inputs })
}

/// An input that is gone cannot be read again: either the user leaves it out, or the load stops.
fn leave_out_the_gone(target: &Target<'_>, without: &[String], rebuilt: &BTreeSet<i64>, edit: &mut Edit) -> Result<()> {
    let (plan, window) = (target.plan, target.layout.spec().window);
    for input in &plan.vanished {
        let Some(shared) = input.windows.iter().find(|start| rebuilt.contains(start)) else { continue };
        if !without.contains(&input.path) {
            return Err(StoreError::InputGone {
                table: target.table.name().to_owned(),
                window: window_name(window, *shared),
                changed: plan.changed.first().map(|(file, _)| file.path.clone()).unwrap_or_default(),
                gone: input.path.clone(),
            });
        }
        // What is left of it is not its content: should it come back, it counts as changed.
        let mut kept = Input { hash: ContentHash(0), version: String::new(), ..input.clone() };
        kept.windows.retain(|start| !rebuilt.contains(start));
        kept.days = kept
            .windows
            .iter()
            .flat_map(|start| days_in(&input.days, window, *start))
            .collect::<BTreeSet<_>>()
            .into_iter()
            .collect();
        for (start, days) in days_by_window(input, window).into_iter().filter(|(start, _)| rebuilt.contains(start)) {
            edit.days.entry(start).or_default().extend(days);
        }
        if kept.windows.is_empty() {
            edit.removed.push(kept.path);
        } else {
            edit.inputs.push(kept);
        }
    }
    Ok(())
}

/// For each target the windows that its changed inputs touch, in the order of its plan, found by reading them.
fn survey(loader: &Loader<'_>) -> Result<Vec<Vec<BTreeSet<i64>>>> {
    let look = |(file, old): &(InputFile, Input)| ToRead {
        file: file.clone(),
        sequence: old.sequence,
        counts: false,
        changed: true,
        expected: None,
    };
    let works: Vec<Work> = (loader.targets.iter())
        .map(|target| Work { edit: Edit::default(), inputs: target.plan.changed.iter().map(look).collect() })
        .collect();
    let encoders: Vec<Encoders<'_>> = loader.targets.iter().map(|target| Encoders::new(target.layout)).collect();
    let mut found: Vec<Vec<BTreeSet<i64>>> =
        works.iter().map(|work| vec![BTreeSet::new(); work.inputs.len()]).collect();
    for pass in passes(&works) {
        let files: Vec<&InputFile> = pass.readings.iter().map(|reading| &reading.file).collect();
        read_ahead(loader.feed, &files, 2, &|_| {}, |messages| {
            for message in messages {
                let outcome = loader.lay_out(message?, &pass.readings, &works, &encoders)?;
                let Outcome::Laid { input, parts } = outcome else { continue };
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
    /// Whether its cells in the window at `start` are wanted.
    pub(super) fn wants(&self, start: i64, rebuilt: &[i64]) -> bool {
        self.counts || self.changed || rebuilt.binary_search(&start).is_ok()
    }

    /// Checks that an input that was read again is the one the version holds.
    pub(super) fn check(&self, read: &InputRead) -> Result<()> {
        match self.expected {
            Some(expected) if read.hash != Some(expected) => {
                Err(StoreError::InputMoved { path: self.file.path.clone() })
            }
            _ => Ok(()),
        }
    }

    /// The input as the next version records it.
    pub(super) fn record(&self, read: &InputRead, rebuilt: &[i64]) -> Result<Input> {
        let moved = self.changed && read.days.keys().any(|start| rebuilt.binary_search(start).is_err());
        let Some(hash) = read.hash.filter(|_| !moved) else {
            return Err(StoreError::InputMoved { path: self.file.path.clone() });
        };
        Ok(Input {
            sequence: self.sequence,
            path: self.file.path.clone(),
            size: self.file.size,
            version: self.file.version.clone(),
            hash,
            read: read.counts.read,
            rejected: read.counts.rejected,
            days: read.days.values().flatten().copied().collect::<BTreeSet<_>>().into_iter().collect(),
            windows: read.days.keys().copied().collect(),
        })
    }
}
