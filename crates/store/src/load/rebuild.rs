//! Rebuild planning: which inputs a load reads, and which windows it rebuilds.
//!
//! A changed input rebuilds the windows that its old or new content touches, from all live inputs of those windows.
//! These inputs are read again, for those windows only.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tidetable_layout::Window;
use tidetable_layout::time::{window_bounds, window_name};
use tidetable_source::InputFile;

use crate::error::{Result, StoreError};
use crate::load::encode::PieceOutcome;
use crate::load::encoders::Encoders;
use crate::load::input::plan::Grown;
use crate::load::input::read::read_ahead;
use crate::load::pass::passes;
use crate::load::spec::{LoadTarget, Loader, MICROS_PER_DAY};
use crate::load::work::{HeldInput, ToRead, Work};
use crate::version::{Input, VersionEdit};

/// Plans the work of each table, with its edit as far as that is known before reading.
pub(crate) fn plan(loader: &Loader<'_>) -> Result<Vec<(VersionEdit, Work)>> {
    let surveys = survey(loader)?;
    loader.targets.iter().zip(&surveys).map(|(target, windows)| plan_target(target, windows)).collect()
}

/// `now_in`: the windows that each surveyed input touches now.
fn plan_target(target: &LoadTarget<'_>, now_in: &[BTreeSet<i64>]) -> Result<(VersionEdit, Work)> {
    let LoadTarget { base, plan, .. } = target;
    let window = target.layout.spec().window;
    let mut edit = VersionEdit { base: base.number, ..VersionEdit::default() };
    if !tidetable_sstable::failpoint!(ForgetCopies) {
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
        inputs.push(ToRead { changed: true, ..ToRead::new(file, old.input_seqno) });
    }
    for ((input_seqno, file), now_in) in plan.resumed.iter().zip(now_in.iter().skip(plan.changed.len())) {
        rebuilt.extend(now_in.iter().copied());
        inputs.push(ToRead { changed: true, ..ToRead::new(file, *input_seqno) });
    }
    for old in &plan.given_up {
        let all = if tidetable_sstable::failpoint!(TakeOutOfOneWindow) { 1 } else { usize::MAX };
        rebuilt.extend(old.windows.iter().take(all).copied());
        for (start, days) in days_by_window(old, window) {
            edit.days.entry(start).or_default().extend(days);
        }
        edit.removed.push(old.path.clone());
    }
    for Grown { file, held, from, hash } in &plan.grown {
        let again = held.windows.iter().any(|start| rebuilt.contains(start));
        let input = Some(HeldInput { input: held.clone(), end: *from, again }).filter(|held| held.end > 0);
        let cut = input.as_ref().map(|held| held.end);
        inputs.push(ToRead { expected: *hash, held: input, cut, ..ToRead::new(file, held.input_seqno) });
    }
    for (input_seqno, file) in &plan.new {
        inputs.push(ToRead::new(file, *input_seqno));
    }
    let shares = |input: &&(InputFile, Arc<Input>)| input.1.windows.iter().any(|start| rebuilt.contains(start));
    for (file, input) in plan.unchanged.iter().filter(shares) {
        let expected = Some(input.hash);
        inputs.push(ToRead { counts: false, expected, ..ToRead::new(file, input.input_seqno) });
    }
    none_is_gone(target, &rebuilt)?;
    inputs.sort_by_key(|input| input.input_seqno);
    edit.rebuilt = rebuilt.into_iter().collect();
    let work = Work { rebuilt: edit.rebuilt.clone(), tombstones: base.tombstones.clone(), inputs };
    Ok((edit, work))
}

/// A vanished input cannot be read again to rebuild windows: the load fails, unless the input is removed. Removing it
/// rebuilds all its windows, which may need other vanished inputs, so the error names all of them at once.
fn none_is_gone(target: &LoadTarget<'_>, rebuilt: &BTreeSet<i64>) -> Result<()> {
    let LoadTarget { table, plan, .. } = target;
    let shared =
        |input: &Input, affected: &BTreeSet<i64>| input.windows.iter().find(|start| affected.contains(start)).copied();
    let first = plan.vanished.iter().find_map(|input| shared(input, rebuilt));
    let Some(window) = first else { return Ok(()) };
    let (mut affected, mut gone, mut rest) = (rebuilt.clone(), Vec::new(), plan.vanished.iter().collect::<Vec<_>>());
    loop {
        let (more, others): (Vec<&Input>, _) = rest.into_iter().partition(|input| shared(input, &affected).is_some());
        if more.is_empty() {
            break;
        }
        affected.extend(more.iter().flat_map(|input| &input.windows));
        gone.extend(more);
        rest = others;
    }
    gone.sort_by_key(|input| input.input_seqno);
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

/// Reads the changed and then the resumed inputs of each target's plan, to find the windows that each touches.
fn survey(loader: &Loader<'_>) -> Result<Vec<Vec<BTreeSet<i64>>>> {
    let look = |(input_seqno, file): (u64, &InputFile)| {
        let to_read = ToRead::new(file, input_seqno);
        ToRead { counts: false, changed: true, ..to_read }
    };
    let of_target = |target: &LoadTarget<'_>| {
        let changed = target.plan.changed.iter().map(|(file, old)| (old.input_seqno, file));
        let resumed = target.plan.resumed.iter().map(|(input_seqno, file)| (*input_seqno, file));
        let inputs = changed.chain(resumed).map(look).collect();
        Work { rebuilt: Vec::new(), tombstones: target.base.tombstones.clone(), inputs }
    };
    let worker = loader.worker();
    let works: Vec<Work> = loader.targets.iter().map(of_target).collect();
    let encoders: Vec<Encoders<'_>> = loader.targets.iter().map(|target| Encoders::new(target.layout)).collect();
    let mut found: Vec<Vec<BTreeSet<i64>>> =
        works.iter().map(|work| vec![BTreeSet::new(); work.inputs.len()]).collect();
    for pass in passes(&works) {
        read_ahead(loader.feed, &pass.files(&works), 2, &|_| {}, |messages| {
            for message in messages {
                let outcome = worker.encode_piece(message?, &pass.readings, &works, &encoders)?;
                let PieceOutcome::Encoded { input, parts, .. } = outcome else { continue };
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

/// The `days` that overlap the window at `start`.
fn days_in(days: &[i32], window: Window, start: i64) -> Vec<i32> {
    let bounds = window_bounds(window, start);
    let overlaps = |day: &i32| {
        let begun = i64::from(*day) * MICROS_PER_DAY;
        begun < bounds.end && bounds.start < begun + MICROS_PER_DAY
    };
    days.iter().copied().filter(overlaps).collect()
}
